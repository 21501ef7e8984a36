"""A policy's memory and the compiled kernels that move it: arrays in, numbers out, nothing checked twice."""

from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.action_summary import Shorts
from latecomer.core.jit import entry_point
from latecomer.core.linalg.blas import one_thread
from latecomer.core.linalg.norms import LONG
from latecomer.core.linalg.norms import ready as ready_for_long
from latecomer.core.linalg.products import UNROLLED
from latecomer.core.ring import (
    apply_conversions,
    apply_revocation,
    brief_credit,
    is_sparse,
    resized,
    spanned_blocks,
    verdict,
)
from latecomer.core.state import ROUNDS_PER_BLOCK, SCRATCH, UNSTAMPED, Array, Integers, new_ring, new_state
from latecomer.policies.base.algorithm import settles
from latecomer.policies.base.kernels import (
    LARGE,
    RESIZE,
    UNFIT,
    decide_many,
    decide_one,
    decide_one_holding_gil,
    is_admissible_holding_gil,
    next_estimate,
    next_pending_width,
    next_width,
    record_many,
)


def _fill(field: npt.NDArray[Any], values: npt.NDArray[Any], name: str) -> None:
    """Exactly these values: NumPy would stretch and convert others."""
    if values.shape != field.shape or values.dtype != field.dtype:
        raise ValueError(
            f"{name} has shape {values.shape} and type {values.dtype}, not {field.shape} and {field.dtype}"
        )
    if name != "credit" and not np.isfinite(values).all():
        raise ValueError(f"{name} is not finite")
    field[...] = values


def _no_code(*_: object) -> tuple[int, int, float]:
    return UNFIT, 0, 0.0


