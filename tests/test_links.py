"""Links between the pages: every file and every heading that one points to is there."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [path for path in PAGES if "_build" not in path.parts]


def slug(heading: str) -> str:
    """Return the anchor that GitHub and Sphinx give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(path: Path) -> set[str]:
    tokens = MarkdownIt().parse(path.read_text(encoding="utf-8"))
    headings = [after for before, after in pairwise(tokens) if before.type == "heading_open"]
    return {slug("".join(part.content for part in heading.children or [])) for heading in headings}


def links(text: str) -> list[str]:
    parts = [part for token in MarkdownIt().parse(text) for part in token.children or []]
    return [
        str(part.attrs.get("href") or part.attrs.get("src")) for part in parts if part.type in ("link_open", "image")
    ]


def broken_links(path: Path, text: str) -> list[str]:
    """Return the links of a page's text that lead nowhere inside of the repository."""
    broken = []
    for link in links(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.is_file() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(f"{path.relative_to(ROOT)}: {link}")
    return broken


def test_every_link_leads_somewhere() -> None:
    assert [link for path in PAGES for link in broken_links(path, path.read_text(encoding="utf-8"))] == []


def test_a_broken_link_is_found() -> None:
    text = (
        "[a](no-such-page.md) [b](index.md#no-such-heading) [c](#none) ![d](none.png) [e](index.md) [f](https://x.org)"
    )
    found = broken_links(ROOT / "docs/index.md", text)
    assert [link.split(": ")[1] for link in found] == [
        "no-such-page.md",
        "index.md#no-such-heading",
        "#none",
        "none.png",
    ]
