"""Replay of a policy that learns as it goes: rejection sampling from a log, in the order of time.

A round is accepted with probability π(a)·c/e(a): π is the probability of the logged action a under the policy as it
stands then, e the propensity and c a lower bound of all propensities. The accepted rounds are distributed as the
policy's own play; it records them, and hears of their conversions when they come. With w = 1{accepted}/c,
E[w | a] = π(a)/e(a): the estimate of accepted rounds is SNIPS with these weights, and so are its interval and its lift.
"""

from copy import deepcopy
from heapq import heappop, heappush

import numpy as np

from latecomer.delays.distribution import Floats
from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.logged_decisions import make_events, read_actions
from latecomer.evaluation.maturity import Maturity
from latecomer.evaluation.passes import TargetSums
from latecomer.evaluation.policy_targets import ReplayTarget
from latecomer.evaluation.sums import empty_sums, sum_rounds
from latecomer.policies.base import bulk
from latecomer.policies.base.learning import NEVER, LoggedDecisions
from latecomer.timestamps import to_datetime


def replay_policy(log: DecisionLog, target: ReplayTarget, maturity: Maturity, *, rows: int) -> TargetSums:
    """Play a policy through the log, and sum the rounds that it accepts."""
    run = _Replay(log, target)
    items = len(log.items)
    found = TargetSums(empty_sums(maturity.bins), np.zeros(items), np.zeros(items))
    for batch in log.ordered_batches(rows=rows):
        accepted = run.play(batch)
        outcomes, matured, watched = maturity.observe(batch)
        sums = sum_rounds(accepted / run.least, outcomes, matured, watched=watched, bins=maturity.bins)
        logged = np.bincount(batch.action, minlength=items).astype(np.float64) if items else np.zeros(0)
        planned = np.bincount(batch.action, weights=accepted, minlength=items) if items else np.zeros(0)
        found += TargetSums(sums, planned.astype(np.float64), logged)
    return found


class _Replay:
    """A policy on its way through a log."""

    def __init__(self, log: DecisionLog, target: ReplayTarget) -> None:
        self.least = log.least_propensity
        self._target, self._policy = target, deepcopy(target.policy)
        self._rng = np.random.default_rng(target.seed)
        self._waiting: list[tuple[int, int, float]] = []

    def play(self, batch: LogBatch) -> Floats:
        """Return 1 for each round that is accepted; the policy learns from those."""
        accepted = np.zeros(len(batch))
        coins = self._rng.random((2, len(batch)))
        candidates = np.flatnonzero(coins[0] < self.least / batch.propensity)
        asked = batch.take(np.isin(np.arange(len(batch)), candidates))
        if not len(asked):
            return accepted
        rows, starts = read_actions(asked, self._policy.dim, encoder=self._target.encoder)
        events = make_events(asked, rows, starts, encoder=self._target.encoder, scale=self._target.scale)
        for place, row in enumerate(candidates.tolist()):
            self._hear(int(events.stamps[place]))
            chance = self._ask(rows[starts[place] : starts[place + 1]], int(events.stamps[place]))
            if coins[1, row] < chance[asked.action[place]]:
                accepted[row] = 1.0
                self._record(events, place)
        return accepted

    def _ask(self, actions: Floats, stamp: int) -> Floats:
        at = None if isinstance(self._policy.window, int) else to_datetime(stamp)
        return self._policy.probabilities(actions, at=at)

    def _record(self, events: LoggedDecisions, place: int) -> None:
        """Let the policy record a round, and wait for its conversion."""
        one = slice(place, place + 1)
        bulk.record(self._policy, events.actions[one], events.summaries[one], events.stamps[one])
        if events.arrivals[place] != NEVER:
            heappush(self._waiting, (int(events.arrivals[place]), self._policy.rounds, float(events.values[place])))

    def _hear(self, stamp: int) -> None:
        """Tell the policy of the conversions that have come before a time."""
        while self._waiting and self._waiting[0][0] < stamp:
            arrival, round_, value = heappop(self._waiting)
            bulk.convert(self._policy, np.array([round_]), np.array([value]), np.array([arrival]))
