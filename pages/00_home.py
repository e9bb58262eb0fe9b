"""Attention playground

Move a slider and see what attention computes.

Section: Home
Icon: home
"""

from pages._ui import course, frame

page = frame.guard(__file__)
course.draw(page)
