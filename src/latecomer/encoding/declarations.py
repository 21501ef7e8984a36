"""Declarations of features, as callers write them: names, or names with a scale, levels or a kind."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from latecomer.encoding.scales import parse_scales
from latecomer.encoding.spec import Feature, HashedFeature, NumberFeature, OneHotFeature, Scale
from latecomer.errors import InputError
from latecomer.validation import short_repr, suggest

KINDS = ("number", "one-hot", "hashed")
Declarations = Sequence[str] | Mapping[str, Any] | None
"""Names; or {name: declaration}: a kind, a scale such as {"scale": 200}, the levels of a one-hot feature, or None."""


class Unfitted(Struct, frozen=True):
    """A feature that a sample is needed for: its scale, its levels, or its kind, where that is None."""

    name: str
    kind: str | None


def parse_declarations(declared: Declarations, side: str) -> list[Feature | Unfitted]:
    """Return the features of a side, in the order of their names."""
    if declared is None:
        return []
    if isinstance(declared, str) or not isinstance(declared, Sequence | Mapping):
        raise InputError(
            f'{side} must be names of features, such as ["price", "genre"], or a dict; got {short_repr(declared)}',
            field=side,
        )
    named = declared if isinstance(declared, Mapping) else dict.fromkeys(declared)
    if len(named) < len(declared):
        raise InputError(f"{side} must have each name once; got {short_repr(declared)}", field=side)
    for name in named:
        if not isinstance(name, str) or not 0 < len(name) <= 200:
            raise InputError(
                f"{side} must have texts of 1 to 200 characters as names; got {short_repr(name)}", field=side
            )
    return [_parse_feature(name, named[name], side) for name in sorted(named)]


def _parse_feature(name: str, given: Any, side: str) -> Feature | Unfitted:
    if given is None:
        return Unfitted(name, None)
    if isinstance(given, NumberFeature | OneHotFeature | HashedFeature):
        return given
    if isinstance(given, str):
        if given not in KINDS:
            raise InputError(
                f"{side}: {short_repr(name)} must be one of {', '.join(KINDS)}; got {given!r}{suggest(given, KINDS)}",
                field=side,
            )
        return HashedFeature(name=name) if given == "hashed" else Unfitted(name, given)
    if isinstance(given, Scale | Mapping):
        scale = parse_scales({name: given})[name]
        return NumberFeature(name=name, scale=scale.scale, center=scale.center)
    if isinstance(given, Sequence) and given and all(isinstance(level, str) for level in given):
        return OneHotFeature(name=name, levels=sorted(set(given)))
    raise InputError(
        f'{side}: {short_repr(name)} must be a kind ({", ".join(KINDS)}), a scale such as {{"scale": 200}}, or a list '
        f"of levels; got {short_repr(given)}",
        field=side,
    )


def parse_interactions(
    given: Sequence[tuple[str, str]] | None, *, context: Sequence[str], actions: Sequence[str]
) -> list[tuple[str, str]] | None:
    """Return the pairs of names to multiply, the context's first; None for all pairs of both sides."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise _make_pair_error(given)
    return sorted({_parse_pair(pair, context, actions) for pair in given})


def _parse_pair(pair: object, context: Sequence[str], actions: Sequence[str]) -> tuple[str, str]:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 or pair[0] == pair[1]:
        raise _make_pair_error(pair)
    for name in pair:
        if name not in context and name not in actions:
            raise InputError(
                f"interactions must be of declared features; got {short_repr(name)}"
                f"{suggest(name, [*context, *actions])}",
                field="interactions",
            )
    one, other = sorted(pair, key=lambda name: (name in actions, name))
    if other in context:
        raise InputError(
            f"interactions must have a feature of the action; got {short_repr(tuple(pair))}: a product of two features "
            "of the context adds the same to every action, and changes no choice",
            field="interactions",
        )
    return one, other


def _make_pair_error(given: object) -> InputError:
    return InputError(
        f'interactions must be pairs of two names, such as [("country", "price")]; got {short_repr(given)}',
        field="interactions",
    )
