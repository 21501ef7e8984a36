"""Algorithms: functions of a state that the generic kernels call, and the fields that they add to the state.

An algorithm is two functions of its state: `width` (α_t, β_t, or whatever it multiplies its exploration by) and
`choose`. One that is more than a ridge estimate of everything played has other functions too: see `Algorithm`. Its key
is the name of the first field of the state's record, and Numba finds the functions by it while it compiles: no branch
is left at run time, and the kernels are cached on disk.
"""

import inspect
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba.extending import overload

from latecomer.core.action_summary import Shorts, summarise_actions
from latecomer.core.ridge_statistics import estimate as ridge_estimate
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.core.width import pending_width_at
from latecomer.policies.base.rng import Draw


def _sum_of_norms(state: State, ring: Ring, now: int) -> float:
    return pending_width_at(state, ring, now)


def _squared_norm(state: State, c: float) -> float:
    return c


def _unchanged_by_time(state: State, ring: Ring, now: int) -> None:
    pass


def _unchanged_by_round(state: State, ring: Ring, draws: Array | None) -> None:
    pass


def _ridge_estimate(state: State) -> None:
    ridge_estimate(state)


def _no_fields(dim: int, span: int, ridge: float) -> ExtraFields:
    return {}


def zero_pending_width(state: State, ring: Ring, now: int) -> float:
    """Return 0: open rounds do not bias the estimate."""
    return 0.0


def zero_width(state: State, pending_width: float) -> float:
    """Return 0: the algorithm does not scale its exploration."""
    return 0.0


def unit_width(state: State, pending_width: float) -> float:
    """Return 1: exploration is scaled by the policy's parameter alone."""
    return 1.0


@dataclass(frozen=True, eq=False)
class Algorithm:
    """The parts of an algorithm. Those left out are OTFLinUCB's.

    The functions are compiled: they may call kernels of `latecomer.core` and functions decorated by `core.jit.kernel`.
    Defining an algorithm makes its key known to the compiler.
    """

    name: str
    choose: Callable[..., int]
    """choose(state, ring, actions, draws, scores): fill the scores, return the index; change scratch fields alone."""
    width: Callable[..., float]
    """width(state, pending_width): the factor of exploration, where `pending_width` is W_t."""
    pending_width: Callable[..., float] = _sum_of_norms
    """pending_width(state, ring, now): W_t, the part of the width that is due to rounds that may still convert."""
    window_term: Callable[..., float] = _squared_norm
    """window_term(state, c): the square of what a played action adds to W; c = ‖A_s‖² in V_s⁻¹."""
    advance_time: Callable[..., None] = _unchanged_by_time
    """advance_time(state, ring, now): bring statistics up to a decision at `now`, before `expire`."""
    observe_actions: Callable[..., None] | None = None
    """observe_actions(state, summary): learn from the summary of the action set; the extra fields must have
    `action_summary`. It comes before `advance_time`, live and in a replay."""
    begin_round: Callable[..., None] = _unchanged_by_round
    """begin_round(state, ring, draws): the other changes that a decision makes, between `advance_time` and `expire`."""
    estimate: Callable[..., None] = _ridge_estimate
    """estimate(state): fill state.theta_hat."""
    draw: Draw = Draw.NOTHING
    """The random numbers that a decision takes from the policy's generator."""
    needs_cholesky: bool = False
    """Keep U with UᵀU = V, to sample from N(0, V⁻¹)."""
    needs_arrival_times: bool = False
    """Keep the arrival times of conversions in snapshots: the algorithm reads delays."""
    learn_on_close: bool = False
    """Let a round enter V and B when it closes, not when it is played."""
    extra_fields: Callable[[int, int, float], ExtraFields] = _no_fields
    """extra_fields(dim, span, ridge): the fields that the state has besides, by name."""
    key: str = field(init=False)
    """The name by which compiled code finds the algorithm."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.name + _source_suffix(self.choose))
        _ALGORITHMS[self.key] = self

    @property
    def changes_with_time(self) -> bool:
        """Tell whether the statistics change as time passes."""
        return self.advance_time is not _unchanged_by_time


_ALGORITHMS: dict[str, Algorithm] = {}
"""By key."""


def _source_suffix(function: Callable[..., object]) -> str:
    """Return "" for the package's own algorithms; for others, a digest of the file that defines them.

    Numba keys cached machine code by types, of which the key is a part: an edited file must not meet its old code.
    """
    if function.__module__.startswith("latecomer."):
        return ""
    try:
        source = Path(inspect.getsourcefile(function) or "").read_bytes()
    except (OSError, TypeError):
        return f"/{secrets.token_hex(8)}"  # typed in by hand: never from the cache
    return f"/{sha256(source).hexdigest()[:16]}"


def _algorithm_of(record_type: Any) -> Algorithm:
    return _ALGORITHMS[str(next(iter(record_type.fields)))]


# Each function below stands for that of the state's algorithm in compiled code.


def choose(state: State, ring: Ring, actions: Array, draws: Array | None, scores: Array) -> int:
    """Choose an action by the state's algorithm."""
    raise TypeError(_COMPILED)


