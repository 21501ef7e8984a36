"""Deferred decisions: choices that count only once they are activated, because they were shown.

A deferred decision takes the random numbers of its choice and changes nothing else. Its activation records it, as a
decision of that moment. Until then it waits in a table, at most for the activation timeout.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.core.action_summary import Shorts
from latecomer.core.state import Array
from latecomer.durations import Span, parse_window
from latecomer.errors import InputError
from latecomer.policies.base.subjects import DIGEST

_NOBODY = bytes(DIGEST)
_NUMBERS = ("number", "stamp", "index", "round")


class DeferredDecision(Struct):
    """A choice that waits for its activation, or that was activated as `round`; `note` is the service's own."""

    number: int
    stamp: int
    index: int
    score: float
    action: Array
    summary: Shorts
    note: bytes = b""
    round: int = 0
    subject: bytes = b""


def parse_activation_timeout(timeout: Span | None, window: int | timedelta) -> int:
    """Give the timeout in the unit of the window, rounds or microseconds; None is the window itself."""
    found = window if timeout is None else parse_window(timeout, name="activation_timeout")
    if isinstance(found, int) != isinstance(window, int):
        unit = "a number of rounds" if isinstance(window, int) else "a time such as '1h'"
        raise InputError(
            f"activation_timeout must be {unit}, as the window is; got {timeout!r}", field="activation_timeout"
        )
    return found if isinstance(found, int) else found // timedelta(microseconds=1)


class DeferredTable:
    """The deferred decisions that may still be activated, and those that were and whose round the policy holds."""

    def __init__(self, dim: int, timeout: int) -> None:
        self._dim, self.timeout = dim, timeout
        self.next_number = 1
        self.activated = self.expired = 0
        self._entries: dict[int, DeferredDecision] = {}

    @property
    def waiting(self) -> int:
        """The number of those that may still be activated."""
        return sum(not entry.round for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[DeferredDecision]:
        return iter(self._entries.values())

    def add(self, entry: DeferredDecision) -> None:
        """Add a deferred decision; its number is the next, or a later one."""
        self._entries[entry.number] = entry
        self.next_number = entry.number + 1

    def find(self, number: int) -> DeferredDecision | None:
        """Return a deferred decision; None where it has expired or was never made."""
        return self._entries.get(number)

    def find_round(self, number: int, kept: int) -> int:
        """Return the round of an activated decision; 0 where it is not active, or the policy has forgotten it."""
        entry = self._entries.get(number)
        return 0 if entry is None or entry.round < kept else entry.round

    def note_activation(self, entry: DeferredDecision, round: int) -> None:
        """Note that a deferred decision has become a round."""
        entry.round = round
        self.activated += 1

    def drop_expired(self, now: int, kept: int) -> None:
        """Drop those that were not activated in time, and those whose round the policy has forgotten.

        Numbers and stamps grow, so that the first that waits ends the search for others that wait.
        """
        dropped = []
        for entry in self._entries.values():
            if entry.round:
                if entry.round < kept:
                    dropped.append(entry.number)
            elif now - entry.stamp > self.timeout:
                dropped.append(entry.number)
                self.expired += 1
            else:
                break
        for number in dropped:
            del self._entries[number]

    # ---- files ----

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the table by name; nothing where no decision was ever deferred."""
        if self.next_number == 1:
            return {}
        entries = list(self._entries.values())
        return {
            "deferred/counts": np.array([self.next_number, self.activated, self.expired], np.int64),
            "deferred/numbers": np.array([[getattr(e, name) for name in _NUMBERS] for e in entries], np.int64).reshape(
                len(entries), len(_NUMBERS)
            ),
            "deferred/scores": np.array([entry.score for entry in entries], np.float64),
            "deferred/actions": np.array([entry.action for entry in entries]).reshape(len(entries), self._dim),
            "deferred/summaries": np.array([e.summary for e in entries], np.int16).reshape(-1, self._dim + 2),
            "deferred/subjects": np.array([list(e.subject or _NOBODY) for e in entries], np.uint8).reshape(-1, DIGEST),
            "deferred/note_sizes": np.array([len(entry.note) for entry in entries], np.int64),
            "deferred/notes": np.frombuffer(b"".join(entry.note for entry in entries), np.uint8),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the table whose `arrays` these are; `ValueError` where they do not fit together."""
        self._entries.clear()
        if "deferred/counts" not in arrays:
            return
        self.next_number, self.activated, self.expired = arrays["deferred/counts"].tolist()
        columns = [arrays[f"deferred/{name}"] for name in ("scores", "actions", "summaries", "note_sizes")]
        notes, ends = arrays["deferred/notes"].tobytes(), np.cumsum(columns[3]).tolist()
        if (ends[-1] if ends else 0) != len(notes) or columns[1].shape != (len(ends), self._dim):
            raise ValueError("its deferred decisions do not fit together")
        subjects = [bytes(row) for row in arrays["deferred/subjects"]]
        for i, numbers in enumerate(arrays["deferred/numbers"].tolist()):
            number, stamp, index, round_ = numbers
            score, action, summary, size = float(columns[0][i]), columns[1][i], columns[2][i], int(columns[3][i])
            note = notes[ends[i] - size : ends[i]]
            subject = b"" if subjects[i] == _NOBODY else subjects[i]
            self._entries[number] = DeferredDecision(
                number, stamp, index, score, action, summary, note, round_, subject
            )
