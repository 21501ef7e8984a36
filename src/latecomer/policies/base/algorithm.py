"""What an algorithm is: functions of its state, to be compiled, and what its state holds besides V, B and the window.

An algorithm is two functions of its state: `width` (α_t, β_t, or whatever it multiplies its exploration by) and
`choose`. Where it is not a ridge estimate of everything played it has others too: see `Algorithm`. They are registered
under a tag, the tag is the name of the first field of the state's record, and Numba resolves the call while it
compiles: there is no branch left at run time, and the kernels cache like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.extending import overload

from latecomer.core.ridge import estimate as ridge_estimate
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.core.width import pending_width_at
from latecomer.errors import InputError
from latecomer.policies.base.rng import Draw


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


def _no_extras(dim: int, span: int, ridge: float) -> ExtraFields:
    return {}


def nothing_pending(state: State, ring: Ring, now: int) -> float:
    """For estimates that open rounds do not bias: there is nothing to widen for."""
    return 0.0


@dataclass(frozen=True)
class Algorithm:
    """The parts of an algorithm; what is left out is as for OTFLinUCB."""

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
    draw: Draw = Draw.NOTHING
    """What a decision takes from the policy's generator."""
    sampled: bool = False
    """Whether the state keeps a factor of V, to draw from N(0, V⁻¹)."""
    deferred: bool = False
    """Whether a round enters V when it closes, not when it is played."""
    extras: Callable[[int, int, float], ExtraFields] = _no_extras
    """extras(dim, span, ridge): what the state holds besides, by name, as it is before the first round."""


ALGORITHMS: dict[str, Algorithm] = {}
"""By tag."""


def settles(tag: str) -> bool:
    """Whether the algorithm's statistics change as time passes."""
    return ALGORITHMS[tag].settle is not _nothing


def tag_of(policy: type) -> str:
    """The algorithm of a class: its own, or the nearest that it inherits."""
    for parent in policy.__mro__:
        if parent.__name__ in ALGORITHMS:
            return parent.__name__
    raise InputError(f"a policy must have an algorithm; {policy.__name__} has none: register it in ALGORITHMS")


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
