"""Decision ids: the number of a round, and a tag that only this history of the store can have made.

An id is "<number in hexadecimal>-<tag>". The tag is BLAKE2b of the number, 12 bytes, keyed with the secret that was in
force when the round was decided. The first decision after an opening of the store begins a new secret. So a history
that was cut, by a restore or by lost rows, gives other ids to the rounds that it plays anew: those of the lost ones are
unknown. And an id cannot be guessed from another.
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
        Rounds of the log that the bandit was replayed from which it lacks. A number is a round plus these, so that the
        ids that were given before the replay stay what they were.
    """

    def __init__(self, skipped: int = 0) -> None:
        self._skipped = skipped
        self._firsts: list[int] = []
        self._secrets: list[bytes] = []
        self.is_current = False
        """Tell whether the latest secret is of this opening, so that rounds may go on with it."""

    @property
    def known(self) -> list[tuple[int, bytes]]:
        """Every secret with the first round that it is in force for, oldest first."""
        return list(zip(self._firsts, self._secrets, strict=True))

    def add(self, known: Iterable[tuple[int, bytes]]) -> None:
        """Take over secrets that a log or a snapshot tells of, in their order; those that are known change nothing."""
        for first, secret in known:
            if not self._firsts or first > self._firsts[-1]:
                self._firsts.append(first)
                self._secrets.append(secret)
            elif first == self._firsts[-1]:
                self._secrets[-1] = secret  # the one before was in force for no round

    def renew(self, first: int) -> bytes:
        """Begin a secret of this opening, in force from round `first` on; return its event for the log."""
        secret = secrets.token_bytes(SECRET_SIZE)
        self.add([(first, secret)])
        self.is_current = True
        return pack_secret(SECRET, first, secret)

    def forget(self, round: int) -> None:
        """Drop the secrets that are in force for no round after this one."""
        gone = max(0, bisect_right(self._firsts, round + 1) - 1)
        del self._firsts[:gone], self._secrets[:gone]

    def id_of(self, round: int) -> str:
        """The id of a round's decision; empty where its secret is not known."""
        place = bisect_right(self._firsts, round)
        if not place:
            return ""
        number = round + self._skipped
        tag = blake2b(number.to_bytes(8, "little"), key=self._secrets[place - 1], digest_size=_TAG).hexdigest()
        return f"{number:x}-{tag}"

    def round_of(self, decision_id: str) -> int:
        """The round of an id; 0 where this history did not make it."""
        digits = decision_id.partition("-")[0]
        if not 0 < len(digits) <= _LONGEST or not decision_id.isascii():
            return 0
        try:
            round_ = int(digits, 16) - self._skipped
        except ValueError:
            return 0
        return round_ if round_ > 0 and compare_digest(self.id_of(round_), decision_id) else 0


def secrets_of(told: Payload) -> list[tuple[int, bytes]]:
    """The secrets that a payload begins, each with its first round."""
    found = told.records(SECRET)
    return list(zip(found["round"].tolist(), found["secret"].tolist(), strict=True))
