"""The parameter `half_life`: how fast rounds lose their weight."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from latecomer.core.forgetting import forgetting_numbers
from latecomer.durations import Span, parse_duration
from latecomer.errors import InputError
from latecomer.policies.base.algorithm import Algorithm
from latecomer.validation import check_integer, short_repr

_MICROSECOND = timedelta(microseconds=1)
_LONGEST = 2**53
"""Stamps that a double tells apart."""


@dataclass(frozen=True)
class Forgetting:
    """The checked half-life, in rounds or as a time; None where nothing is forgotten."""

    half_life: int | timedelta | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The policy's argument, where it differs from its default."""
        return {} if self.half_life is None else {"half_life": self.half_life}

    def parameters_in_rounds(self, false_alarms: float) -> dict[str, Any]:
        """Return the arguments of a policy of the same kind whose window is in rounds."""
        if self.half_life is None:
            return {}
        return {"half_life": 1, **({"false_alarms": false_alarms} if false_alarms > 0.0 else {})}

    @property
    def numbers(self) -> dict[str, float]:
        """The fields of the state that kernels read."""
        return {} if self.half_life is None else forgetting_numbers(count_stamps(self.half_life))


def count_stamps(half_life: int | timedelta) -> int:
    """Return a half-life in the unit of stamps: rounds, or microseconds."""
    return half_life // _MICROSECOND if isinstance(half_life, timedelta) else half_life


def check_half_life(half_life: Span | None, window: int | timedelta, algorithm: Algorithm) -> Forgetting:
    """Return the half-life in the unit of the window; `InputError` where it breaks a rule."""
    if half_life is None:
        return Forgetting()
    if algorithm.forget is None or algorithm.has_set:
        raise InputError(
            f"half_life is for ridge estimates; {algorithm.name} cannot forget, nor can a confidence set (guard): "
            "leave it out, or take another policy",
            field="half_life",
        )
    if isinstance(window, timedelta):
        if isinstance(half_life, int | float):
            raise InputError(
                f"half_life must be a time such as '30d', as the window is; got {short_repr(half_life)}",
                field="half_life",
            )
        found: int | timedelta = parse_duration(half_life, name="half_life", such_as="30d")
    else:
        if not isinstance(half_life, int | float) or isinstance(half_life, bool):
            raise InputError(
                f"half_life must be a number of rounds, as the window is; got {short_repr(half_life)}",
                field="half_life",
            )
        found = check_integer("half_life", half_life, least=1)
    if not 1 <= count_stamps(found) <= _LONGEST:
        unit = "microseconds" if isinstance(window, timedelta) else "rounds"
        raise InputError(f"half_life must be 1 to 2^53 {unit}; got {short_repr(half_life)}", field="half_life")
    return Forgetting(found)
