"""Subjects: conversions that name a user instead of a decision, credited to the decisions that the user saw.

A table has the rounds of each subject that the policy holds, by a digest of the subject: no name is kept.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from latecomer.validation import check_text

DIGEST = 16
LONGEST = 200
Attribution = Literal["last", "first", "all"]
ATTRIBUTIONS: tuple[Attribution, ...] = ("last", "first", "all")
_LEAST = 1024
"""Rounds in a table before it is looked through for forgotten ones."""


def digest_subject(subject: object) -> bytes:
    """Return 16 bytes that identify a subject; `InputError` where it is no text of 1 to 200 characters."""
    text = check_text("subject", subject, most=LONGEST)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST, person=b"subject").digest()


def choose_rounds(rounds: list[int], attribution: Attribution) -> list[int]:
    """Return those of a subject's rounds, in their order, that a conversion is credited to."""
    if attribution == "all" or not rounds:
        return rounds
    return rounds[-1:] if attribution == "last" else rounds[:1]


class SubjectTable:
    """The rounds of each subject, in their order; at most twice as many as the policy holds."""

    def __init__(self) -> None:
        self._rounds: dict[bytes, list[int]] = {}
        self._count, self._limit = 0, _LEAST

    def add(self, digest: bytes, round: int, kept: int) -> None:
        """Add a subject's round; rounds before `kept` may be forgotten."""
        self._rounds.setdefault(digest, []).append(round)
        self._count += 1
        if self._count > self._limit:
            self._forget(kept)

    def find(self, digest: bytes, kept: int) -> list[int]:
        """Return a subject's rounds that the policy holds, oldest first."""
        return [round_ for round_ in self._rounds.get(digest, ()) if round_ >= kept]

    def _forget(self, kept: int) -> None:
        found = {digest: [one for one in rounds if one >= kept] for digest, rounds in self._rounds.items()}
        self._replace({digest: rounds for digest, rounds in found.items() if rounds})

    def _replace(self, rounds: dict[bytes, list[int]]) -> None:
        self._rounds, self._count = rounds, sum(map(len, rounds.values()))
        self._limit = max(_LEAST, 2 * self._count)

    # ---- files ----

    def arrays(self, kept: int) -> dict[str, npt.NDArray[Any]]:
        """Return the table by name, without what may be forgotten; nothing where it is empty."""
        pairs = [(one, digest) for digest, rounds in self._rounds.items() for one in rounds if one >= kept]
        if not pairs:
            return {}
        pairs.sort()
        digests = np.frombuffer(b"".join(digest for _, digest in pairs), np.uint8).reshape(-1, DIGEST)
        return {"subjects/rounds": np.array([one for one, _ in pairs], np.int64), "subjects/digests": digests}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the table whose `arrays` these are; `ValueError` where they do not fit together."""
        rounds = arrays.get("subjects/rounds", np.empty(0, np.int64))
        digests = arrays.get("subjects/digests", np.empty((0, DIGEST), np.uint8))
        if rounds.dtype != np.int64 or digests.dtype != np.uint8 or digests.shape != (len(rounds), DIGEST):
            raise ValueError("its subjects do not fit together")
        found: dict[bytes, list[int]] = {}
        pairs: Iterable[tuple[int, bytes]] = zip(rounds.tolist(), map(bytes, digests), strict=True)
        for one, digest in pairs:
            found.setdefault(digest, []).append(one)
        self._replace(found)
