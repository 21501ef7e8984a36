"""Markup that escapes by itself: a text becomes markup only through `tag`."""

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"meta", "link", "input"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: "Markup | str | int | None", **attributes: str | float | bool | None) -> Markup:
    """Return an element; `class_` and `aria_label` stand for the attributes class and aria-label.

    >>> tag("p", "a < b", tag("b", "c"), class_="note")
    '<p class="note">a &lt; b<b>c</b></p>'
    """
    written = "".join(_write_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{join(children)}</{name}>")


def _write_attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def join(children: "Iterable[Markup | str | int | None]") -> Markup:
    """Return children one after the other; those that are not markup are escaped."""
    return Markup(
        "".join(child if isinstance(child, Markup) else escape(str(child)) for child in children if child is not None)
    )
