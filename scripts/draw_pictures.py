"""Draws the pictures of the documentation by running the pages that make them: `python scripts/draw_pictures.py`."""

import os
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

os.environ["SOURCE_DATE_EPOCH"] = "0"  # the same bytes for the same picture: no date of today,
matplotlib.rcParams["svg.hashsalt"] = "latecomer"  # and no random ids

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("tutorials/shop-log.md", "how-to/pictures.md")


def run_page(page: Path) -> None:
    """Run a page's snippets in a folder of their own, and keep the SVG pictures that they write."""
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    home = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(compile("\n".join(snippets), str(page), "exec"), {"__name__": "page"})  # noqa: S102 - our own pages
            for picture in Path(folder).glob("*.svg"):
                shutil.copy(picture, DOCS / "pictures" / picture.name)
                print(f"drew docs/pictures/{picture.name}")
        finally:
            os.chdir(home)


for name in sys.argv[1:] or PAGES:
    run_page(DOCS / name)
