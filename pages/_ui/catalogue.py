"""The course: which pages there are, read from the page files themselves.

A page is a file ``pages/NN_concept.py``. Its docstring says what it is::

    \"\"\"Title of the page

    One sentence: what the page claims.

    Section: The mechanism
    Icon: grid_on
    \"\"\"

The file is read, not run, so listing the course costs no import of torch.
"""

import functools
import re
from pathlib import Path
from typing import NamedTuple

PAGES = Path(__file__).parent.parent
IMAGES = PAGES.parent / "assets" / "images"
DEFAULT_SECTION = "Course"
DEFAULT_ICON = "school"
_DOCSTRING = re.compile(r'\s*"""(.*?)"""', re.DOTALL)


class PageInfo(NamedTuple):
    """What the frame and the home page know of one page."""

    path: Path
    title: str
    claim: str
    section: str
    icon: str

    @property
    def name(self) -> str:
        """The page's part of the address: the file name without its number."""
        return self.path.stem.split("_", maxsplit=1)[1]

    def image(self, *, dark: bool) -> Path | None:
        """The shipped picture of the page for one theme; None if it has none."""
        path = IMAGES / f"{self.name}-{'dark' if dark else 'light'}.png"
        return path if path.exists() else None


def list_pages() -> list[PageInfo]:
    """Return every page in the order of the course."""
    return [
        _read_page(path, path.stat().st_mtime_ns)
        for path in sorted(PAGES.glob("[0-9]*_*.py"))
    ]


def page_of(file: str) -> PageInfo:
    """Return what is known of the page whose ``__file__`` is given."""
    path = PAGES / Path(file).name
    return _read_page(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _read_page(path: Path, _changed: int) -> PageInfo:
    opening = _DOCSTRING.match(path.read_text(encoding="utf-8"))
    docstring = opening.group(1) if opening else ""
    paragraphs = [p.replace("\n", " ").strip() for p in docstring.split("\n\n")]
    fields = dict(
        line.split(": ", maxsplit=1)
        for line in docstring.splitlines()
        if line.startswith(("Section: ", "Icon: "))
    )
    return PageInfo(
        path=path,
        title=paragraphs[0] or path.stem.split("_", maxsplit=1)[1].replace("_", " "),
        claim=paragraphs[1] if len(paragraphs) > 1 else "",
        section=fields.get("Section", DEFAULT_SECTION),
        icon=f":material/{fields.get('Icon', DEFAULT_ICON)}:",
    )
