"""Credits of a policy's decisions: made of one conversion or several, and corrected when these are taken back.

The kernels know one credit a round. Where a basket has more than that, the credit is replaced, in the ring while the
ring holds the round, and after that from the basket itself: B and all that was learnt from the round change by the
difference, as if the round had been credited with the other value.
"""

import math
from collections.abc import Collection

import numpy as np

from latecomer.core.conversions import ACCEPTED, DUPLICATE, LATE, REVOKED, UNKNOWN
from latecomer.core.state import new_ring
from latecomer.policies.base.baskets import CORRECTION, Basket, BasketTable
from latecomer.policies.base.deferring_policy import DeferringPolicy
from latecomer.policies.base.reward import RewardRule
from latecomer.policies.base.staged_code import find_place, find_slot


class CreditingPolicy(DeferringPolicy):
    """A policy that credits its decisions by a reward, and corrects what it has learnt.

    Verdicts are numbers here, as kernels return them. `stamp` is when a report occurred, `reported` when it came.
    """

    baskets: BasketTable
    reward: RewardRule
    keeps_baskets: bool
    """True where every conversion has a basket: where it is off, only one with an id has."""

    def credit_report(
        self, round_: int, amount: float, digest: bytes, stamp: int, reported: int, known: Collection[int]
    ) -> tuple[int, int, bool]:
        """Credit a conversion as `credit_conversion` does, unless its id is credited to another decision already.

        An id counts once, for as long as its conversion can be taken back: elsewhere it is a duplicate. `known` are the
        rounds that have the id already, as `find_conversion` returns them before the report credits any.
        """
        if not known or round_ in known:
            return self.credit_conversion(round_, amount, digest, stamp, reported)
        moment = max(reported if self.state.grace else stamp, self._now)
        verdict = self.state.judge_conversion(round_, moment)
        if verdict < LATE:
            verdict = LATE if self._is_outside(round_, stamp) else DUPLICATE
        return verdict, 0, False

    def credit_conversion(
        self, round_: int, amount: float, digest: bytes, stamp: int, reported: int
    ) -> tuple[int, int, bool]:
        """Judge a conversion and credit it: the verdict, the delay, and whether it is the first of its decision.

        The delay is −1 where it is unknown, and counts for the first alone.
        """
        basket, state = self.baskets.find(round_), self.state
        if basket is None:
            credit = self.reward.credit([amount])
            arrays = np.array([round_]), np.array([credit]), np.array([stamp]), np.array([reported])
            (verdict,), (delay,) = (found.tolist() for found in state.convert_many(*arrays))
            if verdict == ACCEPTED:
                self.baskets.add(self._make_basket(round_, credit, {digest: amount}), self.oldest_correctable)
            return verdict, delay, True
        verdict = state.code.convert(state.record, state.ring, round_, 0.0, stamp, reported)
        if verdict != DUPLICATE:  # it is late: a round with a basket has its credit already
            return verdict, 0, False
        if digest in basket.amounts or self.reward.aggregate == "first":
            return DUPLICATE, 0, False
        self.baskets.add_amount(basket, digest, amount)
        self._renew_credit(basket)
        return ACCEPTED, 0, False

    def revoke_conversion(self, round_: int, digest: bytes | None, stamp: int, reported: int) -> int:
        """Take one conversion of a decision back for good, or all of them where no digest is given."""
        basket = self.baskets.find(round_)
        if basket is None:
            if digest is None:
                return self.state.revoke(round_, stamp, reported)
            return LATE if self.state.judge_conversion(round_, max(reported, self._now)) == LATE else UNKNOWN
        if self._is_too_old(basket, stamp, reported):
            return LATE
        if digest is not None and digest not in basket.amounts:
            return UNKNOWN
        before = basket.kept_amounts
        if digest is None:
            basket.take_all_back()
        else:
            basket.take_back(digest)
        if len(basket.kept_amounts) == len(before):
            return DUPLICATE
        self._renew_credit(basket)
        return ACCEPTED

    def correct_credit(self, round_: int, amount: float, stamp: int, reported: int) -> int:
        """Replace all that a decision is credited with by one amount."""
        basket = self.baskets.find(round_)
        if basket is None:
            return self._correct_held(round_, self.reward.credit([amount]), max(stamp, reported))
        if self._is_too_old(basket, stamp, reported):
            return LATE
        if basket.credit == REVOKED or basket.kept_amounts == [amount]:
            return DUPLICATE
        basket.take_all_back()
        self.baskets.add_amount(basket, CORRECTION, amount)
        self._renew_credit(basket)
        return ACCEPTED

    def _correct_held(self, round_: int, credit: float, moment: int) -> int:
        """Replace the credit of a round without a basket, while the ring holds it."""
        verdict = self.state.judge_conversion(round_, max(moment, self._now))
        if verdict != DUPLICATE:
            return UNKNOWN if verdict == ACCEPTED else verdict  # there is no credit to correct
        block, lane = self._place_of(round_)
        if self.state.ring["credit"][block, lane] in (REVOKED, credit):
            return DUPLICATE
        self._replace_in_ring(round_, credit)
        return ACCEPTED

    def find_credit(self, round_: int) -> float:
        """Return what a round's conversions are worth, as long as that may change; 0 or less where it is nothing."""
        basket = self.baskets.find(round_)
        if basket is not None:
            return basket.credit
        if self.keeps_baskets or not self.state.number("kept") <= round_ <= self.state.number("rounds"):
            return 0.0
        credit = float(self.state.ring["credit"][self._place_of(round_)])
        return 0.0 if math.isnan(credit) else credit

    # ---- the basket and the state ----

    @property
    def oldest_correctable(self) -> int:
        """The oldest stamp that a correction of now may have."""
        return self._now - self.span - self.correctable

    def find_conversion(self, digest: bytes, stamp: int, reported: int) -> list[int]:
        """Return the rounds that a conversion is credited to, by its id, and can be taken back from."""
        return self.baskets.find_rounds(digest, self._oldest_at(stamp, reported))

    def _oldest_at(self, stamp: int, reported: int) -> int:
        """Return the oldest stamp that a correction reported then may have."""
        return max(reported if self.correctable else stamp, self._now) - self.span - self.correctable

    def _is_too_old(self, basket: Basket, stamp: int, reported: int) -> bool:
        return basket.stamp < self._oldest_at(stamp, reported)

    def _is_outside(self, round_: int, stamp: int) -> bool:
        """Tell whether a conversion occurred outside of the window of a round that the ring holds."""
        return bool(self.state.grace and stamp - int(self.state.ring["stamp"][self._place_of(round_)]) > self.span)

    def _make_basket(self, round_: int, credit: float, amounts: dict[bytes, float]) -> Basket:
        (block, lane), ring = self._place_of(round_), self.state.ring
        numbers = np.array([ring[name][block, lane] for name in self.algorithm.round_fields])
        action = ring["action"][block, :, lane].copy()
        return Basket(round_, int(ring["stamp"][block, lane]), action, numbers, credit, amounts)

    def _place_of(self, round_: int) -> tuple[int, int]:
        """Return the block and the lane of a round that the ring holds."""
        return find_place(self.state.record, self.state.ring, round_)

    def _renew_credit(self, basket: Basket) -> None:
        """Replace a round's credit by that which its basket makes now."""
        credit, before = self.reward.credit(basket.kept_amounts), basket.credit
        if credit == before:
            return
        basket.credit = credit
        if basket.round >= self.state.number("kept"):
            self._replace_in_ring(basket.round, credit)
            return
        page = new_ring(self.state.ring.dtype, 1)
        page["action"][0, :, 0], page["stamp"][0, 0], page["credit"][0, 0] = basket.action, basket.stamp, before
        for name, number in zip(self.algorithm.round_fields, basket.numbers.tolist(), strict=True):
            page[name][0, 0] = number
        self.state.code.correct(self.state.record, page, 0, False, credit)

    def _replace_in_ring(self, round_: int, credit: float) -> None:
        state, is_open = self.state, bool(round_ >= self.state.number("oldest"))
        state.code.correct(state.record, state.ring, find_slot(state.record, state.ring, round_), is_open, credit)
