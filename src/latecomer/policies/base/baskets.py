"""Baskets: the conversions of each credited decision, so that several count and each can be taken back.

A table has them by round, with what a correction needs once the ring no longer holds the round: its action, its stamp
and the algorithm's own numbers. Conversion ids are kept as digests.
"""

import math
from datetime import timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.durations import Span, parse_window
from latecomer.errors import InputError
from latecomer.validation import check_text

DIGEST = 16
LONGEST = 200
ANONYMOUS = bytes(DIGEST)
"""Stands for the id of a conversion that has none: a decision has at most one such."""
CORRECTION = b"\xff" * DIGEST
"""Stands for the id of the amount that `correct` has put in place of all."""
_LEAST = 1024
"""Baskets in a table before it is looked through for forgotten ones."""


def digest_conversion(conversion_id: object) -> bytes:
    """Return 16 bytes that identify a conversion; `InputError` where its id is no text of 1 to 200 characters."""
    if conversion_id is None:
        return ANONYMOUS
    text = check_text("conversion_id", conversion_id, most=LONGEST)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST, person=b"conversion").digest()


def parse_returns(returns: Span | None, window: int | timedelta) -> int:
    """Give the time for returns in the unit of the window, rounds or microseconds; None is none."""
    if returns is None:
        return 0
    found = parse_window(returns, name="returns")
    if isinstance(found, int) != isinstance(window, int):
        unit = "a number of rounds" if isinstance(window, int) else "a time such as '90d'"
        raise InputError(f"returns must be {unit}, as the window is; got {returns!r}", field="returns")
    return found if isinstance(found, int) else found // timedelta(microseconds=1)


class Basket(Struct):
    """The conversions of a decision: their amounts by digest, NaN once taken back, and the credit that they make."""

    round: int
    stamp: int
    action: Array
    numbers: Array
    """The algorithm's own numbers of the round: those of its `round_fields`."""
    credit: float
    amounts: dict[bytes, float]

    @property
    def kept_amounts(self) -> list[float]:
        """The amounts that were not taken back."""
        return [amount for amount in self.amounts.values() if not math.isnan(amount)]

    def take_back(self, digest: bytes) -> None:
        """Take one conversion back for good: its id stays known."""
        self.amounts[digest] = math.nan

    def take_all_back(self) -> None:
        """Take every conversion back."""
        self.amounts = dict.fromkeys(self.amounts, math.nan)


class BasketTable:
    """Baskets by round, in the order of their first conversions."""

    def __init__(self) -> None:
        self._baskets: dict[int, Basket] = {}
        self._rounds: dict[bytes, list[int]] = {}
        self._limit = _LEAST

    def __len__(self) -> int:
        return len(self._baskets)

    @property
    def rounds(self) -> list[int]:
        """The rounds that have a basket."""
        return list(self._baskets)

    def find(self, round: int) -> Basket | None:
        """Return a round's basket, if it has one."""
        return self._baskets.get(round)

    def find_rounds(self, digest: bytes, oldest_stamp: int) -> list[int]:
        """Return the rounds from that stamp on that have a conversion of that id; none for conversions without one."""
        return [round_ for round_ in self._rounds.get(digest, ()) if self._baskets[round_].stamp >= oldest_stamp]

    def add(self, basket: Basket, oldest_stamp: int) -> None:
        """Add a basket; those of earlier stamps than `oldest_stamp` may be forgotten."""
        self._baskets[basket.round] = basket
        for digest in basket.amounts:
            self._note(digest, basket.round)
        if len(self._baskets) > self._limit:
            self._replace([kept for kept in self._baskets.values() if kept.stamp >= oldest_stamp])

    def add_amount(self, basket: Basket, digest: bytes, amount: float) -> None:
        """Add a conversion to a basket of the table."""
        basket.amounts[digest] = amount
        self._note(digest, basket.round)

    def _note(self, digest: bytes, round: int) -> None:
        if digest not in (ANONYMOUS, CORRECTION):
            self._rounds.setdefault(digest, []).append(round)

    def _replace(self, baskets: list[Basket]) -> None:
        self._baskets = {basket.round: basket for basket in baskets}
        self._rounds = {}
        for basket in baskets:
            for digest in basket.amounts:
                self._note(digest, basket.round)
        self._limit = max(_LEAST, 2 * len(baskets))

    # ---- files ----

    def arrays(self, oldest_stamp: int) -> dict[str, npt.NDArray[Any]]:
        """Return the table by name, without what may be forgotten; nothing where it is empty."""
        baskets = [basket for basket in self._baskets.values() if basket.stamp >= oldest_stamp]
        if not baskets:
            return {}
        amounts = [pair for basket in baskets for pair in basket.amounts.items()]
        return {
            "baskets/rounds": np.array([[one.round, one.stamp, len(one.amounts)] for one in baskets], np.int64),
            "baskets/credits": np.array([one.credit for one in baskets]),
            "baskets/actions": np.array([one.action for one in baskets]),
            "baskets/numbers": np.array([one.numbers for one in baskets]).reshape(len(baskets), -1),
            "baskets/digests": np.frombuffer(b"".join(digest for digest, _ in amounts), np.uint8).reshape(-1, DIGEST),
            "baskets/amounts": np.array([amount for _, amount in amounts]),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]], dim: int, numbers: int) -> None:
        """Become the table whose `arrays` these are; `ValueError` where they do not fit together."""
        self._replace([])
        if "baskets/rounds" not in arrays:
            return
        rounds, credits, actions, own, digests, amounts = (
            arrays[f"baskets/{name}"] for name in ("rounds", "credits", "actions", "numbers", "digests", "amounts")
        )
        count, ends = len(rounds), np.cumsum(rounds[:, 2]).tolist()
        shapes = ((count, 3), (count,), (count, dim), (count, numbers), (ends[-1], DIGEST), (ends[-1],))
        if tuple(one.shape for one in (rounds, credits, actions, own, digests, amounts)) != shapes:
            raise ValueError("its baskets do not fit together")
        keys = [bytes(row) for row in digests]
        self._replace(
            [
                Basket(
                    round_,
                    stamp,
                    np.array(actions[i], np.float64),
                    np.array(own[i], np.float64),
                    float(credits[i]),
                    dict(zip(keys[ends[i] - size : ends[i]], amounts[ends[i] - size : ends[i]].tolist(), strict=True)),
                )
                for i, (round_, stamp, size) in enumerate(rounds.tolist())
            ]
        )
