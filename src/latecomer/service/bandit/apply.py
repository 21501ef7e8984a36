"""A bandit moved by what a log says: to the same bits as by the calls that the log has kept.

Each kind's events are made arrays of their own first, all at once; what is left for each turn is the policy's work.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.feedback import UNKNOWN
from latecomer.policies.base import bulk
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.decision_ids import secrets_of
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.feedback import arrival


def apply_payload(bandit: Bandit, payload: bytes, stamp: int) -> None:
    """Move a bandit by rows of its log; `ValueError` where they do not follow from what it is."""
    if moved_by(bandit, payload, stamp) != payload:
        raise ValueError("its reports are judged otherwise when they are replayed")


def moved_by(bandit: Bandit, payload: bytes, stamp: int) -> bytes:
    """Move a bandit by rows of its log, or of another's: the events as this bandit would have written them.

    Parameters
    ----------
    bandit
        The one that moves.
    payload, stamp
        The events, and the latest stamp of their rows.
    """
    told = Payload(payload, bandit.dim)
    if any(epoch.tobytes().hex() != bandit.descriptor.epoch for epoch in told.records(events.BEGUN)["epoch"]):
        raise ValueError("it begins another bandit")
    _check_secrets(told, bandit.rounds)
    bandit.ids.add(secrets_of(told))
    moves: dict[int, _Decisions | _Conversions | _Revocations] = {
        events.DECISION: _Decisions(bandit, told),
        events.CONVERSION: _Conversions(bandit, told),
        events.REVOCATION: _Revocations(bandit, told),
    }
    families = told.kinds[told.kinds != events.LABEL]
    families[families == events.DECISION_WITH_REQUEST] = events.DECISION
    for family, part in events.turns(families):
        if family in moves:
            moves[family].move(part)
    for kind in moves.values():
        kind.end(told)
    strangers = told.records(events.UNKNOWN)
    bandit.counters.conversions[UNKNOWN] += int(strangers["conversions"].sum())
    bandit.counters.revocations[UNKNOWN] += int(strangers["revocations"].sum())
    bandit.unsaved += len(families)
    bandit.stamp = max(bandit.stamp, stamp)
    return told.tobytes()


def _check_secrets(told: Payload, rounds: int) -> None:
    """An id secret stands before the decision of the round that it begins with."""
    begun = told.numbers(events.SECRET)
    if len(begun):
        following = rounds + 1 + np.searchsorted(told.numbers(events.DECISION), begun)
        if not np.array_equal(told.records(events.SECRET, begun)["round"], following):
            raise ValueError("it has an id secret that begins with another round than the next")


class _Decisions:
    """Decisions with and without a request id, which the policy does not tell apart."""

    def __init__(self, bandit: Bandit, told: Payload) -> None:
        self._bandit = bandit
        run = told.records(events.DECISION)
        if not np.array_equal(run["round"], np.arange(bandit.rounds + 1, bandit.rounds + 1 + len(run))):
            raise ValueError(f"its decisions do not follow round {bandit.rounds}")
        self._actions, self._stamps = _plain(run["action"]), _plain(run["stamp"])
        self._offers = np.ascontiguousarray(run["offer"])

    def move(self, part: slice) -> None:
        bulk.record(self._bandit.policy, self._actions[part], self._offers[part], self._stamps[part])

    def end(self, told: Payload) -> None:
        self._bandit.rounds += len(self._stamps)
        asked = told.records(events.DECISION_WITH_REQUEST)
        self._bandit.requests.update(asked["request"].tolist(), asked["round"].tolist())


class _Reports:
    """Conversions or revocations, and what this bandit says to them."""

    kind: int

    def __init__(self, bandit: Bandit, told: Payload) -> None:
        self._bandit, self._numbers = bandit, told.numbers(self.kind)
        self._run = told.records(self.kind)
        self._rounds = _plain(self._run["round"])
        self._came = arrival(self._run["occurred"], self._run["stamp"])
        self._verdicts = np.empty(len(self._run), np.int64)

    def end(self, told: Payload) -> None:
        if np.array_equal(self._run["verdict"], self._verdicts):
            return
        self._run["verdict"] = self._verdicts
        told.put(self._numbers, self._run)


class _Conversions(_Reports):
    kind = events.CONVERSION

    def __init__(self, bandit: Bandit, told: Payload) -> None:
        super().__init__(bandit, told)
        self._values, self._delays = _plain(self._run["value"]), np.empty(len(self._run), np.int64)

    def move(self, part: slice) -> None:
        self._verdicts[part], self._delays[part] = bulk.convert(
            self._bandit.policy, self._rounds[part], self._values[part], self._came[part]
        )

    def end(self, told: Payload) -> None:
        super().end(told)
        self._bandit.counters.add_conversions(self._verdicts, self._delays)


class _Revocations(_Reports):
    kind = events.REVOCATION

    def move(self, part: slice) -> None:
        self._verdicts[part] = self._bandit.taken_back(self._rounds[part], self._came[part])

    def end(self, told: Payload) -> None:
        super().end(told)
        self._bandit.counters.add_revocations(self._verdicts)


def _plain(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Aligned and in a row, as kernels want them; a copy, for a record's fields are neither."""
    return np.array(column)
