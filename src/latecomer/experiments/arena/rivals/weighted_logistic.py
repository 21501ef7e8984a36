"""Logistic models with importance weights for delayed feedback, sampled: FNW and FSIW.

FNW, fake negatives weighted (Ktena et al., RecSys 2019): every round enters at once as a negative, and again as a
positive when it converts. Of what is fed in, a share p/(1 + p) is positive, so that the weights (1 + p) of positives
and (1 − p)(1 + p) of negatives, p the model's own prediction, make the gradient unbiased. One step a sample.

FSIW, feedback shift importance weighting (Yasui et al., WWW 2020): a round that has converted weighs 1/F(age), one that
has not (1 − p)/(1 − p·F(age)): what will be over what is seen.

Differs from both, which predict and do not explore: β̃ ~ N(β̂, c²·H⁻¹), H the information of the rounds, is sampled,
and the action with the largest logit is played. FNW's steps are those of Newton's method, H⁻¹ times the gradient.
FSIW's F is estimated from the conversions of closed rounds, where Yasui et al. fit two more models, and weights are at
most 10. Both have a constant feature, and a window after which conversions are ignored.
"""

from dataclasses import dataclass

import numpy as np

from latecomer.core.state import Array
from latecomer.experiments.arena.rivals.glm_ucb import add_constant, fit_logistic, sigmoid
from latecomer.experiments.arena.rivals.history import Delays, History, next_fit

LARGEST_WEIGHT = 10.0
PRIOR = 4.0
"""The weight of a uniform delay in F̂, in conversions."""


@dataclass(frozen=True)
class FakeNegativeWeightedTS:
    """A template of FNW, as `simulate` takes it."""

    dim: int
    window: int
    exploration: float = 1.0
    ridge: float = 1.0

    def fresh(self, seed: int) -> "FakeNegativeRule":
        """Make a rule for one run."""
        return FakeNegativeRule(self, np.random.default_rng(seed))


@dataclass(frozen=True)
class FeedbackShiftWeightedTS:
    """A template of FSIW, as `simulate` takes it."""

    dim: int
    window: int
    exploration: float = 1.0
    ridge: float = 0.1

    def fresh(self, seed: int) -> "FeedbackShiftRule":
        """Make a rule for one run."""
        return FeedbackShiftRule(self, np.random.default_rng(seed))


class _SampledLogistic:
    """β̃ ~ N(β̂, c²·H⁻¹), and the action with the largest logit."""

    def __init__(self, template: FakeNegativeWeightedTS | FeedbackShiftWeightedTS, rng: np.random.Generator) -> None:
        size = template.dim + 1
        self._rng, self._exploration, self._ridge = rng, template.exploration, template.ridge
        self.history = History(size, template.window)
        self.beta, self.information = np.zeros(size), template.ridge * np.eye(size)

    def _choose(self, features: Array) -> int:
        upper = np.linalg.cholesky(self.information).T
        noise = np.linalg.solve(upper, self._rng.standard_normal(len(self.beta)))
        index = int(np.argmax(features @ (self.beta + self._exploration * noise)))
        self.history.append(features[index])
        return index


class FakeNegativeRule(_SampledLogistic):
    """A run of FNW."""

    def decide(self, actions: Array) -> int:
        """Choose, and feed the round in as a negative."""
        index = self._choose(add_constant(actions))
        x = self.history.actions[-1]
        chance = float(sigmoid(x @ self.beta))
        self.information += chance * (1.0 - chance) * np.outer(x, x)
        self._step(-(1.0 - chance) * (1.0 + chance) * chance * x)
        return index

    def convert(self, round: int) -> None:
        """Feed the round in again, as a positive."""
        if self.history.convert(round):
            x = self.history.actions[round - 1]
            chance = float(sigmoid(x @ self.beta))
            self._step((1.0 + chance) * (1.0 - chance) * x)

    def _step(self, ascent: Array) -> None:
        self.beta += np.linalg.solve(self.information, ascent)


class FeedbackShiftRule(_SampledLogistic):
    """A run of FSIW."""

    _due = 1

    def decide(self, actions: Array) -> int:
        """Choose; fit the model again where it is due."""
        if self.history.rounds >= self._due:
            self.fit()
        return self._choose(add_constant(actions))

    def convert(self, round: int) -> None:
        """Record a conversion."""
        self.history.convert(round)

    def fit(self) -> None:
        """Fit β̂ to all rounds, weighted, and compute their information."""
        history = self.history
        values, features = history.converted.astype(np.float64), history.actions
        matured = estimate_maturity(history.delays[: history.closed], history.ages, history.window)
        weights = shift_weights(sigmoid(features @ self.beta), matured, values)
        self.beta = fit_logistic(features, values, self.beta, ridge=self._ridge, weights=weights)
        chances = sigmoid(features @ self.beta)
        curvatures = weights * chances * (1.0 - chances)
        self.information = self._ridge * np.eye(len(self.beta)) + (features.T * curvatures) @ features
        self._due = next_fit(history.rounds)


def estimate_maturity(closed_delays: Delays, ages: Delays, window: int) -> Array:
    """F̂ at the ages: the conversions of closed rounds, and a uniform delay that weighs as much as four."""
    delays = np.sort(closed_delays[closed_delays >= 0])
    seen = np.searchsorted(delays, ages, side="right")
    return np.asarray((seen + PRIOR * (ages + 1.0) / (window + 1.0)) / (len(delays) + PRIOR))


def shift_weights(chances: Array, matured: Array, values: Array) -> Array:
    """1/F where a round has converted, (1 − p)/(1 − pF) where it has not."""
    positive = 1.0 / np.maximum(matured, 1.0 / LARGEST_WEIGHT)
    return np.where(values > 0.0, positive, (1.0 - chances) / (1.0 - chances * matured))
