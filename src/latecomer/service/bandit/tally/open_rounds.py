"""Facts of open rounds, and of those in their grace: who chose, which action id, and what was credited so far."""

from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Integers

CONTROL, CONVERTED = 1, 2
"""Flags of a round: the control chose; a conversion is credited."""
UNIT = 1 << 32
"""A propensity of 1 as a whole number: sums of whole numbers do not depend on their order."""
UNKNOWN = 4
"""Flag of a round whose propensity is not known: it may be another system's, imported."""
FEATURES = 8
"""Context features whose segments are counted."""
_NARROW = np.dtype([("slot", "u1"), ("flags", "u1"), ("value", "<f8")])
_WIDE = np.dtype([*_NARROW.descr, ("segments", "u1", (FEATURES,))])
Facts = npt.NDArray[Any]
FACTS = _WIDE
"""A record with everything that is known of a round."""


class OpenRounds:
    """A record for each round from `first` on: 10 bytes, and 8 more once there are segments."""

    def __init__(self, first: int) -> None:
        self.first = first
        """The oldest round that it has."""
        self.open = first
        """The oldest round that is open."""
        self._facts = np.zeros(64, _NARROW)
        self._begin = self._end = 0

    @property
    def next(self) -> int:
        """The round after the last one."""
        return self.first + self._end - self._begin

    @property
    def has_segments(self) -> bool:
        """True once a round had segments."""
        return self._facts.dtype == _WIDE

    def append(
        self,
        slots: npt.NDArray[np.uint8],
        flags: npt.NDArray[np.uint8],
        segments: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        """Add the next rounds; `segments` has a row of codes for each."""
        count = len(slots)
        if segments is not None and not self.has_segments:
            wide = np.zeros(len(self._facts), _WIDE)
            for field in ("slot", "flags", "value"):
                wide[field] = self._facts[field]
            self._facts = wide
        if self._end + count > len(self._facts):
            held = self._facts[self._begin : self._end]
            room = np.zeros(max(64, 2 * (len(held) + count)), held.dtype)
            room[: len(held)] = held
            self._facts, self._begin, self._end = room, 0, len(held)
        part = self._facts[self._end : self._end + count]
        part["slot"], part["flags"], part["value"] = slots, flags, 0
        if self.has_segments:
            part["segments"] = 0 if segments is None else segments
        self._end += count

    def find(self, rounds: Integers) -> Facts:
        """Return copies of the records of some rounds."""
        return self._facts[rounds - self.first + self._begin]

    def write(self, rounds: Integers, facts: Facts) -> None:
        """Change the records of some rounds."""
        self._facts[rounds - self.first + self._begin] = facts

    def read_open(self) -> Facts:
        """Return copies of the records of the open rounds, from `open` on."""
        return self._facts[self._begin + self.open - self.first : self._end].copy()

    def close(self, oldest: int) -> Facts:
        """Close the rounds before `oldest`; return the records of those that were open."""
        before, self.open = self.open, max(self.open, min(oldest, self.next))
        start = self._begin - self.first
        return self._facts[start + before : start + self.open].copy()

    def forget(self, kept: int) -> tuple[Integers, Facts]:
        """Forget the rounds before `kept`, which are closed; return those that are credited, with their records."""
        count = max(0, min(kept, self.open) - self.first)
        gone = self._facts[self._begin : self._begin + count]
        credited = np.flatnonzero(gone["flags"] & CONVERTED)
        found = self.first + credited, gone[credited]
        self._begin += count
        self.first += count
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the records for a snapshot."""
        facts = self._facts[self._begin : self._end]
        saved = {"first": self.first, "open": self.open, "facts": facts.tobytes()}
        return {**saved, "has_segments": self.has_segments}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the records of a snapshot."""
        self.first, self.open, self._begin = saved["first"], saved["open"], 0
        self._facts = np.frombuffer(saved["facts"], _WIDE if saved["has_segments"] else _NARROW).copy()
        self._end = len(self._facts)


def split_arms(flags: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.bool_], ...]:
    """Tell which rounds the policy chose, which the control, and of which neither is known."""
    is_control, is_unknown = (flags & CONTROL) != 0, (flags & UNKNOWN) != 0
    return ~(is_control | is_unknown), is_control, is_unknown
