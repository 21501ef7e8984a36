"""Latecomer's own policies as targets: frozen after a part of the log, or learning as they go."""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.logged_decisions import read_actions
from latecomer.evaluation.plan import Plan
from latecomer.evaluation.target import Target
from latecomer.policies.base.policy import LinearPolicy
from latecomer.timestamps import to_datetime
from latecomer.validation import check_positive, check_share, short_repr

_MOST_REMEMBERED = 100_000


@dataclass(frozen=True, eq=False)
class FrozenTarget(Target):
    """A policy that learns from the earlier part of the log, and then plays on as it stands."""

    policy: LinearPolicy
    encoder: Any = None
    train: float = 0.5
    scale: float = 1.0
    since: float = -np.inf
    _remembered: dict[bytes, Floats] = field(default_factory=dict, repr=False)

    def prepare(self, log: DecisionLog) -> "FrozenTarget":
        """Return the target that has learnt from what was known at the end of its part of the log."""
        if self.train == 0.0:
            return self
        cut = log.first + self.train * (log.last - log.first)
        policy = deepcopy(self.policy)
        policy.learn(replace(log.cut(before=cut), until=min(cut, log.until)), encoder=self.encoder, scale=self.scale)
        return replace(self, policy=policy, since=cut, _remembered={})

    def plan(self, batch: LogBatch) -> Plan:
        """Return the policy's probabilities; nothing is recorded, and time stands still."""
        rows, starts = read_actions(batch, self.policy.dim, encoder=self.encoder)
        return Plan(chances=np.concatenate([self._ask(rows[start:stop]) for start, stop in pairwise(starts.tolist())]))

    def _ask(self, actions: Floats) -> Floats:
        """Return the probabilities of a set; those of a set that came before are remembered."""
        key = actions.tobytes()
        found = self._remembered.get(key)
        if found is None:
            policy = self.policy
            at = None if isinstance(policy.window, int) else to_datetime(policy.latest_stamp)
            found = policy.probabilities(actions, at=at)
            if len(self._remembered) < _MOST_REMEMBERED:
                self._remembered[key] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_remembered": {}}


@dataclass(frozen=True, eq=False)
class ReplayTarget(Target):
    """A policy that learns as it goes, on the rounds of the log that match its own choices (`rejection.py`)."""

    policy: LinearPolicy
    encoder: Any = None
    scale: float = 1.0
    seed: int = 0

    def plan(self, batch: LogBatch) -> Plan:  # noqa: ARG002
        """Refuse: the rounds must come in the order of time."""
        raise InputError("a policy that learns as it goes has no plan: `evaluate` replays it", field="policies")


def frozen(policy: LinearPolicy, *, train: float = 0.5, encoder: Any = None, scale: float = 1.0) -> FrozenTarget:
    """Make a target of a policy that learns from the earlier part of the log and is judged, unchanged, on the rest.

    It learns from what was known at the end of that part: conversions that came later are not seen. It is judged on the
    later rounds alone, and its lift is over what was logged in the same rounds.

    Parameters
    ----------
    policy
        A template, which is not changed.
    train
        The share of the log's time to learn from; 0 judges the policy as it stands on all rounds.
    encoder
        The encoder that makes actions of the log's features; without one, offers are rows of numbers, and items unit
        vectors.
    scale
        The largest value that a conversion can have; values are divided by it for the policy.
    """
    _check_policy(policy)
    share = check_share("train", train)
    if share == 1.0:
        raise InputError("train must be below 1: the policy is judged on the rest of the log", field="train")
    return FrozenTarget(policy, encoder, share, check_positive("scale", scale))


def replay(policy: LinearPolicy, *, encoder: Any = None, scale: float = 1.0, seed: int = 0) -> ReplayTarget:
    """Make a target of a policy that learns as it goes, from the rounds that match its own choices.

    A round counts where the policy would have played the logged action and a coin of probability c/e falls, with e the
    round's propensity and c the least of the log: what is left is distributed as if the policy itself had played, on
    a share c of the traffic. Its figure is that of a policy that has to learn from so little; one that learns from
    all of the traffic, as a live one does, learns sooner.

    Parameters
    ----------
    policy
        A template, which is not changed: it begins with what it knows.
    encoder, scale
        As in `frozen`.
    seed
        Of the coins.
    """
    _check_policy(policy)
    return ReplayTarget(policy, encoder, check_positive("scale", scale), seed)


def _check_policy(policy: object) -> None:
    if not isinstance(policy, LinearPolicy):
        raise InputError(f"policy must be one of Latecomer's, such as recommended(5, '7d'); got {short_repr(policy)}")
