"""A world: θ, what it offers, and how late its conversions are."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.delays import DelayLaw, draw
from latecomer.errors import InputError
from latecomer.policies.base.kernels import NORM_LIMIT
from latecomer.simulation.actions import ActionLaw, is_changing, is_listed
from latecomer.simulation.logged_actions import FromLog, Rows
from latecomer.simulation.mean_rewards import ROUNDING, mean_rewards
from latecomer.simulation.stages import Stage
from latecomer.simulation.theta_schedule import Change, ThetaSchedule
from latecomer.validation import check_call, check_choice, check_number

BLOCK = 1024
"""Rounds drawn at once. Part of what a seed means: another size is another world."""


@dataclass(frozen=True, eq=False)
class Block:
    """A stretch of rounds, as every policy meets it."""

    actions: Array
    """(N, d): a law's list of actions, or those of all rounds one after the other"""
    action_means: Array
    """(N,), their probabilities of a conversion"""
    offers: Rows
    """(rounds, K), the rows of `actions` that each round offers; a set that is smaller than others ends with −1"""
    delay_factors: Array | None = None
    """(N,), how many times longer each action's delays are, where they depend on it"""

    def rows_of(self, i: int) -> Rows:
        """The rows of `actions` that the i-th round offers."""
        rows: Rows = self.offers[i]
        return rows if rows[-1] >= 0 else rows[rows >= 0]

    @property
    def sets(self) -> Array:
        """The action sets, a (rounds, K, d) array; `rows_of` tells where they differ in size."""
        return np.asarray(self.actions[self.offers])

    @property
    def means(self) -> Array:
        """The probabilities of a conversion, a (rounds, K) array."""
        return np.asarray(self.action_means[self.offers])


@lru_cache(maxsize=16)
def _number_rows(rounds: int, count: int) -> Rows:
    """Return the rows of actions that lie one after the other, `count` of them in each round."""
    return np.arange(rounds * count, dtype=np.int32).reshape(rounds, count)


