"""Deferred decisions: choices that count only once they are activated, because they were shown.

A deferred decision takes the random numbers of its choice and changes nothing else. Its activation records it, as a
decision of that moment. Until then it waits in a table, at most for the activation timeout; after that the table knows
its round, for as long as reports of it are expected.
"""

from collections import deque
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
_NUMBERS, _ACTIVATED = ("number", "stamp", "index"), ("number", "round", "stamp")
Arrays = dict[str, npt.NDArray[Any]]


class DeferredDecision(Struct):
    """A choice that waits for its activation; `note` and `key` are the service's own."""

    number: int
    stamp: int
    index: int
    score: float
    action: Array
    summary: Shorts
    note: bytes = b""
    subject: bytes = b""
    key: bytes = b""


class ActivatedDecision(Struct):
    """The round that a deferred decision has become, at the stamp of its activation.

    It keeps the service's `note` until its window and grace have passed, and its `key` for longer.
    """

    number: int
    round: int
    stamp: int
    note: bytes = b""
    key: bytes = b""


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
    """The deferred decisions that may still be activated, and those that were, with their rounds."""

    def __init__(self, dim: int, timeout: int) -> None:
        self._dim, self.timeout = dim, timeout
        self.next_number = 1
        self.activated = self.expired = 0
        self._waiting: dict[int, DeferredDecision] = {}
        self._activated: dict[int, ActivatedDecision] = {}
        self._noted: deque[ActivatedDecision] = deque()
        """Those of the activated that still have their notes."""
        self._numbers: dict[int, int] = {}
        """The numbers of the activated, by their rounds."""

    @property
    def waiting(self) -> int:
        """The number of those that may still be activated."""
        return len(self._waiting)

    @property
    def notes(self) -> Iterator[bytes]:
        """The service's notes of those that wait, and of those whose window and grace are open."""
        yield from (entry.note for entry in self._waiting.values())
        yield from (shown.note for shown in self._noted)

    @property
    def note_count(self) -> int:
        """The number of `notes`."""
        return len(self._waiting) + len(self._noted)

    def add(self, entry: DeferredDecision) -> None:
        """Add a deferred decision; its number is the next, or a later one."""
        self._waiting[entry.number] = entry
        self.next_number = entry.number + 1

    def find(self, number: int) -> DeferredDecision | None:
        """Return a decision that waits for its activation."""
        return self._waiting.get(number)

    def find_activated(self, number: int) -> ActivatedDecision | None:
        """Return a decision that was activated; None where that is long ago, or it never was."""
        return self._activated.get(number)

    def find_by_round(self, round: int) -> ActivatedDecision | None:
        """Return the decision that was activated as a round."""
        return self._activated.get(self._numbers.get(round, 0))

    def find_round(self, number: int) -> int:
        """Return the round of an activated decision; 0 where it is none, or is forgotten."""
        shown = self._activated.get(number)
        return 0 if shown is None else shown.round

    def note_activation(self, entry: DeferredDecision, round: int, stamp: int) -> None:
        """Note that a deferred decision has become a round, at a stamp that is no earlier than those before."""
        del self._waiting[entry.number]
        self._add_activated(ActivatedDecision(entry.number, round, stamp, entry.note, entry.key))
        self.activated += 1

    def _add_activated(self, shown: ActivatedDecision) -> None:
        self._activated[shown.number] = shown
        self._numbers[shown.round] = shown.number
        if shown.note:
            self._noted.append(shown)

    def drop_expired(self, now: int, kept: int, remembered: int) -> None:
        """Drop those that were not activated in time; of rounds before `kept`, those activated before `remembered`.

        All of these rounds, which the policy has forgotten, lose their notes. Numbers, rounds and stamps grow, so that
        the first that stays ends each search.
        """
        while self._waiting and now - (entry := next(iter(self._waiting.values()))).stamp > self.timeout:
            del self._waiting[entry.number]
            self.expired += 1
        while self._noted and self._noted[0].round < kept:
            self._noted.popleft().note = b""
        while self._activated and (shown := next(iter(self._activated.values()))).stamp < remembered:
            if shown.round >= kept:
                break
            del self._activated[shown.number], self._numbers[shown.round]

    # ---- files ----

    def arrays(self) -> Arrays:
        """Return the table by name; nothing where no decision was ever deferred."""
        if self.next_number == 1:
            return {}
        waiting, shown = list(self._waiting.values()), list(self._activated.values())
        return {
            "deferred/counts": np.array([self.next_number, self.activated, self.expired], np.int64),
            "deferred/numbers": _make_rows([[getattr(one, name) for name in _NUMBERS] for one in waiting], _NUMBERS),
            "deferred/scores": np.array([one.score for one in waiting], np.float64),
            "deferred/actions": np.array([one.action for one in waiting]).reshape(len(waiting), self._dim),
            "deferred/summaries": np.array([one.summary for one in waiting], np.int16).reshape(-1, self._dim + 2),
            "deferred/subjects": np.array([list(one.subject or _NOBODY) for one in waiting], np.uint8).reshape(
                -1, DIGEST
            ),
            "deferred/activated": _make_rows(
                [[getattr(one, name) for name in _ACTIVATED] for one in shown], _ACTIVATED
            ),
            **_pack_texts("notes", [*(one.note for one in waiting), *(one.note for one in shown)]),
            **_pack_texts("keys", [*(one.key for one in waiting), *(one.key for one in shown)]),
        }

    def restore(self, arrays: Arrays) -> None:
        """Become the table whose `arrays` these are; `ValueError` where they do not fit together."""
        for each in (self._waiting, self._activated, self._numbers, self._noted):
            each.clear()
        if "deferred/counts" not in arrays:
            return
        self.next_number, self.activated, self.expired = arrays["deferred/counts"].tolist()
        names = ("numbers", "scores", "actions", "summaries", "subjects", "activated")
        numbers, scores, actions, summaries, subjects, activated = (arrays[f"deferred/{name}"] for name in names)
        notes, keys = _unpack_texts("notes", arrays), _unpack_texts("keys", arrays)
        count, all_ = len(numbers), len(numbers) + len(activated)
        shapes = ((count, len(_NUMBERS)), (count,), (count, self._dim), (count, self._dim + 2), (count, DIGEST))
        if tuple(one.shape for one in (numbers, scores, actions, summaries, subjects)) != shapes or (
            (len(notes), len(keys), activated.shape) != (all_, all_, (all_ - count, len(_ACTIVATED)))
        ):
            raise ValueError("its deferred decisions do not fit together")
        for i, (number, stamp, index) in enumerate(numbers.tolist()):
            score, subject = float(scores[i]), bytes(subjects[i])
            entry = DeferredDecision(number, stamp, index, score, actions[i], summaries[i], notes[i], key=keys[i])
            entry.subject = b"" if subject == _NOBODY else subject
            self._waiting[number] = entry
        for i, (number, round_, stamp) in enumerate(activated.tolist(), start=count):
            self._add_activated(ActivatedDecision(number, round_, stamp, notes[i], keys[i]))


def _make_rows(rows: list[list[int]], names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(len(rows), len(names))


def _pack_texts(name: str, texts: list[bytes]) -> Arrays:
    """Return texts as two arrays: their sizes, and all of them one after the other."""
    sizes = np.array([len(text) for text in texts], np.int64)
    return {f"deferred/{name[:-1]}_sizes": sizes, f"deferred/{name}": np.frombuffer(b"".join(texts), np.uint8)}


def _unpack_texts(name: str, arrays: Arrays) -> list[bytes]:
    """Return the texts of `_pack_texts`; `ValueError` where the sizes are not theirs."""
    sizes, data = arrays[f"deferred/{name[:-1]}_sizes"], arrays[f"deferred/{name}"].tobytes()
    ends = np.cumsum(sizes).tolist()
    if (ends[-1] if ends else 0) != len(data) or (sizes < 0).any():
        raise ValueError("its deferred decisions do not fit together")
    return [data[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
