"""Linear bandits that forget: D-LinUCB and D-LinTS.

The first is of Russac, Vernade and Cappé (NeurIPS 2019), the second of Kim and Tewari (AISTATS 2020).

A round of age g weighs γ^g in V and b, and γ^{2g} in Ṽ; the covariance of θ̂ = V⁻¹b is V⁻¹ṼV⁻¹. D-LinUCB plays
argmax ⟨a, θ̂⟩ + c·β_t·‖a‖_{V⁻¹ṼV⁻¹}, β_t = √λ + σ·√(2 ln(1/δ) + d·ln(1 + (1 − γ^{2t})/(dλ(1 − γ²)))), σ = ½. D-LinTS
samples N(θ̂, c²·v̂·V⁻¹ṼV⁻¹), v̂ = p̂(1 − p̂).

Differs from both, which have no delay: a round counts as 0 until it converts, and a late conversion joins b with the
weight that its decision has by then. The variance of D-LinTS is a plug-in.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from latecomer.core.state import Array
from latecomer.experiments.arena.rivals.history import History

NOISE, DELTA = 0.5, 0.1


@dataclass(frozen=True)
class DiscountedLinUCB:
    """A template of D-LinUCB, as `simulate` takes it."""

    dim: int
    window: int
    discount: float = 0.999
    exploration: float = 1.0
    ridge: float = 1.0

    def fresh(self, seed: int) -> "DiscountedUCBRule":  # noqa: ARG002 - nothing in it is random
        """Make a rule for one run."""
        return DiscountedUCBRule(self)


@dataclass(frozen=True)
class DiscountedLinTS:
    """A template of D-LinTS, as `simulate` takes it."""

    dim: int
    window: int
    discount: float = 0.999
    exploration: float = 1.0
    ridge: float = 1.0

    def fresh(self, seed: int) -> "DiscountedTSRule":
        """Make a rule for one run."""
        return DiscountedTSRule(self, np.random.default_rng(seed))


class _Discounted:
    """V, Ṽ and b."""

    def __init__(self, template: DiscountedLinUCB | DiscountedLinTS) -> None:
        self.discount, self.ridge, self._exploration = template.discount, template.ridge, template.exploration
        self.history = History(template.dim, template.window)
        self.V, self.V_squared = self.ridge * np.eye(template.dim), self.ridge * np.eye(template.dim)
        self.b, self.conversions, self.weight = np.zeros(template.dim), 0.0, 0.0

    def record(self, action: Array) -> None:
        """Age everything by a round, and add the action."""
        gamma, eye = self.discount, np.eye(len(action))
        outer = np.outer(action, action)
        self.V = gamma * self.V + outer + (1.0 - gamma) * self.ridge * eye
        self.V_squared = gamma**2 * self.V_squared + outer + (1.0 - gamma**2) * self.ridge * eye
        self.b *= gamma
        self.conversions, self.weight = gamma * self.conversions, gamma * self.weight + 1.0
        self.history.append(action)

    def convert(self, round: int) -> None:
        """Add a conversion with the weight of its round."""
        if self.history.convert(round):
            share = self.discount ** (self.history.rounds - round)
            self.b += share * self.history.actions[round - 1]
            self.conversions += share


class DiscountedUCBRule(_Discounted):
    """A run of D-LinUCB."""

    def radius(self) -> float:
        """β_t."""
        t, dim, square = self.history.rounds, len(self.b), self.discount**2
        grown = (1.0 - square**t) / (dim * self.ridge * (1.0 - square))
        return sqrt(self.ridge) + NOISE * sqrt(2.0 * log(1.0 / DELTA) + dim * log(1.0 + grown))

    def decide(self, actions: Array) -> int:
        """Play the largest index."""
        solved = np.linalg.solve(self.V, actions.T)
        norms = np.sqrt(np.sum(solved * (self.V_squared @ solved), axis=0))
        index = int(np.argmax(self.b @ solved + self._exploration * self.radius() * norms))
        self.record(actions[index])
        return index


class DiscountedTSRule(_Discounted):
    """A run of D-LinTS."""

    def __init__(self, template: DiscountedLinTS, rng: np.random.Generator) -> None:
        super().__init__(template)
        self._rng = rng

    def decide(self, actions: Array) -> int:
        """Sample θ̃, and play its best action."""
        rate = (self.conversions + 1.0) / (self.weight + 2.0)
        lower = np.linalg.cholesky(self.V_squared)
        noise = self._exploration * sqrt(rate * (1.0 - rate)) * (lower @ self._rng.standard_normal(len(self.b)))
        index = int(np.argmax(actions @ np.linalg.solve(self.V, self.b + noise)))
        self.record(actions[index])
        return index
