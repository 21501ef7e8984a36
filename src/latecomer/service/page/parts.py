"""The parts that sections are made of: a section, a card, a table, a command, an empty state."""

from collections.abc import Sequence

from latecomer.service.page.markup import Markup, join, tag


def write_section(title: str, key: str, *children: Markup | None, lead: str | None = None) -> Markup:
    """Write a section; `lead` says in a sentence what it is about."""
    return tag(
        "section",
        tag("h3", title, id=f"{key}-title"),
        None if lead is None else tag("p", lead, class_="note"),
        *children,
        id=key,
        aria_labelledby=f"{key}-title",
    )


def write_card(name: str, value: str, more: str, *, main: bool = False) -> Markup:
    """Write a number with its name, and a word on it."""
    return tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", more)), class_="main" if main else None)


def write_cards(*cards: Markup | None) -> Markup:
    """Write cards beside one another."""
    return tag("dl", *cards, class_="cards")


def set_code(text: str) -> Markup:
    """Set in the type of code what stands between backticks.

    >>> set_code("run `latecomer check`")
    'run <code>latecomer check</code>'
    """
    return join(tag("code", part) if place % 2 else part for place, part in enumerate(text.split("`")))


def write_empty(text: str, *more: Markup) -> Markup:
    """Write what to do where there is nothing to show yet; names of fields are between backticks."""
    return tag("div", tag("p", set_code(text)), *more, class_="empty")


def write_curl(method: str, path: str, body: str) -> Markup:
    """Write the command for a next step; a browser puts the address that it has into it."""
    address = tag("span", "http://127.0.0.1:8080", class_="address")
    request = f"/v1/bandits/{path} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    return tag(
        "pre", tag("code", f"curl -X {method} ", address, request), tabindex="0", role="region", aria_label="Command"
    )


def make_scrollable(table: Markup, label: str) -> Markup:
    """Let a wide table scroll by itself, with the keyboard too."""
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_label=label)


def make_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Markup | str]]) -> Markup:
    """Make a table with a caption; the first column names its row."""
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))),
        tag("tbody", join(body)),
    )
    return make_scrollable(table, caption)


def fold(summary: str, key: str, *children: Markup) -> Markup:
    """Fold something away under a summary; `key` is an id of its own on the page."""
    return tag("details", tag("summary", summary, id=f"{key}-summary"), *children, id=key)
