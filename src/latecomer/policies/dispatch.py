"""The compiled side of a policy: generic kernels, and the algorithm that they find in a state's type.

An algorithm is two functions of its state: `width` (α_t, β_t, or whatever it multiplies its exploration by) and
`choose`; and, where its W is not a sum of norms, `term`. They are registered under a tag, the tag is the name of the
first field of the state's record, and Numba resolves the call while it compiles: there is no branch left at run time,
and the kernels cache like any other.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.extending import overload

from latecomer.core.compile import brief, kernel
from latecomer.core.ridge import DRIFT, absorb, is_check_due, refactorise, residual
from latecomer.core.state import UNSTAMPED, Array, Cell, Integers, Ring, State
from latecomer.core.vectors import squared_length
from latecomer.core.width import pending_width_at, renew_norms, shrink_norms
from latecomer.core.window import expire, held, is_full, is_sparse, push, spanned_blocks

NORM_LIMIT = 1.0 + 1e-6
"""Norms up to 1 are what the theory wants; the rest is room for rounding, single precision included."""

RESIZE, INADMISSIBLE = -1, -2

Function = TypeVar("Function", bound=Callable[..., Any])
_WIDTHS: dict[str, Callable[..., float]] = {}
_CHOICES: dict[str, Callable[..., int]] = {}
_TERMS: dict[str, Callable[..., float]] = {}


def is_width_of(tag: str) -> Callable[[Function], Function]:
    """Register `width(state, pending)` for the states of this tag; `pending` is W_t."""
    return lambda function: _WIDTHS.setdefault(tag, function)  # type: ignore[return-value]


def is_choice_of(tag: str) -> Callable[[Function], Function]:
    """Register `choose(state, actions, draws, scores)`: fill the scores, return the index."""
    return lambda function: _CHOICES.setdefault(tag, function)  # type: ignore[return-value]


def is_term_of(tag: str) -> Callable[[Function], Function]:
    """Register `term(state, c)`: the square of what a played action adds to W; without one, c = ‖A_s‖² in V_s⁻¹."""
    return lambda function: _TERMS.setdefault(tag, function)  # type: ignore[return-value]


def width(state: State, pending: float) -> float:
    """The width of the state's algorithm; compiled code only."""
    raise TypeError("width is for compiled code")


def choose(state: State, actions: Array, draws: Array | None, scores: Array) -> int:
    """The choice of the state's algorithm; compiled code only."""
    raise TypeError("choose is for compiled code")


def term(state: State, c: float) -> float:
    """The square of an action's term in the state's algorithm's W; compiled code only."""
    raise TypeError("term is for compiled code")


def _norm(state: State, c: float) -> float:
    return c


def tag_of(policy: type) -> str:
    """The algorithm of a class: its own, or the nearest that it inherits."""
    return next(parent.__name__ for parent in policy.__mro__ if parent.__name__ in _CHOICES)


def _tag(record_type: Any) -> str:
    return str(next(iter(record_type.fields)))


@overload(width, strict=False)  # the signatures may be annotated otherwise
def _width(state: State, pending: float) -> Callable[..., float]:
    return _WIDTHS[_tag(state)]


@overload(choose, strict=False)
def _choose(state: State, actions: Array, draws: Array | None, scores: Array) -> Callable[..., int]:
    return _CHOICES[_tag(state)]


@overload(term, strict=False)
def _term(state: State, c: float) -> Callable[..., float]:
    return _TERMS.get(_tag(state), _norm)


@kernel
def admissible(actions: Array) -> bool:
    """Whether every action is finite and of norm at most 1: a NaN fails every comparison."""
    for k in range(actions.shape[0]):  # noqa: SIM110 - Numba compiles no generator expressions
        if not squared_length(actions, k) <= NORM_LIMIT * NORM_LIMIT:
            return False
    return True


brief_admissible = brief(admissible.py_func)  # type: ignore[attr-defined]


@kernel
def record(state: State, ring: Ring, action: Array, stamp: int) -> None:
    """A decision moves V and the window."""
    c = absorb(state, action)
    norm = term(state, c)  # buffered: frozen
    if state.exact:
        shrink_norms(state, ring, c)
        norm = c / (1.0 + c)  # ‖A_s‖² in V_{s+1}⁻¹
    push(state, ring, action, stamp, norm)
    if is_check_due(state, c):
        state.residual = residual(state)
        if not state.residual <= DRIFT:
            refactorise(state)
            if state.exact:
                renew_norms(state, ring)


@kernel
def play(state: State, ring: Ring, actions: Array, stamp: int, draws: Array | None, scores: Array) -> int:
    """One decision: the index of the action that was chosen and recorded, or `RESIZE` where there is no room."""
    if stamp == UNSTAMPED:
        stamp = state.rounds + 1
    expire(state, ring, stamp)
    if is_full(state, ring):
        return RESIZE
    index = choose(state, actions, draws, scores)
    record(state, ring, actions[index], stamp)
    return index


def _step(cell: Cell, ring: Ring, actions: Array, stamp: int, draws: Array | None) -> tuple[int, int, float]:
    """One decision from outside: (index, round, score), the index negative where none could be made."""
    state = cell[0]
    if not admissible(actions):
        return INADMISSIBLE, 0, 0.0
    if is_sparse(spanned_blocks(state.head, held(state) + 2), ring.shape[0]):  # as `Memory.fit(1)` measures it
        return RESIZE, 0, 0.0
    scores = np.empty(actions.shape[0])
    index = play(state, ring, actions, stamp, draws, scores)
    return index, state.rounds, scores[index]


brief_step = brief(_step)
long_step = kernel(_step)


@kernel
def steps(
    cell: Cell, ring: Ring, sets: Array, stamps: Integers, draws: Array, indices: Integers, values: Array
) -> None:
    """Decision after decision, each as a step would make it; the ring has room, and the actions are admissible."""
    scores = np.empty(sets.shape[1])
    for i in range(sets.shape[0]):
        indices[i] = play(cell[0], ring, sets[i], stamps[i], draws[i], scores)
        values[i] = scores[indices[i]]


@kernel
def records(cell: Cell, ring: Ring, actions: Array, stamps: Integers) -> None:
    """Decisions that were made before, each recorded as `play` recorded it; the ring has room for all of them."""
    state = cell[0]
    for i in range(actions.shape[0]):
        stamp = state.rounds + 1 if stamps[i] == UNSTAMPED else stamps[i]
        expire(state, ring, stamp)
        record(state, ring, actions[i], stamp)


@kernel
def next_width(cell: Cell, ring: Ring, stamp: int) -> float:
    """The width as of a decision at `stamp`."""
    state = cell[0]
    return float(width(state, pending_width_at(state, ring, stamp)))


@kernel
def next_pending_width(cell: Cell, ring: Ring, stamp: int) -> float:
    """W as of a decision at `stamp`."""
    return float(pending_width_at(cell[0], ring, stamp))
