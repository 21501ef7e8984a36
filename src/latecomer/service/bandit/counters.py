"""What has happened to a bandit, in numbers."""

from typing import Any

import numpy as np

from latecomer.core.feedback import ACCEPTED
from latecomer.core.state import Integers
from latecomer.policies.base.decision import VERDICTS

_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86_400
_IN_TIME = np.array(
    [_SECOND, 10, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY],
    float,
)
_IN_ROUNDS = np.array([4**power for power in range(12)], float)
_THOUSAND = 1000
_SAVED = ("conversions", "revocations", "before_decision", "delays", "waited")


class Counters:
    """Verdicts by their numbers, and how long accepted conversions took."""

    def __init__(self, in_rounds: bool) -> None:
        self.conversions = np.zeros(len(VERDICTS), np.int64)
        self.revocations = np.zeros(len(VERDICTS), np.int64)
        self.before_decision = np.zeros(1, np.int64)
        """Accepted conversions that occurred before their decisions, as they say; they have no delay."""
        self.edges = _IN_ROUNDS if in_rounds else _IN_TIME
        self.delays = np.zeros(len(self.edges) + 1, np.int64)
        self.waited = np.zeros(2, np.int64)
        """How long they took in all, rounds or microseconds: thousands, of which 64 bits hold enough, and the rest."""
        self._unit = 1 if in_rounds else 1_000_000

    def add_conversions(self, verdicts: Integers, delays: Integers) -> Integers:
        """Count them, and the delays of those that were accepted; the places of those before their decisions."""
        self.conversions += np.bincount(verdicts, minlength=len(VERDICTS))
        taken = delays[(verdicts == ACCEPTED) & (delays >= 0)]
        self.delays += np.bincount(np.searchsorted(self.edges, taken / self._unit), minlength=len(self.delays))
        self.waited[:] = divmod(self._total() + int(taken.sum()), _THOUSAND)
        early = np.flatnonzero(delays < 0)
        self.before_decision += len(early)
        return early

    @property
    def delay_sum(self) -> float:
        """How long accepted conversions took in all, in the unit of the edges."""
        return self._total() / self._unit

    def _total(self) -> int:
        thousands, rest = self.waited.tolist()
        return int(thousands * _THOUSAND + rest)

    def add_revocations(self, verdicts: Integers) -> None:
        """Count them."""
        self.revocations += np.bincount(verdicts, minlength=len(VERDICTS))

    @staticmethod
    def by_name(counts: Integers) -> dict[str, int]:
        """The counts by their verdicts."""
        return {verdict.value: int(count) for verdict, count in zip(VERDICTS, counts, strict=True)}

    def plain(self) -> dict[str, Any]:
        """As a snapshot holds them."""
        return {name: getattr(self, name).tolist() for name in _SAVED}

    def restore(self, plain: dict[str, Any]) -> None:
        """Become what a snapshot holds."""
        for name, values in plain.items():
            getattr(self, name)[:] = values
