"""Two arms that share the traffic: the difference of their means, an interval valid at every look, and its sentence."""

import math

from msgspec import Struct

from latecomer.evaluation.running_mean import bound_running_mean

CONFIDENCE = 0.95
_LEAST = 30
"""Closed decisions of the other arm below which no number of further ones is named."""


class ArmComparison(Struct, frozen=True, kw_only=True):
    """One arm against another: closed decisions and mean value a decision of both, and their difference.

    `low` and `high` bound the difference with `confidence` however often one looks. `more_decisions` is about how many
    more it takes to tell them apart, 0 where they are told apart, and None where nobody can say.
    """

    decisions: int
    mean: float | None
    other_decisions: int
    other_mean: float | None
    difference: float | None
    low: float
    high: float
    confidence: float
    more_decisions: int | None
    note: str


def compare_arms(
    own: tuple[int, float], other: tuple[int, float], *, name: str = "policy", against: str = "control"
) -> ArmComparison:
    """Compare two arms, given closed decisions and the sum of their values, each in [0, 1], of both.

    Each mean has an interval that fails with probability α/2 at most; so their difference has one that fails with α.

    Examples
    --------
    >>> found = compare_arms((20_000, 1_400.0), (20_000, 1_000.0), name="challenger", against="champion")
    >>> found.note[:44], found.more_decisions
    ('the challenger is better than the champion: ', 0)
    """
    (count, total), (other_count, other_total) = own, other
    each = 0.5 + 0.5 * CONFIDENCE
    low, high = bound_running_mean(count, total, confidence=each)
    other_low, other_high = bound_running_mean(other_count, other_total, confidence=each)
    mean, other_mean = (total / count if count else None), (other_total / other_count if other_count else None)
    difference = None if mean is None or other_mean is None else mean - other_mean
    bounds = (low - other_high, high - other_low)
    more = None
    if difference is not None and not bounds[0] <= 0.0 <= bounds[1]:
        more = 0
    elif difference and min(count, other_count) >= _LEAST:
        width = max(difference - bounds[0], bounds[1] - difference)
        more = _round_up((count + other_count) * max((width / abs(difference)) ** 2 - 1.0, 0.05))
    return ArmComparison(
        decisions=count,
        mean=mean,
        other_decisions=other_count,
        other_mean=other_mean,
        difference=difference,
        low=bounds[0],
        high=bounds[1],
        confidence=CONFIDENCE,
        more_decisions=more,
        note=_write_note(difference, bounds, other_mean, more, name, against),
    )


def format_points(share: float) -> str:
    """Write a difference of shares in percentage points, with its sign.

    >>> format_points(0.0587), format_points(-0.01)
    ('+5.87 points', '-1.00 points')
    """
    return f"{100.0 * share:+.2f} points"


def _round_up(number: float) -> int:
    """Round up to one digit: it is a rough number. Widths shrink as 1/√n, and the difference may change."""
    size = int(10.0 ** math.floor(math.log10(max(number, 1.0))))
    return math.ceil(number / size) * size


def _write_note(
    difference: float | None,
    bounds: tuple[float, float],
    other_mean: float | None,
    more: int | None,
    name: str,
    against: str,
) -> str:
    if difference is None:
        return f"not enough yet: no decision of the {name} and of the {against} has closed its window"
    if more == 0:
        word = "better" if difference > 0 else "worse"
        relative = f"; as a share of the {against}'s mean {difference / other_mean:+.0%}" if other_mean else ""
        return (
            f"the {name} is {word} than the {against}: {format_points(difference)}, {CONFIDENCE:.0%} interval "
            f"{100.0 * bounds[0]:+.2f} to {format_points(bounds[1])}{relative}"
        )
    if more is None:
        return f"not enough yet: the {against} has too few closed decisions to say how many more it takes"
    return (
        f"not enough yet: about {more:,} more decisions, if the difference stays as it is ({format_points(difference)})"
    )
