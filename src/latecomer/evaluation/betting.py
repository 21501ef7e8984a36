"""An interval that is valid at every look: a bet against each value on a grid, on closed rounds in their order.

For a value v the capitals K± = Π (1 ± λ_s·w_s(Z_s − v)) are martingales where v is the target's mean and λ_s is chosen
before round s; by Ville's inequality they stay below 2/α with probability 1 − α/2 each. The values that were never
beaten are the interval. w ≤ b must be known beforehand: b = K/ε where every action has a floor of ε/K. The capital is
shared between two bets, one for all times and one for about n₀ rounds; neither depends on the round it is placed on.
"""

import math

import numpy as np

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.validation import check_positive, check_probability

GRID = 1000
USEFUL_ROUNDS = 5000
"""Closed rounds below which the interval is too wide to be of much use."""
_CHUNK = 500
_STAKE = 0.95


class BettingInterval:
    """The values that are not refuted yet; rounds are added in their order.

    Parameters
    ----------
    largest_weight
        b, which no weight π/e can exceed.
    confidence
        1 − α.
    expected_rounds
        n₀, for which one of the two bets is made.

    Examples
    --------
    >>> import numpy as np
    >>> from latecomer.evaluation.betting import BettingInterval
    >>> rng = np.random.default_rng(0)
    >>> interval = BettingInterval(2.0)
    >>> interval.add(rng.choice([0.0, 2.0], 20_000), rng.random(20_000) < 0.3)
    >>> low, high = interval.bounds
    >>> low < 0.3 < high, high - low < 0.05
    (True, True)
    """

    def __init__(self, largest_weight: float, *, confidence: float = 0.9, expected_rounds: int = 10_000) -> None:
        self._bound = check_positive("largest_weight", largest_weight)
        self._alpha = 1.0 - check_probability("confidence", confidence, usual=0.9)
        self._expected = expected_rounds
        self._grid = (np.arange(GRID) + 0.5) / GRID
        self._log_capital = np.zeros((2, 2, GRID))  # side, bet, value
        self._kept = np.ones(GRID, np.bool_)
        self._rounds, self._sum, self._squares = 0, 0.0, 0.0

    @property
    def rounds(self) -> int:
        """The number of rounds that were added."""
        return self._rounds

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value that was never refuted, each with its cell of the grid."""
        kept = np.flatnonzero(self._kept)
        if not len(kept):  # possible with probability α: every value was refuted once
            return math.nan, math.nan
        return int(kept[0]) / GRID, (int(kept[-1]) + 1) / GRID

    def add(self, weights: Floats, outcomes: Floats) -> None:
        """Add closed rounds in their order: weights up to b, and outcomes in [0, 1]."""
        weights, outcomes = np.asarray(weights, np.float64), np.asarray(outcomes, np.float64)
        if (weights > self._bound * (1 + 1e-9)).any():
            raise InputError(
                f"largest_weight must be at least every weight; got {self._bound:g}, and a weight is {weights.max():g}",
                field="largest_weight",
            )
        if ((outcomes < 0.0) | (outcomes > 1.0)).any():
            raise InputError("outcomes must be in [0, 1] for an interval that is valid at every look", field="value")
        for start in range(0, len(weights), _CHUNK):
            self._add_chunk(weights[start : start + _CHUNK], outcomes[start : start + _CHUNK])

    def _add_chunk(self, weights: Floats, outcomes: Floats) -> None:
        """Bet against the values that are left; one that was refuted stays so."""
        bets = self._place_bets(weights * outcomes)
        left = np.flatnonzero(self._kept)
        grid = self._grid[left]
        gains = weights[:, None] * (outcomes[:, None] - grid)
        limits = (_STAKE / (self._bound * grid), _STAKE / (self._bound * (1.0 - grid)))
        threshold = math.log(2.0 / self._alpha)
        for side, sign in enumerate((1.0, -1.0)):
            paths = []
            for number, bet in enumerate(bets):
                steps = np.log1p(sign * np.minimum(bet[:, None], limits[side]) * gains)
                paths.append(self._log_capital[side, number, left] + np.cumsum(steps, axis=0))
                self._log_capital[side, number, left] = paths[-1][-1]
            mean = np.logaddexp(*paths) - math.log(2.0)
            self._kept[left] &= (mean < threshold).all(axis=0)

    def _place_bets(self, products: Floats) -> tuple[Floats, Floats]:
        """Return λ_s of both bets for each round, from the rounds before it."""
        number = self._rounds + np.arange(1, len(products) + 1)
        sums = self._sum + np.cumsum(products) - products
        squares = self._squares + np.cumsum(products**2) - products**2
        seen = np.maximum(number - 1, 1)
        variance = (0.25 + np.maximum(squares - sums**2 / seen, 0.0)) / number
        self._rounds, self._sum, self._squares = (
            int(number[-1]),
            float(sums[-1] + products[-1]),
            float(squares[-1] + products[-1] ** 2),
        )
        odds = 2.0 * math.log(2.0 / self._alpha)
        always = np.sqrt(odds / (variance * number * np.log1p(number)))
        return always, np.sqrt(odds / (variance * self._expected))
