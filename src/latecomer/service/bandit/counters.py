"""Counts of a bandit's reports by verdict, and a histogram of delays."""

from typing import Any

import numpy as np

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import Integers
from latecomer.policies.base.bulk import Credited
from latecomer.policies.base.decision import VERDICTS

_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86_400
_IN_TIME = np.array(
    [_SECOND, 10, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY],
    float,
)
_IN_ROUNDS = np.array([4**power for power in range(12)], float)
_THOUSAND = 1000
_NO_DELAY = np.iinfo(np.int64).max
"""The delay of a conversion that is not the first of its decision: not counted."""
_SAVED = ("conversions", "revocations", "before_decision", "delays", "delay_total", "capped")


class Counters:
    """Counts by verdict, and the delays of accepted conversions."""

    def __init__(self, in_rounds: bool) -> None:
        self.conversions = np.zeros(len(VERDICTS), np.int64)
        self.revocations = np.zeros(len(VERDICTS), np.int64)
        self.before_decision = np.zeros(1, np.int64)
        """Accepted conversions with an `occurred_at` before their decision; they have no delay."""
        self.edges = _IN_ROUNDS if in_rounds else _IN_TIME
        self.delays = np.zeros(len(self.edges) + 1, np.int64)
        self.delay_total = np.zeros(2, np.int64)
        """The sum of delays in rounds or microseconds, as thousands and the rest: one int64 could overflow."""
        self.capped = np.zeros(1, np.int64)
        """Accepted conversions whose decision was credited with no more than the scale of the reward."""
        self._unit = 1 if in_rounds else 1_000_000

    def add_conversions(self, verdicts: Integers, delays: Integers) -> Integers:
        """Count conversions and the delays of accepted ones; return the indices of those before their decisions."""
        self.conversions += np.bincount(verdicts, minlength=len(VERDICTS))
        accepted = delays[(verdicts == ACCEPTED) & (delays >= 0) & (delays != _NO_DELAY)]
        self.delays += np.bincount(np.searchsorted(self.edges, accepted / self._unit), minlength=len(self.delays))
        self.delay_total[:] = divmod(self._total() + int(accepted.sum()), _THOUSAND)
        early = np.flatnonzero(delays < 0)
        self.before_decision += len(early)
        return early

    def add_purchases(self, found: Credited) -> Integers:
        """Count conversions with amounts; return the indices of those before their decisions."""
        self.capped += int(found.is_capped.sum())
        return self.add_conversions(found.verdicts, np.where(found.is_first, found.delays, _NO_DELAY))

    @property
    def delay_sum(self) -> float:
        """The sum of the delays of accepted conversions, in the unit of the edges."""
        return self._total() / self._unit

    def _total(self) -> int:
        thousands, rest = self.delay_total.tolist()
        return int(thousands * _THOUSAND + rest)

    def add_revocations(self, verdicts: Integers) -> None:
        """Count revocations by verdict."""
        self.revocations += np.bincount(verdicts, minlength=len(VERDICTS))

    @staticmethod
    def name_verdicts(counts: Integers) -> dict[str, int]:
        """Return counts keyed by the verdicts' names."""
        return {verdict.value: int(count) for verdict, count in zip(VERDICTS, counts, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return the counters as plain lists, for a snapshot."""
        return {name: getattr(self, name).tolist() for name in _SAVED}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the values of a snapshot."""
        for name, values in saved.items():
            getattr(self, name)[:] = values