def width(state: State, pending_width: float) -> float:
    """Return the width of the state's algorithm."""
    raise TypeError(_COMPILED)


def pending_width(state: State, ring: Ring, now: int) -> float:
    """Return W_t of the state's algorithm."""
    raise TypeError(_COMPILED)


def window_term(state: State, c: float) -> float:
    """Return the square of an action's term in W of the state's algorithm."""
    raise TypeError(_COMPILED)


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Bring the statistics of the state's algorithm up to `now`."""
    raise TypeError(_COMPILED)


def begin_round(state: State, ring: Ring, draws: Array | None) -> None:
    """Make the changes of the state's algorithm that come before the choice."""
    raise TypeError(_COMPILED)


def observe_actions(state: State, actions: Array) -> None:
    """Summarise an action set for the state's algorithm, if it wants summaries."""
    raise TypeError(_COMPILED)


def observe_summary(state: State, summary: Shorts) -> None:
    """Give a summary to the state's algorithm, if it wants summaries."""
    raise TypeError(_COMPILED)


def estimate(state: State) -> None:
    """Fill in θ̂ of the state's algorithm."""
    raise TypeError(_COMPILED)


_COMPILED = "this is for compiled code"


@overload(choose, strict=False)  # the signatures may be annotated otherwise
def _choose(state: State, ring: Ring, actions: Array, draws: Array | None, scores: Array) -> Callable[..., int]:
    return _algorithm_of(state).choose


@overload(width, strict=False)
def _width(state: State, pending_width: float) -> Callable[..., float]:
    return _algorithm_of(state).width


@overload(pending_width, strict=False)
def _pending_width(state: State, ring: Ring, now: int) -> Callable[..., float]:
    return _algorithm_of(state).pending_width


@overload(window_term, strict=False)
def _window_term(state: State, c: float) -> Callable[..., float]:
    return _algorithm_of(state).window_term


@overload(advance_time, strict=False)
def _advance_time(state: State, ring: Ring, now: int) -> Callable[..., None]:
    return _algorithm_of(state).advance_time


@overload(begin_round, strict=False)
def _begin_round(state: State, ring: Ring, draws: Array | None) -> Callable[..., None]:
    return _algorithm_of(state).begin_round


@overload(estimate, strict=False)
def _estimate(state: State) -> Callable[..., None]:
    return _algorithm_of(state).estimate


@overload(observe_summary, strict=False)
def _observe_summary(state: State, summary: Shorts) -> Callable[..., None]:
    return _algorithm_of(state).observe_actions or _ignore_actions


@overload(observe_actions, strict=False)
def _observe_actions(state: State, actions: Array) -> Callable[..., None]:
    return _summarise_and_observe if _algorithm_of(state).observe_actions else _ignore_actions


def _ignore_actions(state: State, actions: Array) -> None:
    pass


def _summarise_and_observe(state: State, actions: Array) -> None:
    summarise_actions(actions, state.action_summary)
    observe_summary(state, state.action_summary)
