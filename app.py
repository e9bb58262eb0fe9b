"""The frame of the playground: ``streamlit run app.py``.

It imports no torch, so the first page is on screen before the libraries are loaded.
"""

from pages._ui import frame

frame.run()
