"""GLM-UCB with delays: Zhou, Xu and Blanchet (NeurIPS 2019), and Howson, Pike-Burke and Filippi (AISTATS 2023).

A logistic model is fitted to the rounds whose reward is known, and the index is ⟨x, β̂⟩ + α_t·‖x‖_{V⁻¹} with
α_t = c·[(σ/κ)·√((d/2)·ln(1 + 2t/d) + ln(1/δ)) + √G_t], σ = ½ and κ the least slope of the link, taken as ¼, its most
favourable value. Zhou et al. add √G_t, G_t the number of rounds without their reward, to the radius, and V has the
rounds with theirs. Howson et al. leave G_t out, and V has every round that was played.

Differs from both: rewards are censored here, so that a round's reward is known when its window closes, converted or
not; actions get a constant feature, x = (a, 1)/√2, for rates that do not vanish; β̂ has a ridge in place of rounds that
are played at random first. At c = 1 the radius is the theorem's.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from latecomer.core.state import Array
from latecomer.experiments.arena.rivals.history import History, next_fit

SLOPE, NOISE, DELTA = 0.25, 0.5, 0.1
NEWTON_STEPS = 4


def add_constant(actions: Array) -> Array:
    """Return (a, 1)/√2 of every action."""
    return np.concatenate([actions, np.ones((len(actions), 1))], axis=1) * sqrt(0.5)


def sigmoid(logits: Array) -> Array:
    """1/(1 + e^{−z}), of logits that are kept from overflowing."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0))))


def fit_logistic(features: Array, values: Array, beta: Array, *, ridge: float, weights: Array | float = 1.0) -> Array:
    """Newton steps from β towards the minimum of Σ w·loss + ½·ridge·‖β‖²."""
    for _ in range(NEWTON_STEPS):
        chances = sigmoid(features @ beta)
        gradient = features.T @ (weights * (chances - values)) + ridge * beta
        curvature = (features.T * (weights * chances * (1.0 - chances))) @ features + ridge * np.eye(len(beta))
        step = np.linalg.solve(curvature, gradient)
        beta = beta - step * min(1.0, 2.0 / max(float(np.linalg.norm(step)), 1e-12))
    return beta


@dataclass(frozen=True)
class DelayedGLMUCB:
    """A template of the rule, as `simulate` takes it.

    `counts_pending` is Zhou et al.'s radius and V; without it, Howson et al.'s.
    """

    dim: int
    window: int
    exploration: float = 1.0
    counts_pending: bool = True
    ridge: float = 0.1

    def fresh(self, seed: int) -> "DelayedGLMRule":  # noqa: ARG002 - nothing in it is random
        """Make a rule for one run."""
        return DelayedGLMRule(self)


class DelayedGLMRule:
    """A run of it."""

    def __init__(self, template: DelayedGLMUCB) -> None:
        self._template, size = template, template.dim + 1
        self.history = History(size, template.window)
        self.beta, self.V_inv = np.zeros(size), np.eye(size)
        self._due, self._in_V = 1, 0

    def radius(self) -> float:
        """α_t."""
        size, t = len(self.beta), self.history.rounds + 1
        radius = NOISE / SLOPE * sqrt(0.5 * size * log(1.0 + 2.0 * t / size) + log(1.0 / DELTA))
        pending = self.history.rounds - self.history.closed
        return self._template.exploration * (radius + (sqrt(pending) if self._template.counts_pending else 0.0))

    def decide(self, actions: Array) -> int:
        """Play the largest index."""
        history, features = self.history, add_constant(actions)
        while self._in_V < (history.closed if self._template.counts_pending else history.rounds):
            u = self.V_inv @ history.actions[self._in_V]
            self.V_inv -= np.outer(u, u) / (1.0 + float(history.actions[self._in_V] @ u))
            self._in_V += 1
        if history.closed >= self._due:
            known = slice(history.closed)
            values = history.converted[known].astype(np.float64)
            self.beta = fit_logistic(history.actions[known], values, self.beta, ridge=self._template.ridge)
            self._due = next_fit(history.closed)
        norms = np.sqrt(np.sum(features * (features @ self.V_inv), axis=1))
        index = int(np.argmax(features @ self.beta + self.radius() * norms))
        history.append(features[index])
        return index

    def convert(self, round: int) -> None:
        """Record a conversion."""
        self.history.convert(round)
