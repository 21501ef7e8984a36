"""The keyword arguments of a decision that is not a plain one."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from latecomer.policies.base.search import Oracle
from latecomer.validation import suggest


class DecisionOptions(TypedDict, total=False):
    """Options of `LinearPolicy.decide`, which says what they are."""

    control: int | None
    places: Mapping[str, int] | None
    deferred: bool
    subject: str | None
    oracle: Oracle | None
    k: int
    examination: Sequence[float] | None


def check_options(options: Mapping[str, object]) -> None:
    """Raise `TypeError` where an option is none of a decision's."""
    for name in options:
        if name not in DecisionOptions.__annotations__:
            known = ("at", *DecisionOptions.__annotations__)
            raise TypeError(f"decide() got an unexpected keyword argument {name!r}{suggest(name, known)}")


def show_options(decide: Callable[..., object], optional: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a function with the options of another by name, in place of `**options`."""
    own, others = inspect.signature(decide), inspect.signature(optional).parameters
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in others.values() if each.name in _OPTIONS]
    return own.replace(parameters=[*list(own.parameters.values())[:-1], *named])


_OPTIONS = DecisionOptions.__annotations__
