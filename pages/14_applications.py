"""Applications

What is read becomes the memory, what is written is the target: one diagram, four uses.

Section: Sequence to sequence
Icon: schema
"""

from pages._ui import controls, frame, parts, templates_view

page = frame.guard(__file__)
parts.head(
    page,
    r"p(\text{target}_t \mid \text{target}_{<t},\ \text{memory}(\text{source}))",
)
with controls.sidebar("apps") as c:
    chosen = templates_view.choose(c)

with parts.explained(), parts.loading(templates_view.HEIGHT):
    templates_view.draw(chosen)
with parts.explained():
    templates_view.predict(chosen)
    templates_view.look_inside(chosen)

parts.try_it("apps", templates_view.EXPERIMENTS)
parts.limits(
    "Nothing is trained here: the examples are made up, and the diagram shows where "
    "source, memory and target sit, not that a model answers well. Systems in use are "
    "larger, cut text into pieces of words, and differ in details not drawn."
)
