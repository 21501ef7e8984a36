"""Checks of arguments; every error says the name, the rule, the value, and what to do."""

import inspect
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import TypeVar

import numpy as np

from latecomer.errors import InputError

_Item = TypeVar("_Item")
_LONGEST = 100
_REAL = (bool, int, float, np.integer, np.floating, np.bool)
_WHOLE = (int, np.integer)


def short_repr(text: object) -> str:
    """Return the `repr` of a value, cut to 100 characters for a message.

    >>> short_repr("a" * 1000)[-10:]
    "aaaaaa'..."
    """
    written = repr(text)
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}{written[0]}..."


def check_number(name: str, value: object, rule: str) -> float:
    """Return a real number as a float; refuse NaN, and strings."""
    if isinstance(value, _REAL):
        with suppress(OverflowError):  # an int beyond all doubles
            result = float(value)
            if not math.isnan(result):
                return result
    raise InputError(f"{name} must be {rule}; got {value!r}", field=name)


def check_positive(name: str, value: object) -> float:
    """Return a finite number above 0 whose inverse is finite too."""
    result = check_number(name, value, "a number above 0")
    if not (0.0 < result < math.inf and math.isfinite(1.0 / result)):
        raise InputError(f"{name} must be above 0 and finite; got {value!r}", field=name)
    return result


def check_nonnegative(name: str, value: object, *, most: float = 1e9) -> float:
    """Return a number from 0 to `most`, a power of ten; 1e9 does not overflow when it is squared."""
    result = check_number(name, value, "a number of at least 0")
    if not 0.0 <= result <= most:
        power = round(math.log10(most))
        raise InputError(f"{name} must be at least 0 and at most 1e{power}; got {value!r}", field=name)
    return result


def check_at_least_one(name: str, value: object) -> float:
    """Return a number from 1 to 1e9, which does not overflow when it is squared."""
    result = check_number(name, value, "a number of at least 1")
    if not 1.0 <= result <= 1e9:
        raise InputError(f"{name} must be at least 1 and at most 1e9; got {value!r}", field=name)
    return result


def check_probability(name: str, value: object, *, usual: float = 0.1) -> float:
    """Return a probability strictly between 0 and 1; an error has the one that is usual, by default that of δ."""
    result = check_number(name, value, "a probability strictly between 0 and 1")
    if not 0.0 < result < 1.0:
        raise InputError(
            f"{name} must be a probability strictly between 0 and 1; got {value!r}, {usual:g} is usual", field=name
        )
    return result


def check_share(name: str, value: object) -> float:
    """Return a number in [0, 1], ends included."""
    result = check_number(name, value, "a number in [0, 1]")
    if not 0.0 <= result <= 1.0:
        raise InputError(f"{name} must be in [0, 1]; got {value!r}: it is a share, and 5 % is 0.05", field=name)
    return result


def check_conversion_value(name: str, value: object) -> float:
    """Return the value of a conversion, a number in [0, 1]."""
    result = check_number(name, value, "a number in [0, 1]")
    if result > 1.0:
        raise InputError(
            f"{name} must be in [0, 1]; got {value!r}, divide it by its largest possible value first", field=name
        )
    if result < 0.0:
        raise InputError(
            f"{name} must be in [0, 1]; got {value!r}: revoke takes a conversion back, and where an outcome can be a "
            "loss, put every value on a scale on which the worst is 0 and the best is 1",
            field=name,
        )
    return result


def check_call(owner: object, method: str, *arguments: str) -> None:
    """Raise `InputError` where a user's own method cannot be called with these arguments, given by position."""
    try:
        signature = inspect.signature(getattr(owner, method))
    except (TypeError, ValueError):  # it has no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise InputError(
            f"{method} of {short_repr(owner)} must take ({', '.join(arguments)}), by position; "
            f"it has {signature}: {error}"
        ) from None


def check_integer(name: str, value: object, *, least: int) -> int:
    """Return an integer of at least `least` that fits in 62 bits."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, _WHOLE):
        raise InputError(f"{name} must be a whole number; got {value!r}", field=name)
    if not least <= value < 2**62:
        raise InputError(f"{name} must be at least {least} and below 2^62; got {value!r}", field=name)
    return int(value)


def to_plain_text(text: str) -> str:
    """Return a text as a `str` and nothing more: serializers refuse subclasses, as numpy.str_ is one.

    >>> type(to_plain_text(np.str_("click")))
    <class 'str'>
    """
    return text if type(text) is str else str.__str__(text)  # str() would name the member of an enumeration


def to_plain_scalar(value: object) -> bool | float | str:
    """Return a NumPy scalar as a number of Python, and a text as a `str`; `TypeError` where it is neither.

    >>> to_plain_scalar(np.int64(2)), to_plain_scalar(np.float32(0.5))
    (2, 0.5)
    """
    if isinstance(value, str):
        return to_plain_text(value)
    if isinstance(value, np.bool):
        return bool(value)
    if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    raise TypeError(f"got {short_repr(value)}")


def check_text(name: str, value: object, *, most: int) -> str:
    """Return a text of 1 to `most` characters."""
    if not isinstance(value, str) or not 0 < len(value) <= most:
        raise InputError(f"{name} must be a text of 1 to {most} characters; got {short_repr(value)}", field=name)
    return to_plain_text(value)


def check_flag(name: str, value: object) -> bool:
    """Return a truth value; a text such as "no" is none."""
    if not isinstance(value, bool | np.bool):
        raise InputError(f"{name} must be True or False; got {short_repr(value)}", field=name)
    return bool(value)


def list_items(name: str, given: Iterable[_Item], kind: type[_Item], form: str) -> list[_Item]:
    """Return the items of what can be gone through, which are of a kind; `form` names it in errors."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list of {form}; got {short_repr(given)}", field=name)
    found = list(given)
    for place, item in enumerate(found):
        if not isinstance(item, kind):
            raise InputError(f"{name} must be {form}; got {short_repr(item)} at {place}", field=f"[{place}]")
    return found


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return a word that is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise InputError(f"{name} must be one of {known}; got {value!r}{suggest(value, choices)}", field=name)
    return to_plain_text(value)


def suggest(word: object, choices: Collection[str]) -> str:
    """Return a question to end an error with, where one of the choices is near.

    >>> suggest("linucb", ["Greedy", "LinUCB"])
    "; did you mean 'LinUCB'?"
    """
    folded = {choice.casefold(): choice for choice in choices}
    close = get_close_matches(str(word).casefold(), folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""
