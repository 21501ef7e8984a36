"""The compiled side of a policy: generic kernels, and the algorithm that they find in a state's type.

An algorithm is two functions of its state: `width` (α_t, β_t, or whatever it multiplies its exploration by) and
`choose`. Where it is not a ridge estimate of everything played it has others too: see `Algorithm`. They are registered
under a tag, the tag is the name of the first field of the state's record, and Numba resolves the call while it
compiles: there is no branch left at run time, and the kernels cache like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import overload

from latecomer.core.compile import brief, kernel
from latecomer.core.offers import Shorts
from latecomer.core.ridge import absorb, is_check_due, mend_inverse
from latecomer.core.ridge import estimate as ridge_estimate
from latecomer.core.state import LANES, UNSTAMPED, Array, Cell, Integers, Ring, State
from latecomer.core.vectors import squared_length
from latecomer.core.width import pending_width_at, renew_norms, shrink_norms
from latecomer.core.window import expire, held, is_full, is_sparse, push, spanned_blocks

NORM_LIMIT = 1.0 + 1e-6
"""Norms up to 1 are what the theory wants; the rest is room for rounding, single precision included."""

RESIZE, INADMISSIBLE = -1, -2


def _sum_of_norms(state: State, ring: Ring, now: int) -> float:
    return pending_width_at(state, ring, now)


def _norm(state: State, c: float) -> float:
    return c


def _nothing(state: State, ring: Ring, now: int) -> None:
    pass


def _ready(state: State, ring: Ring, draws: Array | None) -> None:
    pass


def _unheard(state: State, offer: Array) -> None:
    pass


def _ridge(state: State) -> None:
    ridge_estimate(state)


@dataclass(frozen=True)
class Algorithm:
    """The parts of an algorithm, to be compiled; what is left out is as for OTFLinUCB."""

    choose: Callable[..., int]
    """choose(state, ring, actions, draws, scores): fill the scores, return the index; it changes scratch alone."""
    width: Callable[..., float]
    """width(state, pending): what exploration is multiplied by, where `pending` is W_t."""
    pending: Callable[..., float] = _sum_of_norms
    """pending(state, ring, now): W_t, the part of the width that is due to rounds that may still convert."""
    term: Callable[..., float] = _norm
    """term(state, c): the square of what a played action adds to W; c = ‖A_s‖² in V_s⁻¹."""
    settle: Callable[..., None] = _nothing
    """settle(state, ring, now): what time changes, before a decision at `now` and before `expire`."""
    prepare: Callable[..., None] = _ready
    """prepare(state, ring, draws): what a decision changes besides, after `settle` and before `expire`."""
    hear: Callable[..., None] = _unheard
    """hear(state, actions): what is on offer, before `prepare`."""
    recall: Callable[..., None] = _unheard
    """recall(state, offer): the same from its summary, when a decision is replayed."""
    estimate: Callable[..., None] = _ridge
    """estimate(state): fill state.theta_hat."""


ALGORITHMS: dict[str, Algorithm] = {}
"""By tag."""


def settles(tag: str) -> bool:
    """Whether the algorithm's statistics change as time passes."""
    return ALGORITHMS[tag].settle is not _nothing


def tag_of(policy: type) -> str:
    """The algorithm of a class: its own, or the nearest that it inherits."""
    return next(parent.__name__ for parent in policy.__mro__ if parent.__name__ in ALGORITHMS)


def _of(record_type: Any) -> Algorithm:
    return ALGORITHMS[str(next(iter(record_type.fields)))]


def choose(state: State, ring: Ring, actions: Array, draws: Array | None, scores: Array) -> int:
    """The choice of the state's algorithm."""
    raise TypeError(_COMPILED)


def width(state: State, pending: float) -> float:
    """The width of the state's algorithm."""
    raise TypeError(_COMPILED)


def pending(state: State, ring: Ring, now: int) -> float:
    """W_t of the state's algorithm."""
    raise TypeError(_COMPILED)


def term(state: State, c: float) -> float:
    """The square of an action's term in the state's algorithm's W."""
    raise TypeError(_COMPILED)


def settle(state: State, ring: Ring, now: int) -> None:
    """What the state's algorithm does as time passes."""
    raise TypeError(_COMPILED)


def prepare(state: State, ring: Ring, draws: Array | None) -> None:
    """What the state's algorithm does before it chooses."""
    raise TypeError(_COMPILED)


def hear(state: State, offer: Array) -> None:
    """What the state's algorithm keeps of the actions on offer."""
    raise TypeError(_COMPILED)


