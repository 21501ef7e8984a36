"""A delay law that changes at one round of a run."""

from dataclasses import dataclass

import numpy as np

from latecomer.delays.distribution import DelayLaw, Delays, Floats, Law, draw
from latecomer.errors import InputError
from latecomer.validation import check_integer


@dataclass(frozen=True)
class ChangePoint(Law):
    """One law for the rounds before a change, another from it on. `cdf` and `mean` are the other's, which stays.

    Examples
    --------
    >>> from latecomer import delays
    >>> law = delays.ChangePoint(delays.Fixed(3), delays.Fixed(50), change=1000)
    >>> law.cdf(10), law.mean
    (0.0, 50.0)
    """

    before: DelayLaw
    after: DelayLaw
    change: int

    def __post_init__(self) -> None:
        for name, law in (("before", self.before), ("after", self.after)):
            if isinstance(law, type) or not isinstance(law, DelayLaw):
                raise InputError(f"{name} must have sample, cdf and mean, as Fixed(3) has; got {law!r}", field=name)
        check_integer("change", self.change, least=0)

    @property
    def mean(self) -> float:
        """E[D] after the change."""
        return self.after.mean

    def sample_from(self, rng: np.random.Generator, first: int, size: int) -> Delays:
        """The delays of rounds first, first + 1, …, counted from 0."""
        old = min(size, max(0, self.change - first))
        return np.concatenate([draw(self.before, rng, old, first), draw(self.after, rng, size - old, first + old)])

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        return draw(self.after, rng, size)

    def _cdf(self, k: Floats) -> Floats:
        return np.asarray(self.after.cdf(k), np.float64)
