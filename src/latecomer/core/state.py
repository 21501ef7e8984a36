"""The layout of a policy's memory: one record for the statistics, one ring of blocks for the open rounds.

Both are NumPy structured arrays. Their dtypes carry the dimension, so Numba compiles for each d with d a constant, and
a whole state passes to a kernel as one argument, is saved as plain arrays, and is copied by `.copy()`.
"""

from collections.abc import Mapping
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
ExtraFields = Mapping[str, npt.NDArray[Any]]
"""What an algorithm keeps besides: fields by name, as they are before the first round."""


class State(Protocol):
    """A compiled kernel's view of one state record; `state_dtype` says what each field is."""

    V: Array
    V_inv: Array
    root: Array
    B: Array
    log_det: float
    residual: float
    refactorisations: int
    span: int
    rounds: int
    oldest: int
    head: int
    pending: int
    credited: float
    now: int
    exact: int
    deferred: int
    width_sum: float
    width_lost: float
    ridge: float
    played: Array
    scores: Array
    theta_hat: Array
    sample: Array
    u: Array
    products: Array
    sums: Array

    # of policies that keep them
    matured: float
    closed: int
    settled: float
    offers: float
    offered_square: float
    offered_change: float
    offered_spread: float
    ridge_growth: float
    ridge_due: int
    imputed_count: float
    moment: int
    seed: np.uint64

    def __getattr__(self, name: str) -> Any:
        """The algorithm's own numbers and arrays."""


ROUNDS_PER_BLOCK = 64
"""Rounds a block of the ring holds, side by side: long enough for the compiler to make vector loops of it."""


UNSTAMPED = np.iinfo(np.int64).min
"""No time given: a decision's stamp is its round, and a conversion arrives with the latest decision."""


@cache  # Numba finds a type fastest by the dtype object itself
def state_dtype(
    tag: str, dim: int, *, sampled: bool, numbers: tuple[str, ...], extras: tuple[tuple[str, str, tuple[int, ...]], ...]
) -> np.dtype[np.void]:
    """The record of a policy. The first field's name tells the compiler whose it is (see `policies.algorithm`)."""
    root = dim if sampled else 1
    fields: list[Any] = [
        (tag, np.int64),
        # the ridge statistics
        ("V", np.float64, (dim, dim)),
        ("V_inv", np.float64, (dim, dim)),
        ("root", np.float64, (root, root)),  # upper triangular, rootᵀ·root = V; kept by sampling policies only
        ("B", np.float64, (dim,)),
        ("log_det", np.float64),  # ln det(V)/λ^d
        ("residual", np.float64),  # max |V·V_inv − I| at the last check
        ("refactorisations", np.int64),
        # the window
        ("span", np.int64),  # m, in rounds or microseconds
        ("rounds", np.int64),  # rounds played: the next one is t = rounds + 1
        ("oldest", np.int64),  # the oldest round that the ring holds
        ("head", np.int64),  # its slot
        ("pending", np.int64),  # how many of the rounds held have not converted
        ("credited", np.float64),  # Σ of the values credited and not revoked
        ("now", np.int64),  # the stamp of the latest decision
        ("exact", np.int64),  # whether the norms follow V (exact) or are frozen at play (buffered)
        ("deferred", np.int64),  # whether V and B learn of a round when it closes, and not before
        ("width_sum", np.float64),  # Σ ‖A_s‖ over the ring, and
        ("width_lost", np.float64),  # what rounding lost of it
        # λ, and the algorithm's own numbers and arrays
        *((name, np.float64) for name in numbers),
        *extras,
        # room to work in; nothing here outlives a call
        ("played", np.float64, (dim,)),  # the action of the latest `step`
        ("scores", np.float64, (ROUNDS_PER_BLOCK,)),  # of a set that is not larger
        ("theta_hat", np.float64, (dim,)),
        ("sample", np.float64, (dim,)),
        ("u", np.float64, (dim,)),
        ("products", np.float64, (ROUNDS_PER_BLOCK,)),
        ("sums", np.float64, (ROUNDS_PER_BLOCK,)),
    ]
    return np.dtype(fields, align=True)


SCRATCH = ("played", "scores", "theta_hat", "sample", "u", "products", "sums", "factor", "descent")


@cache
def block_dtype(dim: int) -> np.dtype[np.void]:
    """A block of `ROUNDS_PER_BLOCK` open rounds: 8d + 32 bytes each."""
    return np.dtype(
        [
            ("action", np.float64, (dim, ROUNDS_PER_BLOCK)),
            ("norm", np.float64, (ROUNDS_PER_BLOCK,)),  # ‖A_s‖² in V_t⁻¹ (exact) or V_s⁻¹ (buffered)
            ("credit", np.float64, (ROUNDS_PER_BLOCK,)),  # the value credited, NaN while open, −1 once revoked
            ("stamp", np.int64, (ROUNDS_PER_BLOCK,)),  # of the decision
            ("arrival", np.int64, (ROUNDS_PER_BLOCK,)),  # of the conversion, where there is one and its time is known
        ],
        align=True,
    )


def new_state(
    tag: str,
    dim: int,
    *,
    span: int,
    exact: bool,
    sampled: bool,
    deferred: bool,
    numbers: Mapping[str, float],
    extras: ExtraFields,
) -> npt.NDArray[Any]:
    """V = λI, B = 0, no round played; `numbers` are λ ("ridge") and the algorithm's parameters."""
    shapes = tuple((name, array.dtype.str, array.shape) for name, array in extras.items())
    state = np.zeros(1, state_dtype(tag, dim, sampled=sampled, numbers=tuple(numbers), extras=shapes))
    ridge = numbers["ridge"]
    state["V"][0] = np.eye(dim) * ridge
    state["V_inv"][0] = np.eye(dim) / ridge
    state["root"][0] = np.eye(state["root"].shape[1]) * np.sqrt(ridge)
    state["span"], state["exact"], state["deferred"] = span, exact, deferred
    state["oldest"], state["now"] = 1, UNSTAMPED
    for name, value in {**numbers, **extras}.items():
        state[name] = value
    return state


_LINE = 64


def new_ring(dim: int, blocks: int = 1) -> Ring:
    """An empty ring of `blocks` blocks, on its own cache lines: vector loads then cross none."""
    dtype = block_dtype(dim)
    size = blocks * dtype.itemsize
    room = np.zeros(size + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    ring: Ring = room[start : start + size].view(dtype)
    return ring
