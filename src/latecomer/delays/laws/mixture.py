"""A mixture: each delay follows one of several laws, drawn by weight."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from latecomer.delays.distribution import DelayLaw, Delays, Floats, Law, draw, is_changing
from latecomer.errors import InputError
from latecomer.validation import check_positive


@dataclass(frozen=True)
class Mixture(Law):
    """A delay of laws[i] with probability weights[i].

    Parameters
    ----------
    laws
        Built-in laws or your own, mixtures too.
    weights
        One for each law, above 0, of sum 1.

    Examples
    --------
    >>> from latecomer import delays
    >>> law = delays.Mixture([delays.Fixed(0), delays.Geometric(mean=10)], weights=[0.25, 0.75])
    >>> law.cdf(0), law.mean
    (0.25, 7.5)
    """

    laws: Sequence[DelayLaw]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        laws = _check_list("laws", self.laws)
        weights = tuple(
            check_positive(f"weights[{i}]", weight) for i, weight in enumerate(_check_list("weights", self.weights))
        )
        if not laws:
            raise InputError("laws must hold at least one law; got none", field="laws")
        for position, law in enumerate(laws):
            if isinstance(law, type) or not isinstance(law, DelayLaw):
                raise InputError(
                    f"laws[{position}] must have sample, cdf and mean, as Fixed(3) has; got {law!r}", field="laws"
                )
            if is_changing(law):
                raise InputError(
                    f"laws[{position}] must be the same law in every round; got {law!r}: "
                    "mix the laws before and after the change, and let those drift",
                    field="laws",
                )
        if len(weights) != len(laws):
            raise InputError(f"weights must be as many as the laws, {len(laws)}; got {len(weights)}", field="weights")
        if abs(math.fsum(weights) - 1.0) > 1e-9:
            raise InputError(f"weights must sum to 1; got {math.fsum(weights)!r}: divide each by that", field="weights")
        object.__setattr__(self, "laws", laws)
        object.__setattr__(self, "weights", weights)

    @property
    def mean(self) -> float:
        """Σ weights[i]·E[laws[i]]."""
        return math.fsum(weight * law.mean for weight, law in zip(self.weights, self.laws, strict=True))

    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        bounds = np.cumsum(self.weights)[:-1]
        choice = np.searchsorted(bounds, rng.random(size), side="right")
        delays = np.empty(size, np.int64)
        for position, law in enumerate(self.laws):
            chosen = np.flatnonzero(choice == position)
            delays[chosen] = draw(law, rng, len(chosen))
        return delays

    def _cdf(self, k: Floats) -> Floats:
        total = np.zeros_like(k)
        for weight, law in zip(self.weights, self.laws, strict=True):
            total += weight * np.asarray(law.cdf(k))
        return np.minimum(total, 1.0)  # weights may sum to a little more


def _check_list(name: str, items: object) -> tuple[object, ...]:
    if isinstance(items, str) or not isinstance(items, Sequence | np.ndarray):
        raise InputError(f"{name} must be a list, one entry for each law; got {items!r}", field=name)
    return tuple(items)
