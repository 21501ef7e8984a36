"""Decisions weighed by their maturity, Σ F̂(age): a closed round counts 1, an open one F̂ of its age."""

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.policies.base import bulk
from latecomer.policies.base.policy import LinearPolicy

LEAST_CONVERSIONS = 10
"""Open decisions are weighed once there are so many conversions. Before, the delay curve is mostly its prior."""


def can_weigh(policy: LinearPolicy, *, end: int, conversions: int, now: int) -> bool:
    """Tell whether the decisions before round `end` can be weighed by a policy's delay curve.

    `conversions` are those so far. Where no decision is as old as the curve's first bin, the curve is 1 everywhere: it
    knows nothing. Decisions that are older than the window need no curve.
    """
    knows_delays = conversions >= LEAST_CONVERSIONS and _read_curve(policy)[1][0] < 1.0
    return knows_delays or count_young(policy, end=end, now=now) == 0


def count_young(policy: LinearPolicy, *, end: int, now: int) -> int:
    """Count the decisions before round `end` that are younger than the window of a policy that has a delay curve."""
    edges, _ = _read_curve(policy)
    ages = _read_ages(policy, now)[: max(end - int(policy.state.number("oldest")), 0)]
    return int(np.count_nonzero(ages < edges[-1]))


def compute_matured_rate(conversions: int, matured: float | None) -> float | None:
    """Return the conversion rate that is corrected for what is on its way: conversions over Σ F̂(age)."""
    return conversions / matured if matured else None


def weigh_open_rounds(policy: LinearPolicy, cuts: Integers, *, now: int, chosen: Array | None = None) -> Array:
    """Return Σ F̂(age) of the open rounds between each two cuts, which are round numbers in order.

    `chosen` has 1 for each open round that counts and 0 for the others; without it, all count. F̂ is linear between its
    edges, so the sum over a run of rounds inside one bin follows from their number and the sum of their ages: one pass
    over the stamps, whatever the number of rounds.
    """
    edges, shares = _read_curve(policy)
    oldest, rounds = int(policy.state.number("oldest")), policy.rounds
    ages = _read_ages(policy, now)
    chosen = np.ones(len(ages)) if chosen is None else chosen
    places = np.clip(cuts - oldest, 0, rounds - oldest + 1)
    if not len(ages):
        return np.zeros(len(cuts) - 1)
    # Ages fall from one round to the next: the rounds of a bin are a run.
    turns = len(ages) - np.searchsorted(ages[::-1], edges, "left")
    begins = np.unique(np.concatenate((places, turns, [0])))
    begins = begins[begins < len(ages)]
    counts, sums = np.add.reduceat(chosen, begins), np.add.reduceat(ages * chosen, begins)
    bins = np.clip(np.searchsorted(edges, ages[begins], "right") - 1, 0, len(edges) - 1)
    last = len(edges) - 1
    left, right = np.minimum(bins, last - 1), np.minimum(bins, last - 1) + 1
    rises, widths = shares[right] - shares[left], edges[right] - edges[left]  # a short window has bins of no width
    slopes = np.divide(rises, widths, out=np.zeros(len(rises)), where=(bins < last) & (widths > 0.0))
    start = np.where(bins == last, shares[last] * counts, shares[left] * counts)
    weights = start + slopes * (sums - edges[left] * counts)
    totals = np.concatenate(([0.0], np.cumsum(weights)))
    found: Array = np.diff(totals[np.searchsorted(begins, places, "left")])
    return found


def _read_curve(policy: LinearPolicy) -> tuple[Array, Array]:
    """Return the edges of the delay curve, in rounds or microseconds, and its shares there."""
    curve = policy.delay_curve
    if curve is None:
        raise ValueError(f"{type(policy).__name__} has no delay curve")
    return curve[0] * (1.0 if isinstance(policy.window, int) else 1e6), curve[1]


def _read_ages(policy: LinearPolicy, now: int) -> Array:
    """Return the ages of the open rounds, oldest first, in rounds or microseconds."""
    if isinstance(policy.window, int):
        return 1.0 + policy.rounds - np.arange(int(policy.state.number("oldest")), policy.rounds + 1, dtype=np.float64)
    return np.maximum(now - bulk.read_open(policy, "stamp").astype(np.float64), 0.0)