def recall(state: State, offer: Array) -> None:
    """The same from a summary."""
    raise TypeError(_COMPILED)


def estimate(state: State) -> None:
    """θ̂ of the state's algorithm."""
    raise TypeError(_COMPILED)


_COMPILED = "this is for compiled code"


@overload(choose, strict=False)  # the signatures may be annotated otherwise
def _choose(state: State, ring: Ring, actions: Array, draws: Array | None, scores: Array) -> Callable[..., int]:
    return _of(state).choose


@overload(width, strict=False)
def _width(state: State, pending: float) -> Callable[..., float]:
    return _of(state).width


@overload(pending, strict=False)
def _pending(state: State, ring: Ring, now: int) -> Callable[..., float]:
    return _of(state).pending


@overload(term, strict=False)
def _term(state: State, c: float) -> Callable[..., float]:
    return _of(state).term


@overload(settle, strict=False)
def _settle(state: State, ring: Ring, now: int) -> Callable[..., None]:
    return _of(state).settle


@overload(prepare, strict=False)
def _prepare(state: State, ring: Ring, draws: Array | None) -> Callable[..., None]:
    return _of(state).prepare


@overload(hear, strict=False)
def _hear(state: State, offer: Array) -> Callable[..., None]:
    return _of(state).hear


@overload(recall, strict=False)
def _recall(state: State, offer: Array) -> Callable[..., None]:
    return _of(state).recall


@overload(estimate, strict=False)
def _estimate(state: State) -> Callable[..., None]:
    return _of(state).estimate


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
    c = 0.0 if state.deferred else absorb(state, action)
    norm = term(state, c)  # buffered: frozen
    if state.exact:
        shrink_norms(state, ring, c)
        norm = c / (1.0 + c)  # ‖A_s‖² in V_{s+1}⁻¹
    push(state, ring, action, stamp, norm)
    if is_check_due(state, c) and mend_inverse(state) and state.exact:
        renew_norms(state, ring)


@kernel
def play(state: State, ring: Ring, actions: Array, stamp: int, draws: Array | None, scores: Array) -> int:
    """One decision: the index of the action that was chosen and recorded, or `RESIZE` where there is no room."""
    if stamp == UNSTAMPED:
        stamp = state.rounds + 1
    if is_full(state, ring):
        return RESIZE
    hear(state, actions)
    settle(state, ring, stamp)
    prepare(state, ring, draws)
    expire(state, ring, stamp)
    index = choose(state, ring, actions, draws, scores)
    record(state, ring, actions[index], stamp)
    return index


def _step(cell: Cell, ring: Ring, actions: Array, stamp: int, draws: Array | None) -> tuple[int, int, float]:
    """One decision from outside: (index, round, score), the index negative where none could be made."""
    state = cell[0]
    if not admissible(actions):
        return INADMISSIBLE, 0, 0.0
    if is_sparse(spanned_blocks(state.head, held(state) + 2), ring.shape[0]):  # as `Memory.fit(1)` measures it
        return RESIZE, 0, 0.0
    count = actions.shape[0]
    scores = state.scores[:count] if count <= LANES else np.empty(count)
    index = play(state, ring, actions, stamp, draws, scores)
    if index >= 0:
        for i in range(actions.shape[1]):
            state.played[i] = actions[index, i]
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
def records(cell: Cell, ring: Ring, actions: Array, offers: Shorts, stamps: Integers, draws: Array) -> None:
    """Decisions that were made before, each recorded as `play` recorded it; the ring has room for all of them."""
    state = cell[0]
    for i in range(actions.shape[0]):
        stamp = state.rounds + 1 if stamps[i] == UNSTAMPED else stamps[i]
        recall(state, offers[i])
        settle(state, ring, stamp)
        prepare(state, ring, draws[i])
        expire(state, ring, stamp)
        record(state, ring, actions[i], stamp)


@kernel
def next_width(cell: Cell, ring: Ring, stamp: int) -> float:
    """The width as of a decision at `stamp`; what settles by then does so in `cell`."""
    state = cell[0]
    settle(state, ring, stamp)
    return float(width(state, pending(state, ring, stamp)))


@kernel
def next_pending_width(cell: Cell, ring: Ring, stamp: int) -> float:
    """W as of a decision at `stamp`."""
    return float(pending(cell[0], ring, stamp))


@kernel
def next_estimate(cell: Cell, ring: Ring, stamp: int) -> None:
    """Fill in θ̂ as of a decision at `stamp`; what settles by then does so in `cell`."""
    settle(cell[0], ring, stamp)
    estimate(cell[0])
