"""A world: θ, what it offers, and how late its conversions are."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel
from latecomer.core.state import Array
from latecomer.delays import DelayLaw, draw
from latecomer.errors import InputError
from latecomer.policies.base.kernels import NORM_LIMIT
from latecomer.simulation.actions import ActionLaw, is_changing
from latecomer.tiers.tiered_kernel import TieredKernel
from latecomer.validation import check_call, check_choice, check_number

BLOCK = 1024
"""Rounds drawn at once. Part of what a seed means: another size is another world."""

_ROUNDING = 1e-9


@kernel
def _mean_rewards(sets: Array, theta: Array, intercept: float, logistic: bool, means: Array, best: Array) -> int:
    """Fill in the mean rewards and the best of each round; −1, or the first action too long or without probability."""
    count, dim = int(sets.shape[1]), int(sets.shape[2])
    for r in range(sets.shape[0]):
        highest = 0.0
        for k in range(count):
            mean, square = intercept, 0.0
            for i in range(dim):
                entry = sets[r, k, i]
                mean += entry * theta[i]
                square += entry * entry
            if logistic:
                mean = 1.0 / (1.0 + math.exp(-mean))
            means[r, k] = mean
            if not (square <= NORM_LIMIT * NORM_LIMIT and -_ROUNDING <= mean <= 1.0 + _ROUNDING):
                return r * count + k
            highest = mean if k == 0 else max(highest, mean)
        best[r] = highest
    return -1


mean_rewards = TieredKernel(
    _mean_rewards,
    lambda: (np.ones((1, 1, 1)), np.ones(1), 1.0, False, np.ones((1, 1)), np.ones(1)),
    label="the world",
)


@dataclass(frozen=True, eq=False)
class Block:
    """A stretch of rounds, as every policy meets it."""

    sets: Array
    """(rounds, K, d)"""
    means: Array
    """(rounds, K), the probabilities of a conversion"""
    best: Array
    """(rounds,), the best mean"""


class World:
    """Rewards are Bernoulli of mean ⟨a, θ⟩ + intercept, and come `delays` later.

    Parameters
    ----------
    theta
        θ. The theory wants its norm at most 1; what is checked is that every mean is a probability.
    actions
        An action law, such as `lc.actions.Binary(10)`.
    delays
        A delay law, such as `lc.delays.Geometric(mean=100)`.
    reward
        "linear"; or "logistic", where the mean is 1/(1 + exp(−⟨a, θ⟩ − intercept)) and no linear policy is right.
    intercept
        Added to every ⟨a, θ⟩.
    """

    def __init__(
        self,
        *,
        theta: npt.ArrayLike,
        actions: ActionLaw,
        delays: DelayLaw,
        reward: Literal["linear", "logistic"] = "linear",
        intercept: float = 0.0,
    ) -> None:
        try:
            self.theta: Array = np.array(theta, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"theta must be a vector of finite numbers; got {theta!r}", field="theta") from None
        self.actions = actions
        self.delays = delays
        check_choice("reward", reward, ("linear", "logistic"))
        self.reward: Literal["linear", "logistic"] = reward
        self.intercept = check_number("intercept", intercept, "a finite number")
        if not math.isfinite(self.intercept):
            raise InputError(f"intercept must be a finite number; got {intercept!r}", field="intercept")
        if self.theta.ndim != 1 or not self.theta.size or not np.isfinite(self.theta).all():
            raise InputError(f"theta must be a vector of finite numbers; got {theta!r}", field="theta")
        for name, law in (("actions", actions), ("delays", delays)):
            if isinstance(law, type) or not callable(getattr(law, "sample", None)):
                raise InputError(f"{name} must be a law with a method sample; got {law!r}", field=name)
        # A law that cannot fit is refused here, not after an hour.
        self.block(np.random.default_rng(0), BLOCK)
        draw(delays, np.random.default_rng(0), BLOCK)

    @property
    def dim(self) -> int:
        """The number of features of an action, d."""
        return len(self.theta)

    def __repr__(self) -> str:
        more = f", reward={self.reward!r}" if self.reward != "linear" else ""
        more += f", intercept={self.intercept!r}" if self.intercept else ""
        return f"World(theta={self.theta.tolist()}, actions={self.actions!r}, delays={self.delays!r}{more})"

    def block(self, rng: np.random.Generator, rounds: int, first: int = 0) -> Block:
        """Draw what rounds first, first + 1, … offer (from 0), and check that every mean is a probability."""
        sets = self._sets(rng, rounds, first)
        if sets.ndim != 3 or sets.shape[0] != rounds or sets.shape[1] < 1 or sets.shape[2] != self.dim:
            raise InputError(
                f"actions must be drawn as a ({rounds}, K, {self.dim}) array, since theta has {self.dim} entries; "
                f"{self.actions!r} gave shape {sets.shape}",
                field="actions",
            )
        sets = np.require(sets, requirements=["C", "A", "W"])
        means, best = np.empty(sets.shape[:2]), np.empty(rounds)
        fault = mean_rewards(sets, self.theta, self.intercept, self.reward == "logistic", means, best)
        if fault >= 0:
            raise self._explain(sets.reshape(-1, self.dim)[fault], float(means.ravel()[fault]))
        return Block(sets, means, best)

    def _sets(self, rng: np.random.Generator, rounds: int, first: int) -> Array:
        law = self.actions
        try:
            if is_changing(law):
                return np.asarray(law.sample_from(rng, first, rounds, self.theta), np.float64)
            return np.asarray(law.sample(rng, rounds, self.theta), np.float64)
        except TypeError:
            check_call(
                law, *(("sample_from", "rng", "first") if is_changing(law) else ("sample", "rng")), "rounds", "theta"
            )
            raise

    @staticmethod
    def _explain(action: Array, mean: float) -> InputError:
        norm = float(np.linalg.norm(action))
        if not norm <= NORM_LIMIT:
            return InputError(
                f"actions must be finite and of norm at most 1; {action.tolist()} has norm {norm:.6g}: "
                "divide every action by the largest norm that occurs",
                field="actions",
            )
        return InputError(
            f"every mean reward ⟨a, θ⟩ must be in [0, 1]; action {action.tolist()} has {mean:.6g}: "
            "change theta, or the actions"
        )
