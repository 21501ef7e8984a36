"""Facts of credited rounds that the policy holds no more, so that a late return changes the counts that they are in."""

from typing import Any

import numpy as np

from latecomer.core.state import Integers
from latecomer.service.bandit.tally.open_rounds import FACTS, Facts

_LEAST = 1024
"""Rounds that are kept before those beyond correction are looked for."""


class CreditedRounds:
    """Records of rounds, in the order of the rounds."""

    def __init__(self) -> None:
        self.rounds: Integers = np.empty(0, np.int64)
        self._facts: Facts = np.empty(0, FACTS)
        self._limit = _LEAST

    def add(self, rounds: Integers, facts: Facts) -> None:
        """Add rounds, which are later than all that it has."""
        added = np.zeros(len(rounds), FACTS)
        for field in facts.dtype.names or ():
            added[field] = facts[field]
        self.rounds, self._facts = np.concatenate([self.rounds, rounds]), np.concatenate([self._facts, added])

    def find(self, rounds: Integers) -> tuple[Integers, Facts]:
        """Return the places of those rounds that it has, in the order in which they are given, and their records."""
        places = np.searchsorted(self.rounds, rounds)
        inside = places < len(self.rounds)
        places = places[inside][self.rounds[places[inside]] == rounds[inside]]
        return places, self._facts[places]

    def write(self, places: Integers, facts: Facts) -> None:
        """Change records."""
        self._facts[places] = facts

    def forget_before(self, round: int) -> None:
        """Forget rounds before this one, where there are many."""
        if len(self.rounds) > self._limit:
            kept = self.rounds >= round
            self.rounds, self._facts = self.rounds[kept], self._facts[kept]
            self._limit = max(_LEAST, 2 * len(self.rounds))

    @property
    def is_full(self) -> bool:
        """True where it is time to forget."""
        return len(self.rounds) > self._limit

    def to_dict(self) -> dict[str, Any]:
        """Return the records for a snapshot; nothing where there are none."""
        if not len(self.rounds):
            return {}
        return {"rounds": self.rounds.astype("<i8").tobytes(), "facts": self._facts.tobytes()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the records of a snapshot."""
        if saved:
            self.rounds = np.frombuffer(saved["rounds"], "<i8").astype(np.int64)
            self._facts = np.frombuffer(saved["facts"], FACTS).copy()
