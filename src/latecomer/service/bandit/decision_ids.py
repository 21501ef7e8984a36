"""Decision ids: the number of a round, and a tag that only this history of the store can have made.

An id is "<number in hexadecimal>-<tag>". The tag is BLAKE2b of the number, 12 bytes, keyed with the secret that was in
force when the round was decided. The first decision after the store is opened begins a new secret. After a restore from
a copy, or after lost rows, the rounds that are decided again get other ids, and the ids of lost decisions are unknown.
An id cannot be guessed from another.
"""

import secrets
from bisect import bisect_right
from collections.abc import Iterable
from hashlib import blake2b
from hmac import compare_digest

from latecomer.service.bandit.events import SECRET, SECRET_SIZE, Payload, pack_secret

_TAG = 12
"""Bytes of a tag: nobody guesses 96 bits."""
_LONGEST = 15
"""Hexadecimal digits of a number, which then fits 64 bits."""


class DecisionIds:
    """The secrets of one bandit, each with the first round that it is in force for, and the ids that follow.

    Parameters
    ----------
    skipped
        Rounds that this bandit lacks of the log that it was replayed from. An id's number is the round plus these, so
        that ids given before the replay stay valid.
    """

    def __init__(self, skipped: int = 0) -> None:
        self._skipped = skipped
        self._firsts: list[int] = []
        self._secrets: list[bytes] = []
        self._hashes: list[blake2b] = []
        """By secret, the hash of nothing keyed with it; a copy takes half the time of a new one."""
        self.is_current = False
        """True where the latest secret was begun since the store was opened."""

    @property
    def known(self) -> list[tuple[int, bytes]]:
        """Every secret with the first round that it is in force for, oldest first."""
        return list(zip(self._firsts, self._secrets, strict=True))

    def add(self, known: Iterable[tuple[int, bytes]]) -> None:
        """Add secrets read from a log or a snapshot, in their order; known ones change nothing."""
        for first, secret in known:
            if not self._firsts or first > self._firsts[-1]:
                self._firsts.append(first)
                self._secrets.append(secret)
                self._hashes.append(_make_hash(secret))
            elif first == self._firsts[-1]:
                self._secrets[-1], self._hashes[-1] = secret, _make_hash(secret)  # the one before was for no round

    def renew(self, first: int) -> bytes:
        """Begin a secret that is in force from round `first` on; return its event for the log."""
        secret = secrets.token_bytes(SECRET_SIZE)
        self.add([(first, secret)])
        self.is_current = True
        return pack_secret(SECRET, first, secret)

    def forget(self, round: int) -> None:
        """Drop the secrets that are in force for no round after this one."""
        gone = max(0, bisect_right(self._firsts, round + 1) - 1)
        del self._firsts[:gone], self._secrets[:gone], self._hashes[:gone]

    def id_of(self, round: int) -> str:
        """Return the id of a round's decision; empty where its secret is not known."""
        place = bisect_right(self._firsts, round)
        if not place:
            return ""
        return _make_id(self._hashes[place - 1], round + self._skipped)

    def ids_of(self, first: int, count: int) -> list[str]:
        """Return the ids of the decisions of so many rounds, from the first on."""
        place = bisect_right(self._firsts, first)
        if not place or place != bisect_right(self._firsts, first + count - 1):
            return [self.id_of(round_) for round_ in range(first, first + count)]
        keyed, number = self._hashes[place - 1], first + self._skipped
        return [_make_id(keyed, each) for each in range(number, number + count)]

    def find_round(self, decision_id: str) -> int:
        """Return the round of an id; 0 where this history did not give it."""
        digits = decision_id.partition("-")[0]
        if not 0 < len(digits) <= _LONGEST or not decision_id.isascii():
            return 0
        try:
            round_ = int(digits, 16) - self._skipped
        except ValueError:
            return 0
        return round_ if round_ > 0 and compare_digest(self.id_of(round_), decision_id) else 0


def _make_id(keyed: blake2b, number: int) -> str:
    tag = keyed.copy()
    tag.update(number.to_bytes(8, "little"))
    return f"{number:x}-{tag.hexdigest()}"


def _make_hash(secret: bytes) -> blake2b:
    return blake2b(key=secret, digest_size=_TAG)


def read_secrets(payload: Payload) -> list[tuple[int, bytes]]:
    """Return the secrets that begin in a payload, each with its first round."""
    found = payload.records(SECRET)
    return list(zip(found["round"].tolist(), found["secret"].tolist(), strict=True))
