"""The kernels of a policy that has stages: surrogates are credits to them, and no conversions."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from latecomer.core.action_summary import Shorts
from latecomer.core.state import ROUNDS_PER_BLOCK, UNSTAMPED, Array, Integers, Ring
from latecomer.policies.base.policy_code import PolicyCode, Record
from latecomer.policies.base.surrogates import SurrogateTable
from latecomer.tiers.tiered_kernel import TieredKernel


class StagedCode:
    """The kernels of a state, some of them with more to do; the others are as they are.

    After each decision the surrogates of the rounds that it has closed are taken back, in the order of the rounds. Many
    decisions at once are split where one closes such a round: the state is the same as after as many calls.
    """

    def __init__(self, code: PolicyCode, surrogates: SurrogateTable) -> None:
        self._code, self._surrogates = code, surrogates

    def __getattr__(self, name: str) -> Any:
        return getattr(self._code, name)

    # ---- decisions ----

    def decide_small(
        self, record: Record, ring: Ring, actions: Array, stamp: int, draws: Array | None
    ) -> tuple[int, int, float]:
        """Decide on a set that is not large."""
        decided: tuple[int, int, float] = self._code.decide_small(record, ring, actions, stamp, draws)
        self._take_closed_back(record, ring)
        return decided

    def decide_large(
        self, record: Record, ring: Ring, actions: Array, stamp: int, draws: Array | None
    ) -> tuple[int, int, float]:
        """Decide on a set of any size."""
        decided: tuple[int, int, float] = self._code.decide_large(record, ring, actions, stamp, draws)
        self._take_closed_back(record, ring)
        return decided

    def decide_many(
        self,
        record: Record,
        ring: Ring,
        rows: Array,
        ends: Integers,
        stamps: Integers,
        draws: Array,
        *found: Integers | Array | Shorts,
    ) -> None:
        """Decide set after set."""
        for part in self._split(record, ring, stamps):
            decide = _prepare(self._code.decide_many, len(ends))
            first = int(ends[part.start - 1]) if part.start else 0
            given = rows[first:], ends[part] - first, stamps[part], draws[part]
            decide(record, ring, *given, *(each[part] for each in found))

    def record_many(
        self, record: Record, ring: Ring, actions: Array, summaries: Shorts, stamps: Integers, draws: Array
    ) -> None:
        """Record decisions that were made before."""
        for part in self._split(record, ring, stamps):
            _prepare(self._code.record_many, len(actions))(
                record, ring, actions[part], summaries[part], stamps[part], draws[part]
            )

    def _split(self, record: Record, ring: Ring, stamps: Integers) -> Iterator[slice]:
        """Yield parts of decisions, which the caller makes; each ends with one that closes a round with a surrogate."""
        moments, begin = stamps, 0
        if len(stamps) and stamps[0] == UNSTAMPED:
            moments = np.arange(1, len(stamps) + 1) + record["rounds"].item()
        while begin < len(stamps):
            first, end = self._surrogates.find_first(), len(stamps)
            if first is not None:
                block, lane = find_place(record, ring, first)
                closed_after = int(ring["stamp"][block, lane]) + record["span"].item()
                end = min(end, int(np.searchsorted(moments, closed_after, side="right")) + 1)
            yield slice(begin, end)
            self._take_closed_back(record, ring)
            begin = end

    def _take_closed_back(self, record: Record, ring: Ring) -> None:
        """Take back the surrogates of rounds that the latest decision has closed: the ring still has their actions."""
        while (first := self._surrogates.find_first()) is not None and first < record["oldest"].item():
            self._take_back(record, ring, first, is_open=False)

    # ---- surrogates and conversions ----

    def credit_surrogate(
        self, record: Record, ring: Ring, round_: int, surrogate: float, stamp: int, reported: int
    ) -> None:
        """Credit an open round that has not converted with a surrogate, where that is larger than the one it has."""
        current = self._surrogates.active.get(round_, 0.0)
        if surrogate <= current:
            return
        if current:
            self._code.correct(record, ring, find_slot(record, ring, round_), True, surrogate)
        elif self._code.convert(record, ring, round_, surrogate, stamp, reported):
            return  # it has occurred after the window
        self._surrogates.begin_surrogate(round_, surrogate)

    def lift_surrogate(self, record: Record, ring: Ring, round_: int) -> None:
        """Take the surrogate of an open round back, for its conversion to take its place."""
        self._take_back(record, ring, round_, is_open=True)
        record["pending"] += 1

    def _take_back(self, record: Record, ring: Ring, round_: int, *, is_open: bool) -> None:
        self._code.correct(record, ring, find_slot(record, ring, round_), is_open, 0.0)
        block, lane = find_place(record, ring, round_)
        ring["credit"][block, lane] = math.nan
        del self._surrogates.active[round_]

    def judge(self, record: Record, ring: Ring, round_: int, stamp: int) -> int:
        """Return the verdict that a conversion would get: a surrogate is none."""
        with self.hide_surrogate(record, ring, round_):
            verdict: int = self._code.judge(record, ring, round_, stamp)
            return verdict

    @contextmanager
    def hide_surrogate(self, record: Record, ring: Ring, round_: int) -> Iterator[None]:
        """Have the ring say that a round has no credit, where that is a surrogate, while nothing changes it."""
        surrogate = self._surrogates.active.get(round_)
        if surrogate is None:
            yield
            return
        block, lane = find_place(record, ring, round_)
        ring["credit"][block, lane] = math.nan
        try:
            yield
        finally:
            ring["credit"][block, lane] = surrogate


def find_slot(record: Record, ring: Ring, round_: int) -> int:
    """Return the slot of a round that the ring holds, or that the latest decision has closed."""
    head, oldest = record["head"].item(), record["oldest"].item()
    return int((head + round_ - oldest) % (len(ring) * ROUNDS_PER_BLOCK))


def find_place(record: Record, ring: Ring, round_: int) -> tuple[int, int]:
    """Return the block and the lane of such a round."""
    return divmod(find_slot(record, ring, round_), ROUNDS_PER_BLOCK)


def _prepare(kernel: Any, rounds: int) -> Any:
    """Return a kernel for so many rounds at once."""
    return kernel.prepare(rounds) if isinstance(kernel, TieredKernel) else kernel