class CompiledState:
    """The record and the ring of one policy, growing and shrinking with what is open."""

    def __init__(self, tag: str, dim: int, *, span: int, **shape: Any) -> None:
        self.dim = dim
        self.span = span
        self.state = new_state(tag, dim, span=span, **shape)
        self._arguments: dict[str, Any] = {"tag": tag, "dim": dim, "span": span, **shape}
        self.ring = new_ring(dim)
        self.played: Array = self.state["played"][0]
        """The action of the latest `decide_one`, which overwrites it."""
        self._forget_code()
        self._ready_for_dim()

    def _forget_code(self) -> None:
        """Machine code is found when it is needed first."""
        self.step: Any = _no_code
        """A decision on a plain set that is not large; where it answers `UNFIT`, `play` may do."""
        self.credit: Any = None
        """A conversion, once `ready_credit` has found it."""
        self._long_step: Any = _no_code
        self._admits: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Machine code does not travel."""
        code = ("step", "credit", "_long_step", "_admits")
        return {name: value for name, value in self.__dict__.items() if name not in code}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """`played` is a part of the state, not a copy of it."""
        self.__dict__.update(attributes)
        self._forget_code()
        self.played = self.state["played"][0]
        self._ready_for_dim()

    def _ready_for_dim(self) -> None:
        if self.dim >= LONG:
            ready_for_long()

    def emptied(self) -> "CompiledState":
        """Another one for the same algorithm, as it was before its first round."""
        return CompiledState(**self._arguments)

    # ---- events ----

    def play(self, actions: Array, stamp: int, draws: Array | None) -> tuple[int, int, float]:
        """A decision on an admissible set of any size, with a ring that fits: (index, round, score)."""
        code = self.ready(actions, draws)
        played: tuple[int, int, float] = code(self.state, self.ring, actions, stamp, draws)
        while played[0] == RESIZE:  # once for a ring too large, once for one too small
            before = len(self.ring)
            self.fit(1)
            if len(self.ring) == before:
                raise AssertionError("the ring asks for another size, and has the right one")
            played = code(self.state, self.ring, actions, stamp, draws)
        return played

    def ready(self, actions: Array, draws: Array | None) -> Any:
        """The code for sets of this size, compiled if need be: for a large one BLAS has one thread, and Python goes on.

        Compiling takes long, and may be interrupted: it comes before anything changes.
        """
        is_large = len(actions) * self.dim * self.dim >= LARGE
        found = self._long_step if is_large else self.step
        if found is _no_code:
            arguments = (self.state, self.ring, actions, UNSTAMPED, draws)
            if is_large:
                found = self._long_step = one_thread(entry_point(decide_one, *arguments))
            else:
                found = self.step = entry_point(decide_one_holding_gil, *arguments)
        return found

    def admits(self, actions: Array) -> bool:
        """Whether a two-dimensional array of doubles is plain, and every action finite and of norm at most 1."""
        if self._admits is None:
            self._admits = entry_point(is_admissible_holding_gil, np.empty((1, 1)), self.dim)
        return self._admits(actions, self.dim)  # type: ignore[no-any-return]

    def play_many(self, sets: Array, stamps: Integers, draws: Array) -> tuple[list[int], list[float]]:
        """The indices and scores of as many decisions; the actions are admissible."""
        self.fit(len(sets))
        indices, values = np.empty(len(sets), np.int64), np.empty(len(sets))
        one_thread(decide_many)(self.state, self.ring, sets, stamps, draws, indices, values)
        return indices.tolist(), values.tolist()

    def record_many(self, actions: Array, offers: Shorts, stamps: Integers, draws: Array) -> None:
        """Decisions that were made before, in their order; the actions are admissible."""
        self.fit(len(actions))
        recording = one_thread(record_many) if self.dim > UNROLLED else record_many  # short actions need no BLAS
        recording(self.state, self.ring, actions, offers, stamps, draws)

    def credit_many(self, rounds: Integers, values: Array, stamps: Integers) -> tuple[Integers, Integers]:
        """The verdicts by their numbers, and how long the accepted ones took."""
        answers, delays = np.empty(len(rounds), np.int64), np.zeros(len(rounds), np.int64)
        apply_conversions(self.state, self.ring, rounds, values, stamps, answers, delays)
        return answers, delays

    def ready_credit(self) -> Any:
        """Find the machine code of `credit`, and return it."""
        self.credit = entry_point(brief_credit, self.state, self.ring, 1, 1.0, UNSTAMPED)
        return self.credit

    def revoke(self, round: int, stamp: int) -> int:
        """A conversion taken back; the verdict by its number."""
        return apply_revocation(self.state, self.ring, round, stamp)

    def verdict(self, round: int, stamp: int) -> int:
        """What a conversion would meet."""
        return verdict(self.state[0], self.ring, round, stamp)

    # ---- what it holds ----

    def number(self, name: str) -> Any:
        """A scalar of the state."""
        return self.state[name].item()

    def array(self, name: str) -> Array:
        """A copy of a vector or matrix of the state."""
        copy: Array = self.state[name][0].copy()
        return copy

    def theta_hat(self, stamp: int) -> Array:
        """V⁻¹B, Eq. 1, or what the algorithm has in its place, as of a decision at `stamp`."""
        state = self._to_settle
        next_estimate(state, self.ring, stamp)
        found: Array = state["theta_hat"][0].copy()
        return found

    def width(self, stamp: int) -> float:
        """The algorithm's width as of a decision at `stamp`."""
        return next_width(self._to_settle, self.ring, stamp)

    def pending_width(self, stamp: int) -> float:
        """W as of a decision at `stamp`."""
        return next_pending_width(self.state, self.ring, stamp)

    @property
    def _to_settle(self) -> npt.NDArray[Any]:
        """The state to read the near future from: a copy, where time changes it. Reading changes nothing."""
        return self.state.copy() if settles(self._arguments["tag"]) else self.state

    # ---- room ----

    @property
    def _held(self) -> int:
        return int(self.number("rounds") - self.number("oldest") + 1)

    def _blocks_for(self, rounds: int) -> int:
        return int(spanned_blocks(self.number("head") % ROUNDS_PER_BLOCK, rounds + 1))

    def fit(self, more: int) -> None:
        """Room for so many more rounds. An eighth to spare costs O(1) a round to grow, and little memory."""
        needed = self._blocks_for(self._held + more)
        if needed > len(self.ring) or is_sparse(needed, len(self.ring)):
            self.ring = resized(self.state, self.ring, needed + needed // 8)

    # ---- files ----

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that the next step needs, by name."""
        ring = resized(self.state, self.ring, self._blocks_for(self._held))
        self.ring = ring
        return {
            **{f"state/{name}": self.state[name] for name in self._fields()},
            **{f"ring/{name}": ring[name] for name in ring.dtype.names or ()},
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the memory whose `arrays` these are."""
        state, ring = self.state.copy(), new_ring(self.dim, len(arrays["ring/stamp"]))
        for name in self._fields():
            _fill(state[name], arrays[f"state/{name}"], name)
        for name in ring.dtype.names or ():
            _fill(ring[name], arrays[f"ring/{name}"], name)
        for name in ("span", "exact", "deferred", *self._arguments["numbers"]):
            if state[name] != self.state[name]:
                raise ValueError(
                    f"{name} is {state[name].item()} in its arrays and {self.state[name].item()} in its header"
                )
        self._check_extras(state)
        head, held = state["head"].item(), state["rounds"].item() - state["oldest"].item() + 1
        if not (
            state["oldest"] >= 1
            and held >= 0
            and 0 <= head < len(ring) * ROUNDS_PER_BLOCK
            and 0 <= state["pending"] <= held
        ):
            raise ValueError("its window does not fit together")
        if head % ROUNDS_PER_BLOCK + held > len(ring) * ROUNDS_PER_BLOCK:
            raise ValueError("its window holds more than it has room for")
        self.state, self.ring, self.played = state, ring, state["played"][0]

    def _check_extras(self, state: npt.NDArray[Any]) -> None:
        """Refuse what would lead kernels astray: pointers out of the ring, other edges, a curve not from 0 to 1."""
        for name in self._arguments["extras"]:
            values = state[name][0]
            if name.endswith("_heads") and not ((state["oldest"] <= values) & (values <= state["rounds"] + 1)).all():
                raise ValueError(f"{name} points outside of its window")
            if name == "edges" and not np.array_equal(values, self.state[name][0]):
                raise ValueError("its bins are not those of its window")
            if name == "curve" and not (values[0] in (0, 1) and values[-1] == 1 and (np.diff(values) >= 0).all()):
                raise ValueError("its delay curve does not rise from 0 to 1")

    def _fields(self) -> list[str]:
        return [name for name in (self.state.dtype.names or ())[1:] if name not in SCRATCH]
