"""Sums over rounds from which every estimate follows: they add up over batches, files and machines.

Of each round g = (wY, wf, f·dm − w·f·p̂, f, Y, w): w = π/e is the weight of the target policy, Y the outcome seen, f the
maturity, p̂ a model's prediction for the logged action and dm its mean under the target. Numerators and denominators of
the estimators are linear in g, so Σg, Σggᵀ and Σg by the number of bins watched are enough.
"""

from dataclasses import dataclass

import numpy as np

from latecomer.core.state import Integers
from latecomer.delays.distribution import Floats

WEIGHTED_OUTCOME, WEIGHTED_MATURITY, CORRECTION, MATURITY, OUTCOME, WEIGHT = range(6)
COMPONENTS = 6


@dataclass(eq=False)
class Sums:
    """Sums over the rounds on which one target policy is judged."""

    rounds: int
    by_bin: Floats
    """Σg of the rounds with each number of bins watched, from none to all: a row each, closed rounds last."""
    second_open: Floats
    """Σggᵀ of rounds whose window is open."""
    second_closed: Floats
    """Σggᵀ of closed rounds."""
    largest_weight: float = 0.0

    @property
    def total(self) -> Floats:
        """Σg of all rounds."""
        return np.asarray(self.by_bin.sum(axis=0))

    @property
    def second(self) -> Floats:
        """Σggᵀ of all rounds."""
        return self.second_open + self.second_closed

    def select_closed(self) -> "Sums":
        """Return the sums of closed rounds alone."""
        by_bin = np.zeros_like(self.by_bin)
        by_bin[-1] = self.by_bin[-1]
        return Sums(self.rounds, by_bin, np.zeros_like(self.second_open), self.second_closed, self.largest_weight)

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.rounds + other.rounds,
            self.by_bin + other.by_bin,
            self.second_open + other.second_open,
            self.second_closed + other.second_closed,
            max(self.largest_weight, other.largest_weight),
        )


def empty_sums(bins: int) -> Sums:
    """Return the sums of no round."""
    return Sums(0, np.zeros((bins + 1, COMPONENTS)), np.zeros((6, 6)), np.zeros((6, 6)))


def sum_rounds(
    weights: Floats,
    outcomes: Floats,
    maturity: Floats,
    *,
    watched: Integers | None = None,
    bins: int = 1,
    predicted: Floats | None = None,
    expected: Floats | None = None,
) -> Sums:
    """Sum over rounds.

    Parameters
    ----------
    weights, outcomes, maturity
        w, Y and f of each round.
    watched, bins
        The number of bins of ages up to which each round was watched, and of all bins; by default every round is
        closed.
    predicted, expected
        p̂ of the logged action and dm, of a model; without one, 0.
    """
    watched = np.full(len(weights), bins) if watched is None else watched
    g = np.zeros((len(weights), COMPONENTS))
    g[:, WEIGHTED_OUTCOME] = weights * outcomes
    g[:, WEIGHTED_MATURITY] = weights * maturity
    if predicted is not None and expected is not None:
        g[:, CORRECTION] = maturity * (expected - weights * predicted)
    g[:, MATURITY], g[:, OUTCOME], g[:, WEIGHT] = maturity, outcomes, weights
    columns = [np.bincount(watched, weights=column, minlength=bins + 1) for column in g.T]
    closed = watched == bins
    return Sums(
        len(weights),
        np.column_stack(columns),
        second_open=g[~closed].T @ g[~closed],
        second_closed=g[closed].T @ g[closed],
        largest_weight=float(weights.max(initial=0.0)),
    )
