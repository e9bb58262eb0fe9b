"""Streamlit pieces that pages share. Nothing here computes: that is core's part."""
