"""A policy's state and the compiled kernels that change it. Arguments have been checked by the policy."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.action_summary import Shorts
from latecomer.core.forgetting import forgetting_fields, forgetting_kind
from latecomer.core.ring import is_sparse, spanned_blocks
from latecomer.core.ring_memory import move, resize
from latecomer.core.state import (
    BASE_SCRATCH,
    ROUNDS_PER_BLOCK,
    Array,
    FieldKind,
    Integers,
    block_dtype,
    new_ring,
    new_state,
)
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.choice_probabilities import NO_CONTROL
from latecomer.policies.base.kernels import LARGE, RESIZE
from latecomer.policies.base.many_choices import ManyChoices
from latecomer.policies.base.policy_code import PolicyCode, find_policy_code, is_admissible
from latecomer.policies.base.staged_code import StagedCode
from latecomer.policies.base.state_checks import check_extras, check_window, fill_field
from latecomer.policies.base.surrogates import SurrogateTable
from latecomer.tiers.tiered_kernel import Job, TieredKernel


def copy_record(record: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy a record as bytes, in a quarter of the time that NumPy takes from field to field."""
    return record.view(np.uint8).copy().view(record.dtype)


class CompiledState:
    """The record and the ring of one policy, growing and shrinking with the number of open rounds."""

    def __init__(
        self,
        algorithm: Algorithm,
        dim: int,
        *,
        span: int,
        grace: int = 0,
        numbers: dict[str, float],
        refresh_norms: bool = False,
        job: Job | None = None,
    ) -> None:
        self.algorithm, self.dim, self.span, self.grace = algorithm, dim, span, grace
        self._numbers, self._refresh_norms, self._job = numbers, refresh_norms, job
        forgets = forgetting_kind(numbers, dim)
        self._extras = {**algorithm.extra_fields(dim, span, numbers["ridge"]), **forgetting_fields(forgets, dim)}
        self.record = new_state(
            algorithm.key,
            dim,
            span=span,
            grace=grace,
            refresh_norms=refresh_norms,
            needs_cholesky=algorithm.needs_cholesky,
            learn_on_close=algorithm.learn_on_close,
            numbers=numbers,
            extras=self._extras,
            forgets=forgets,
        )
        self.ring = new_ring(block_dtype(dim, algorithm.round_fields))
        self.last_action: Array = self.record["last_action"][0]
        """The action of the latest decision by `decide`, which overwrites it."""
        self.surrogates: SurrogateTable | None = None
        self.code: PolicyCode | StagedCode = find_policy_code(algorithm, self.record, job)
        """The kernels, which policies of the same kind share."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the kernels, which another process must find for itself."""
        return {name: value for name, value in self.__dict__.items() if name != "code"}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Make `last_action` a view of the record again, not a copy."""
        self.__dict__.update(attributes)
        self.last_action = self.record["last_action"][0]
        self.attach_surrogates(self.surrogates)

    def attach_surrogates(self, surrogates: SurrogateTable | None) -> None:
        """Have the kernels take surrogates back from now on, where there is a table of them."""
        code, self.surrogates = find_policy_code(self.algorithm, self.record, self._job), surrogates
        self.code = code if surrogates is None else StagedCode(code, surrogates)

    def make_empty(self, room: int = 0) -> "CompiledState":
        """Make a state of the same shape as it was before the first round, with room for so many rounds."""
        is_new = self.number("rounds") == 0 and not self.number("frozen")
        empty = self._make_twin() if is_new else self._make_anew()
        if self.surrogates is not None:
            empty.attach_surrogates(self.surrogates.make_empty())
        empty.fit(room)
        return empty

    def _make_twin(self) -> "CompiledState":
        """Copy a state that has seen nothing: a simulation does so for each run."""
        twin = object.__new__(CompiledState)
        twin.__dict__.update(self.__dict__)
        twin.record, twin.ring = copy_record(self.record), new_ring(self.ring.dtype, 0)
        twin.last_action = twin.record["last_action"][0]
        return twin

    def make_with(self, algorithm: Algorithm, numbers: dict[str, float]) -> "CompiledState":
        """Make an empty state of another algorithm, with more numbers."""
        numbers = {**self._numbers, **numbers}
        return CompiledState(
            algorithm,
            self.dim,
            span=self.span,
            grace=self.grace,
            numbers=numbers,
            refresh_norms=self._refresh_norms,
            job=None,
        )

    def _make_anew(self) -> "CompiledState":
        return CompiledState(
            self.algorithm,
            self.dim,
            span=self.span,
            grace=self.grace,
            numbers=self._numbers,
            refresh_norms=self._refresh_norms,
            job=self._job,
        )

    # ---- events ----

    def decide(self, actions: Array, stamp: int, draws: Array | None) -> tuple[int, int, float]:
        """Decide on a set of any size, with a ring that fits: (index, round, score), the index `UNFIT` if inadmissible.

        Where draws are taken, the set must have been found admissible before.
        """
        is_large = len(actions) * self.dim * self.dim >= LARGE  # then BLAS has one thread, and Python's lock is free
        code = self.code.decide_large if is_large else self.code.decide_small
        decided: tuple[int, int, float] = code(self.record, self.ring, actions, stamp, draws)
        while decided[0] == RESIZE:  # once for a ring too large, once for one too small
            before = len(self.ring)
            self.fit(1)
            if len(self.ring) == before:
                raise AssertionError("a kernel asked for a ring of another size, and the ring has the right one")
            decided = code(self.record, self.ring, actions, stamp, draws)
        return decided

    def decide_signed(
        self, actions: Array, stamp: int, draws: Array | None, control: int | None = None
    ) -> tuple[int, float, float]:
        """Decide on a set of any size: index, score and signed propensity, which is NaN where it is unknown."""
        if control is not None:
            self.record["control_index"] = control
        index, _, score = self.decide(actions, stamp, draws)
        if control is not None:
            self.record["control_index"] = NO_CONTROL
        return index, score, self.record["signed_propensity"].item() if self.algorithm.is_randomised else math.nan

    def is_admissible(self, actions: Array) -> bool:
        """Tell whether a two-dimensional array of doubles is plain, and every action finite and of norm at most 1."""
        return is_admissible.call(actions, self.dim)  # type: ignore[no-any-return]

    def decide_many(
        self, rows: Array, ends: Integers, stamps: Integers, draws: Array, *, summarises: bool = False
    ) -> ManyChoices:
        """Decide set after set: set i is the rows from the end of the set before to ends[i], all admissible."""
        self.fit(len(ends))
        found = ManyChoices.make_room(len(ends), self.dim, summarises=summarises)
        self._for_many("decide_many", len(ends))(self.record, self.ring, rows, ends, stamps, draws, *found)
        return found

    def record_many(self, actions: Array, summaries: Shorts, stamps: Integers, draws: Array) -> None:
        """Record decisions that were made before, in their order; the actions are admissible."""
        self.fit(len(actions))
        self._for_many("record_many", len(actions))(self.record, self.ring, actions, summaries, stamps, draws)

    def convert_many(
        self, rounds: Integers, values: Array, stamps: Integers, reported: Integers
    ) -> tuple[Integers, Integers]:
        """Apply conversions in their order: the verdicts by their numbers, and the delays of the accepted ones."""
        verdicts, delays = np.empty(len(rounds), np.int64), np.zeros(len(rounds), np.int64)
        convert_many = self._for_many("convert_many", len(rounds))
        convert_many(self.record, self.ring, rounds, values, stamps, reported, verdicts, delays)
        return verdicts, delays

    def prepare(self, rounds: int) -> None:
        """Have machine code for so many recorded rounds and their conversions, however few come at once."""
        for name in ("record_many", "convert_many"):
            self._for_many(name, rounds)

    def _for_many(self, name: str, rounds: int) -> Any:
        """Return a kernel for so many rounds at once."""
        kernel = getattr(self.code, name)
        return kernel.prepare(rounds) if isinstance(kernel, TieredKernel) else kernel

    def revoke(self, round: int, stamp: int, reported: int) -> int:
        """Revoke a conversion; return the verdict by its number."""
        verdict: int = self.code.revoke(self.record, self.ring, round, stamp, reported)
        return verdict

    def judge_conversion(self, round: int, stamp: int) -> int:
        """Return the verdict that a conversion would get, by its number."""
        verdict: int = self.code.judge(self.record, self.ring, round, stamp)
        return verdict

    # ---- readings ----

    def number(self, name: str) -> Any:
        """Return a scalar field."""
        return self.record[name].item()

    def array(self, name: str) -> Array:
        """Return a copy of a vector or matrix."""
        copy: Array = self.record[name][0].copy()
        return copy

    def find_array(self, kind: FieldKind) -> Array | None:
        """Return a copy of the algorithm's first field of a kind, if it has one."""
        for name, field in self._extras.items():
            if field.kind is kind:
                return self.array(name)
        return None

    def theta_hat(self, stamp: int) -> Array:
        """Return θ̂ of the algorithm (V⁻¹B, Eq. 1, unless it has its own), as of a decision at `stamp`."""
        record, ring = self._copy_to_advance()
        self.code.next_estimate(record, ring, stamp)
        found: Array = record["theta_hat"][0].copy()
        return found

    def width(self, stamp: int) -> float:
        """Return the algorithm's width as of a decision at `stamp`."""
        return float(self.code.next_width(*self._copy_to_advance(), stamp))

    def pending_width(self, stamp: int) -> float:
        """Return W as of a decision at `stamp`."""
        copies = self._copy_to_advance() if self.record["forgets"][0] else (self.record, self.ring)
        return float(self.code.next_pending_width(*copies, stamp))

    def _copy_to_advance(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return a record and a ring that may be brought up to a later stamp: copies, where time changes them."""
        forgets = bool(self.record["forgets"][0])
        record = self.record.copy() if self.algorithm.changes_with_time or forgets else self.record
        return record, self.ring.copy() if forgets and self._refresh_norms else self.ring

    # ---- room ----

    @property
    def _held(self) -> int:
        return int(self.number("rounds") - self.number("kept") + 1)

    def _blocks_for(self, rounds: int) -> int:
        return int(spanned_blocks((self.number("kept") - 1) % ROUNDS_PER_BLOCK, rounds + 1))

    def fit(self, more: int) -> None:
        """Make room for so many more rounds. An eighth to spare costs O(1) a round to grow, and little memory."""
        needed = self._blocks_for(self._held + more)
        if needed > len(self.ring) or is_sparse(needed, len(self.ring)):
            self.ring = resize(self.record, self.ring, needed + needed // 8)

    # ---- files ----

    def saved_fields(self) -> list[str]:
        """Name the fields that the next decision needs: all but the algorithm's key and working memory."""
        scratch = {name for name, field in self._extras.items() if field.kind is FieldKind.SCRATCH}.union(BASE_SCRATCH)
        return [name for name in (self.record.dtype.names or ())[1:] if name not in scratch]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that the next decision needs, by name."""
        tight = new_ring(self.ring.dtype, self._blocks_for(self._held))
        self.ring = ring = move(self.record, self.ring, tight)
        return {
            **{f"state/{name}": self.record[name] for name in self.saved_fields()},
            **{f"ring/{name}": ring[name] for name in ring.dtype.names or ()},
        }

    def put_back(self, record: npt.NDArray[Any], ring: npt.NDArray[Any]) -> None:
        """Become an earlier state again, given copies of its record and ring."""
        self.record, self.ring, self.last_action = record, ring, record["last_action"][0]

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the state whose `arrays` these are."""
        record, ring = self.record.copy(), new_ring(self.ring.dtype, len(arrays["ring/stamp"]))
        younger = {*self._numbers, *(name for name, extra in self._extras.items() if extra.is_younger)}
        for name in self.saved_fields():
            if f"state/{name}" in arrays or name not in younger:
                fill_field(record[name], arrays[f"state/{name}"], name)
        for name in ring.dtype.names or ():
            fill_field(ring[name], arrays[f"ring/{name}"], name)
        for name in ("span", "grace", "refresh_norms", "learn_on_close", "forgets", *self._numbers):
            if record[name] != self.record[name]:
                raise ValueError(
                    f"{name} is {record[name].item()} in its arrays and {self.record[name].item()} in its header"
                )
        check_extras(record, self._extras)
        check_window(record, len(ring) * ROUNDS_PER_BLOCK)
        self.record, self.ring, self.last_action = record, ring, record["last_action"][0]
