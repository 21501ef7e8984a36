"""The layout of a policy's state: one record for the statistics, one ring of blocks for the open rounds.

Both are NumPy structured arrays. Their dtypes carry the dimension, so Numba compiles for each d with d a constant, and
a whole state passes to a kernel as one argument, is saved as plain arrays, and is copied by `.copy()`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Ring = npt.NDArray[Any]
Block = Any
"""One record of a ring, as a compiled kernel sees it; `block_dtype` has its fields."""
StateArray = npt.NDArray[Any]
"""An array of one state record."""


class FieldKind(Enum):
    """The role of an algorithm's field. Saving, loading and reading go by it, never by the field's name."""

    STATISTIC = "a number or an array that the next decision needs: saved"
    POINTER = "rounds, each from the window's oldest to the next: saved, and checked against the window on loading"
    BIN_EDGES = "ages that cut the window into bins: saved, and equal to the initial value on loading"
    DELAY_CURVE = "shares that rise from 0 (or 1) to 1, one per bin edge: saved, and checked on loading"
    SCRATCH = "working memory that no later call reads: not saved"


@dataclass(frozen=True, eq=False)
class Field:
    """A field that an algorithm adds to its state: the value before the first round, and the field's role."""

    initial: npt.NDArray[Any]
    kind: FieldKind = FieldKind.STATISTIC
    is_younger: bool = False
    """A state that was saved before the field existed has its first value."""


ExtraFields = Mapping[str, Field]
"""The fields that an algorithm adds to its state, by name."""


def number_field(dtype: npt.DTypeLike = np.float64) -> Field:
    """Make a field of one number, 0 at first."""
    return Field(np.zeros((), dtype))


def scratch_field(*shape: int, dtype: npt.DTypeLike = np.float64) -> Field:
    """Make a field of working memory."""
    return Field(np.zeros(shape, dtype), FieldKind.SCRATCH)


class State(Protocol):
    """A compiled kernel's view of one state record; `state_dtype` says what each field is."""

    V: Array
    V_inv: Array
    chol: Array
    B: Array
    log_det: float
    residual: float
    refactorisations: int
    span: int
    rounds: int
    grace: int
    kept: int
    oldest: int
    head: int
    pending: int
    credited: float
    now: int
    refresh_norms: int
    learn_on_close: int
    forgets: int
    frozen: int
    last_frozen: int
    width_sum: float
    width_lost: float
    ridge: float
    last_action: Array
    scores: Array
    theta_hat: Array
    sample: Array
    u: Array
    products: Array
    sums: Array

    def __getattr__(self, name: str) -> Any:
        """Read one of the algorithm's own numbers and arrays."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Write one of the algorithm's own numbers."""


ROUNDS_PER_BLOCK = 64
"""Rounds a block of the ring holds, side by side: long enough for the compiler to make vector loops of it."""


UNSTAMPED = np.iinfo(np.int64).min
"""No time given: a decision's stamp is its round, and a conversion arrives with the latest decision."""


