"""Feedback in batches: what has arrived since the last report comes with the next one."""

from dataclasses import dataclass

import numpy as np

from latecomer.delays.distribution import NEVER, DelayLaw, Delays, Floats, Law, draw, is_changing
from latecomer.errors import InputError
from latecomer.validation import check_integer


@dataclass(frozen=True)
class Batched(Law):
    """A law whose conversions are reported together, in the last of every `period` rounds: once a day, say.

    `cdf` and `mean` are those of a round at any time of the period.

    Parameters
    ----------
    of
        The law of the delay itself, the same in every round.
    period
        Rounds from one report to the next; 1 changes nothing.

    Examples
    --------
    >>> from latecomer import delays
    >>> law = delays.Batched(delays.Fixed(0), period=4)
    >>> law.sample_from(np.random.default_rng(0), 0, 8)
    array([3, 2, 1, 0, 3, 2, 1, 0])
    >>> law.cdf([0, 1, 3]), law.mean
    (array([0.25, 0.5 , 1.  ]), 1.5)
    """

    of: DelayLaw
    period: int

    def __post_init__(self) -> None:
        if isinstance(self.of, type) or not isinstance(self.of, DelayLaw):
            raise InputError(f"of must have sample, cdf and mean, as Fixed(3) has; got {self.of!r}", field="of")
        if is_changing(self.of):
            raise InputError(f"of must be the same law in every round; got {self.of!r}", field="of")
        check_integer("period", self.period, least=1)

    @property
    def mean(self) -> float:
        """E[D] and half a period, less half a round: the phase of an arrival is uniform where that of a round is."""
        return self.of.mean + 0.5 * (self.period - 1)

    def sample_from(self, rng: np.random.Generator, first: int, size: int) -> Delays:
        """The delays of rounds first, first + 1, …, counted from 0."""
        delays, rounds = draw(self.of, rng, size), first + np.arange(size)
        reported = -(-(rounds + delays + 1) // self.period) * self.period - 1
        return np.where(delays >= NEVER, NEVER, reported - rounds)

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        return self.sample_from(rng, 0, size)

    def _cdf(self, k: Floats) -> Floats:
        total = np.zeros_like(k)
        for phase in range(self.period):  # reported by k where D ≤ the last report up to then
            last = np.floor((k + 1.0 + phase) / self.period) * self.period - phase - 1.0
            total += np.asarray(self.of.cdf(last), np.float64)
        return total / self.period