class World:
    """Rewards are Bernoulli of mean ⟨a, θ⟩ + intercept, and come `delays` later.

    Parameters
    ----------
    theta
        θ. The theory wants its norm at most 1; what is checked is that every mean is a probability. {0: θ, 5000: θ'}
        changes it at round 5000 (the first round is 0); regret is then against the best action of each round.
    actions
        An action law, such as `lc.actions.Binary(10)`.
    delays
        A delay law, such as `lc.delays.Geometric(mean=100)`.
    reward
        "linear"; or "logistic", where the mean is 1/(1 + exp(−⟨a, θ⟩ − intercept)) and no linear policy is right.
    intercept
        Added to every ⟨a, θ⟩.
    delay_slope
        κ, a number for each feature: the delay of action a is ⌊D·exp⟨a, κ⟩⌋, D drawn from `delays`. No policy takes
        this into account; `delays.test_dependence` tells it from a log. Without it, delays do not depend on the action.
    change
        Where θ is given at several rounds: "jump" at each, or "drift" from one to the next by equal steps.
    stage
        A signal before the conversion, `lc.Stage(…)`, for policies that have `stages` and rules that can `reach` one.
    """

    def __init__(
        self,
        *,
        theta: npt.ArrayLike | Mapping[int, npt.ArrayLike],
        actions: ActionLaw,
        delays: DelayLaw,
        reward: Literal["linear", "logistic"] = "linear",
        intercept: float = 0.0,
        delay_slope: npt.ArrayLike | None = None,
        change: Change = "jump",
        stage: Stage | None = None,
    ) -> None:
        self.schedule = ThetaSchedule(theta, change) if isinstance(theta, Mapping) else None
        """θ of every round, where it changes; `theta` is then that of the first."""
        try:
            self.theta: Array = np.array(theta if self.schedule is None else self.schedule.vectors[0], np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"theta must be a vector of finite numbers; got {theta!r}", field="theta") from None
        self.actions = actions
        self.delays = delays
        self.stage = stage
        check_choice("reward", reward, ("linear", "logistic"))
        self.reward: Literal["linear", "logistic"] = reward
        self.intercept = check_number("intercept", intercept, "a finite number")
        if not math.isfinite(self.intercept):
            raise InputError(f"intercept must be a finite number; got {intercept!r}", field="intercept")
        vectors = self.theta if self.schedule is None else self.schedule.vectors
        if self.theta.ndim != 1 or not self.theta.size or not np.isfinite(vectors).all():
            raise InputError(f"theta must be a vector of finite numbers; got {theta!r}", field="theta")
        self.delay_slope = None if delay_slope is None else self._check_slope(delay_slope)
        for name, law in (("actions", actions), ("delays", delays)):
            if isinstance(law, type) or not callable(getattr(law, "sample", None)):
                raise InputError(f"{name} must be a law with a method sample; got {law!r}", field=name)
        if self.is_ragged and self.delay_slope is not None:
            raise InputError("delay_slope is for action sets of one size; leave it out", field="delay_slope")
        # A law that cannot fit is refused here, not after an hour.
        if isinstance(actions, FromLog):
            self._check_columns(actions)
        if self.schedule is not None:
            for first in self.schedule.rounds.tolist():
                self._change_block(np.random.default_rng(0), BLOCK, first, self.schedule)
        elif not isinstance(actions, FromLog):
            self._sample_block(np.random.default_rng(0), BLOCK, 0)
        self._check_list()
        draw(delays, np.random.default_rng(0), BLOCK)

    @property
    def dim(self) -> int:
        """The number of features of an action, d."""
        return len(self.theta)

    def __repr__(self) -> str:
        more = f", reward={self.reward!r}" if self.reward != "linear" else ""
        more += f", intercept={self.intercept!r}" if self.intercept else ""
        more += f", delay_slope={self.delay_slope.tolist()}" if self.delay_slope is not None else ""
        more += ', change="drift"' if self.schedule is not None and self.schedule.change == "drift" else ""
        more += f", stage={self.stage!r}" if self.stage is not None else ""
        theta = self.theta.tolist() if self.schedule is None else self.schedule
        return f"World(theta={theta}, actions={self.actions!r}, delays={self.delays!r}{more})"

    def block(self, rng: np.random.Generator, rounds: int, first: int = 0) -> Block:
        """Draw what rounds first, first + 1, … offer (from 0), and check that every mean is a probability."""
        if self.schedule is not None:
            return self._change_block(rng, rounds, first, self.schedule)
        if is_listed(self.actions) and self._listed is not None:
            actions, means = self._listed
            rows = self.actions.sample_rows(rng, first, rounds, self.dim)
            return Block(actions, means, rows, self._delay_factors(actions))
        return self._sample_block(rng, rounds, first)

    def _check_columns(self, law: FromLog) -> None:
        if law.actions.shape[1] != self.dim:
            raise InputError(
                f"actions must have {self.dim} columns, since theta has {self.dim} entries; {law!r} has "
                f"{law.actions.shape[1]}",
                field="actions",
            )

    @property
    def is_ragged(self) -> bool:
        """True where action sets are of different sizes."""
        return isinstance(self.actions, FromLog) and self.actions.is_ragged

    @cached_property
    def listed_count(self) -> int | None:
        """K, where action sets are drawn from a list: they are the same, however many rounds are drawn at once."""
        if not is_listed(self.actions) or self._listed is None or self.schedule is not None:
            return None
        return int(self.actions.sample_rows(np.random.default_rng(0), 0, 1, self.dim).shape[1])

    @cached_property
    def _listed(self) -> tuple[Array, Array] | None:
        """The actions of a law that draws from a list, and their mean rewards."""
        listed = self.actions.list_actions(self.dim) if is_listed(self.actions) and self.schedule is None else None
        return None if listed is None else (listed, self._mean_rewards(listed))

    def _check_list(self) -> None:
        """Refuse a list that has an action without probability, however rare."""
        _ = self._listed

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the list of actions, which may be long and is made anew."""
        return {name: value for name, value in self.__dict__.items() if name != "_listed"}

    def _sample_block(self, rng: np.random.Generator, rounds: int, first: int) -> Block:
        sets = self._check_sets(self._sets(rng, rounds, first), rounds)
        actions = np.require(sets, requirements=["C", "A", "W"]).reshape(-1, self.dim)
        rows = _number_rows(rounds, sets.shape[1])
        return Block(actions, self._mean_rewards(actions), rows, self._delay_factors(actions))

    def _check_sets(self, sets: Array, rounds: int) -> Array:
        if sets.ndim != 3 or sets.shape[0] != rounds or sets.shape[1] < 1 or sets.shape[2] != self.dim:
            raise InputError(
                f"actions must be drawn as a ({rounds}, K, {self.dim}) array, since theta has {self.dim} entries; "
                f"{self.actions!r} gave shape {sets.shape}",
                field="actions",
            )
        return sets

    def _change_block(self, rng: np.random.Generator, rounds: int, first: int, schedule: ThetaSchedule) -> Block:
        """Draw the offers of rounds of which each has its own θ: no two rounds share an action."""
        if self.is_ragged:
            raise InputError("theta must not change where a log's action sets differ in size", field="theta")
        law, sets = self.actions, None
        if is_listed(law) and (listed := law.list_actions(self.dim)) is not None:
            sets = listed[law.sample_rows(rng, first, rounds, self.dim)]
        if sets is None:
            sets = self._check_sets(self._sets(rng, rounds, first), rounds)
        is_logistic, actions = self.reward == "logistic", np.ascontiguousarray(sets).reshape(-1, self.dim)
        means = schedule.mean_rewards(sets, first, self.intercept, logistic=is_logistic).ravel()
        is_right = (np.linalg.norm(actions, axis=1) <= NORM_LIMIT) & (abs(means - 0.5) <= 0.5 + ROUNDING)
        if not is_right.all():
            raise self._explain(actions[np.argmin(is_right)], float(means[np.argmin(is_right)]))
        return Block(actions, means, _number_rows(rounds, sets.shape[1]), self._delay_factors(actions))

    def _check_slope(self, given: npt.ArrayLike) -> Array:
        try:
            slope = np.array(given, np.float64)
        except (TypeError, ValueError, OverflowError):
            slope = np.empty(0)
        if slope.shape != self.theta.shape or not np.isfinite(slope).all():
            raise InputError(
                f"delay_slope must be {self.dim} finite numbers, one for each entry of theta; got {given!r}",
                field="delay_slope",
            )
        return slope

    def _delay_factors(self, actions: Array) -> Array | None:
        return None if self.delay_slope is None else np.exp(actions @ self.delay_slope)

    def _mean_rewards(self, actions: Array) -> Array:
        means = np.empty(len(actions))
        fault = mean_rewards(actions, self.theta, self.intercept, self.reward == "logistic", means)
        if fault >= 0:
            raise self._explain(actions[fault], float(means[fault]))
        return means

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
