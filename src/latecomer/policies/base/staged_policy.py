"""Stages of a policy's decisions: reported, and credited as surrogates until the conversion is known."""

from collections.abc import Iterator
from contextlib import contextmanager

from latecomer.core.conversions import DUPLICATE, LATE, UNKNOWN
from latecomer.errors import InputError
from latecomer.policies.base.crediting_policy import CreditingPolicy
from latecomer.policies.base.staged_code import StagedCode, find_place
from latecomer.policies.base.surrogates import StageRates, SurrogateTable


class StagedPolicy(CreditingPolicy):
    """A policy that may have stages; verdicts are numbers, stamps as in `CreditingPolicy`.

    Where it has, every conversion has a basket.
    """

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages that the policy learns from."""
        return () if self.state.surrogates is None else self.state.surrogates.names

    @property
    def stage_rates(self) -> dict[str, StageRates]:
        """The rates of each stage, over all decisions so far."""
        return {stage: self._surrogates.find_rates(stage, self.rounds) for stage in self.stages}

    @property
    def _surrogates(self) -> SurrogateTable:
        if self.state.surrogates is None:
            raise InputError("the policy has no stages: give it some, as stages=['click']", field="stages")
        return self.state.surrogates

    @property
    def _staged_code(self) -> StagedCode:
        code = self.state.code
        if not isinstance(code, StagedCode):
            raise AssertionError("a policy that has stages has kernels for them")
        return code

    def reach_stage(self, round_: int, stage: str, stamp: int, reported: int) -> int:
        """Note that a round has reached a stage; credit it with a surrogate where it is open and has not converted."""
        table, state = self._surrogates, self.state
        is_known, rates = table.has_reached(round_, stage), table.find_rates(stage, self.rounds)
        verdict = state.judge_conversion(round_, max(reported, self._now))
        if verdict in (LATE, UNKNOWN):
            return verdict
        if is_known:
            return DUPLICATE
        table.add_stage(round_, stage, self._credit_of(round_))
        if round_ >= state.number("oldest") and self.baskets.find(round_) is None:
            self._staged_code.credit_surrogate(state.record, state.ring, round_, rates.surrogate, stamp, reported)
        if table.is_full:
            table.forget(self.is_correctable)
        return 0

    def is_correctable(self, round_: int) -> bool:
        """Tell whether the credit of a round may still change."""
        basket = self.baskets.find(round_)
        return round_ >= self.state.number("kept") or (basket is not None and basket.stamp >= self.oldest_correctable)

    # ---- conversions ----

    def credit_conversion(
        self, round_: int, amount: float, digest: bytes, stamp: int, reported: int
    ) -> tuple[int, int, bool]:
        """Judge a conversion and credit it, in place of a surrogate, whose time of arrival the delay curve keeps."""
        state = self.state
        if state.surrogates is None:
            return super().credit_conversion(round_, amount, digest, stamp, reported)
        with self._track_credit(round_):
            if round_ not in state.surrogates.active:
                return super().credit_conversion(round_, amount, digest, stamp, reported)
            verdict = state.code.convert(state.record, state.ring, round_, 0.0, stamp, reported)
            if verdict != DUPLICATE:  # it is late: a round with a surrogate has a credit
                return verdict, 0, True
            place = find_place(state.record, state.ring, round_)
            arrival = state.ring["arrival"][place]
            self._staged_code.lift_surrogate(state.record, state.ring, round_)
            found = super().credit_conversion(round_, amount, digest, stamp, reported)
            state.ring["arrival"][place] = arrival
            return found

    def revoke_conversion(self, round_: int, digest: bytes | None, stamp: int, reported: int) -> int:
        """Take one conversion of a decision back for good, or all of them; a surrogate is none."""
        state = self.state
        if state.surrogates is None:
            return super().revoke_conversion(round_, digest, stamp, reported)
        with self._track_credit(round_), self._staged_code.hide_surrogate(state.record, state.ring, round_):
            return super().revoke_conversion(round_, digest, stamp, reported)

    def correct_credit(self, round_: int, amount: float, stamp: int, reported: int) -> int:
        """Replace all that a decision is credited with by one amount."""
        with self._track_credit(round_):
            return super().correct_credit(round_, amount, stamp, reported)

    @contextmanager
    def _track_credit(self, round_: int) -> Iterator[None]:
        """Let the rates follow a change of what a round's conversions are worth."""
        before = self._credit_of(round_)
        yield
        after = self._credit_of(round_)
        if self.state.surrogates is not None and after != before:
            self.state.surrogates.add_credit(round_, after - before)

    def _credit_of(self, round_: int) -> float:
        """Return what the conversions of a round are worth, in [0, 1], as long as that may change."""
        basket = self.baskets.find(round_)
        return 0.0 if basket is None else max(basket.credit, 0.0)