@cache  # Numba finds a type fastest by the dtype object itself
def state_dtype(
    algorithm: str,
    dim: int,
    *,
    needs_cholesky: bool,
    numbers: tuple[str, ...],
    extras: tuple[tuple[str, str, tuple[int, ...]], ...],
) -> np.dtype[np.void]:
    """Return the dtype of a state. Its first field's name is the algorithm's key, by which the compiler finds it."""
    chol = dim if needs_cholesky else 1
    fields: list[Any] = [
        (algorithm, np.int64),
        # the ridge statistics
        ("V", np.float64, (dim, dim)),
        ("V_inv", np.float64, (dim, dim)),
        ("chol", np.float64, (chol, chol)),  # U, upper triangular, UᵀU = V; where the algorithm needs it
        ("B", np.float64, (dim,)),
        ("log_det", np.float64),  # ln det(V)/λ^d
        ("residual", np.float64),  # max |V·V_inv − I| at the last check
        ("refactorisations", np.int64),
        # the window
        ("span", np.int64),  # m, in rounds or microseconds
        ("rounds", np.int64),  # rounds played: the next one is t = rounds + 1
        ("grace", np.int64),  # how long after its window a round stays in the ring, in the same unit
        ("kept", np.int64),  # the oldest round that the ring holds; those before `oldest` are closed, in their grace
        ("oldest", np.int64),  # the oldest round of the window
        ("head", np.int64),  # its slot
        ("pending", np.int64),  # how many of the window's rounds have not converted
        ("credited", np.float64),  # Σ of the values credited and not revoked
        ("now", np.int64),  # the stamp of the latest decision
        (
            "refresh_norms",
            np.int64,
        ),  # 1: norms follow V (exact width); 0: they stay as they were when played (buffered)
        ("learn_on_close", np.int64),  # 1: V and B learn of a round when it closes; 0: at once
        ("forgets", np.int64),  # 1: rounds are weighed by their age (core.forgetting); 2: and changes are detected
        ("frozen", np.int64),  # 1: rounds from now on teach nothing; they are recorded with the action 0
        ("last_frozen", np.int64),  # the last round that was recorded so
        ("width_sum", np.float64),  # Σ ‖A_s‖ over the ring, and
        ("width_lost", np.float64),  # the part of it that rounding lost
        # λ, and the algorithm's own numbers and arrays
        *((name, np.float64) for name in numbers),
        *extras,
        # working memory, which no later call reads: BASE_SCRATCH
        ("last_action", np.float64, (dim,)),  # the action of the latest decision
        ("scores", np.float64, (ROUNDS_PER_BLOCK,)),  # of a set that is not larger
        ("theta_hat", np.float64, (dim,)),
        ("sample", np.float64, (dim,)),
        ("u", np.float64, (dim,)),
        ("products", np.float64, (ROUNDS_PER_BLOCK,)),
        ("sums", np.float64, (ROUNDS_PER_BLOCK,)),
    ]
    return np.dtype(fields, align=True)


BASE_SCRATCH = ("last_action", "scores", "theta_hat", "sample", "u", "products", "sums")


@cache
def block_dtype(dim: int, round_fields: tuple[str, ...] = ()) -> np.dtype[np.void]:
    """Return the dtype of a block of `ROUNDS_PER_BLOCK` open rounds: 8d + 32 bytes each.

    `round_fields` are the numbers that an algorithm keeps of each besides.
    """
    return np.dtype(
        [
            ("action", np.float64, (dim, ROUNDS_PER_BLOCK)),
            ("norm", np.float64, (ROUNDS_PER_BLOCK,)),  # ‖A_s‖² in V_t⁻¹ (exact) or V_s⁻¹ (buffered)
            ("credit", np.float64, (ROUNDS_PER_BLOCK,)),  # the value credited, NaN while open, −1 once revoked
            ("stamp", np.int64, (ROUNDS_PER_BLOCK,)),  # of the decision
            ("arrival", np.int64, (ROUNDS_PER_BLOCK,)),  # of the conversion, where there is one and its time is known
            *((name, np.float64, (ROUNDS_PER_BLOCK,)) for name in round_fields),
        ],
        align=True,
    )


def new_state(
    algorithm: str,
    dim: int,
    *,
    span: int,
    grace: int,
    refresh_norms: bool,
    needs_cholesky: bool,
    learn_on_close: bool,
    numbers: Mapping[str, float],
    extras: ExtraFields,
    forgets: int = 0,
) -> npt.NDArray[Any]:
    """Make a state before the first round: V = λI, B = 0. `numbers` are λ ("ridge") and the policy's parameters."""
    shapes = tuple((name, field.initial.dtype.str, field.initial.shape) for name, field in extras.items())
    dtype = state_dtype(algorithm, dim, needs_cholesky=needs_cholesky, numbers=tuple(numbers), extras=shapes)
    state = np.zeros(1, dtype)
    ridge = numbers["ridge"]
    state["V"][0] = np.eye(dim) * ridge
    state["V_inv"][0] = np.eye(dim) / ridge
    state["chol"][0] = np.eye(state["chol"].shape[1]) * np.sqrt(ridge)
    state["span"], state["refresh_norms"], state["learn_on_close"] = span, refresh_norms, learn_on_close
    state["grace"], state["now"], state["forgets"] = grace, UNSTAMPED, forgets
    state["kept"] = state["oldest"] = 1
    for name, value in numbers.items():
        state[name] = value
    for name, field in extras.items():
        state[name] = field.initial
    return state


_CACHE_LINE = 64


def new_ring(dtype: np.dtype[np.void], blocks: int = 1) -> Ring:
    """Make an empty ring of `blocks` blocks that begins on a cache line: vector loads then cross none."""
    size = blocks * dtype.itemsize
    memory = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    ring: Ring = memory[start : start + size].view(dtype)
    return ring
