"""Bootstrapped Thompson sampling with EM of the delays, after Gigli and Stella (UAI 2024).

Their posterior is a bootstrap: J models are fitted, each to the history with random weights of its own, and a decision
follows one of them, drawn at random. A model is fitted by expectation and maximisation over conversions that are still
to come, with a parametric delay law, so that it needs no knowledge of the delays.

Differs from the paper: rewards are linear in the action's features, with a ridge, where theirs are those of separate
arms; the law is geometric; a window closes a round; and models go on from where they were, `SWEEPS` of EM at a time,
each time that the history has grown by a thirty-second. Before there are data, models differ by their prior means.
"""

from dataclasses import dataclass

import numpy as np

from latecomer.core.state import Array
from latecomer.experiments.arena.rivals.history import Flags, History, next_fit

SWEEPS = 2
RATES = 1e-4, 1.0 - 1e-4


def expect_conversions(rates: Array, matured: Array, converted: Flags) -> Array:
    """E-step: 1 where a round has converted, else p(1 − F)/(1 − pF), F the share of conversions that would be seen."""
    return np.where(converted, 1.0, rates * (1.0 - matured) / (1.0 - rates * matured))


def maturity(hazard: float, ages: Array, window: int) -> Array:
    """F(age)/F(m) of a geometric delay on {1, 2, …}."""
    return np.asarray(np.expm1(ages * np.log1p(-hazard)) / np.expm1(max(window, 1) * np.log1p(-hazard)))


@dataclass(frozen=True)
class BootstrappedTS:
    """A template of the rule, as `simulate` takes it."""

    dim: int
    window: int
    replicates: int = 10
    ridge: float = 1.0

    def fresh(self, seed: int) -> "BootstrappedRule":
        """Make a rule for one run."""
        return BootstrappedRule(self, np.random.default_rng(seed))


class BootstrappedRule:
    """A run of it."""

    def __init__(self, template: BootstrappedTS, rng: np.random.Generator) -> None:
        self._rng, self._ridge, self._due = rng, template.ridge, 1
        self.history = History(template.dim, template.window)
        self.centres = 0.5 * rng.standard_normal((template.replicates, template.dim))
        self.thetas, self.hazards = self.centres.copy(), np.full(template.replicates, 1.0 / max(1, template.window))
        self.weights = np.empty((0, template.replicates))

    def decide(self, actions: Array) -> int:
        """Play the best action of one model."""
        if self.history.rounds >= self._due:
            self.fit()
        index = int(np.argmax(actions @ self.thetas[self._rng.integers(len(self.thetas))]))
        self.history.append(actions[index])
        return index

    def convert(self, round: int) -> None:
        """Record a conversion."""
        self.history.convert(round)

    def fit(self) -> None:
        """Take every model a few sweeps further."""
        count = self.history.rounds - len(self.weights)
        fresh = self._rng.exponential(size=(count, len(self.thetas)))
        self.weights = np.concatenate([self.weights, fresh])
        for j in range(len(self.thetas)):
            for _ in range(SWEEPS):
                self.sweep(j)
        self._due = next_fit(self.history.rounds)

    def sweep(self, j: int) -> None:
        """One E-step and one M-step of model j."""
        history, weights, window = self.history, self.weights[:, j], self.history.window
        actions, converted, ages = history.actions, history.converted, history.ages.astype(np.float64)
        rates = np.clip(actions @ self.thetas[j], *RATES)
        expected = expect_conversions(rates, maturity(float(self.hazards[j]), ages, window), converted)
        expected[: history.closed] = converted[: history.closed]
        gram = self._ridge * np.eye(actions.shape[1]) + (actions.T * weights) @ actions
        total = self._ridge * self.centres[j] + (weights * expected) @ actions
        self.thetas[j] = np.linalg.solve(gram, total)
        waited = np.where(converted, np.maximum(history.delays, 1), expected * ages)  # rounds in which it could come
        seen = float(weights @ converted)
        self.hazards[j] = np.clip((seen + 1.0) / (float(weights @ waited) + max(1, window)), 1e-6, 1.0 - 1e-6)
