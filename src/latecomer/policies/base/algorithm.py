"""Algorithms: functions of a state that the generic kernels call, and the fields that they add to the state.

An algorithm is two functions of its state: `width` (α_t, β_t, or whatever it multiplies its exploration by) and
`choose`. One that is more than a ridge estimate of everything played has other functions too: see `Algorithm`. Its key
is the name of the first field of the state's record, by which kernels find its functions; machine code is made for one
algorithm (`latecomer.tiers.flatten`), and no look-up is left in it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from latecomer.core.action_summary import Shorts, summarise_actions
from latecomer.core.jit import hook
from latecomer.core.ridge_statistics import estimate as ridge_estimate
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.policies.base.default_parts import (
    ignore_actions,
    keep_no_set,
    no_bonus,
    no_fields,
    no_set_to_correct,
    nothing_to_correct,
    squared_norm,
    sum_of_norms,
    unchanged_by_round,
    unchanged_by_time,
    unknown_propensity,
)
from latecomer.policies.base.rng import Draw


def zero_pending_width(state: State, ring: Ring, now: int) -> float:
    """Return 0: open rounds do not bias the estimate."""
    return 0.0


def zero_width(state: State, pending_width: float) -> float:
    """Return 0: the algorithm does not scale its exploration."""
    return 0.0


@dataclass(frozen=True, eq=False)
class Algorithm:
    """The parts of an algorithm. Those left out are OTFLinUCB's; defining an algorithm makes its key known.

    The functions are compiled: they may call kernels of `latecomer.core` and functions decorated by `core.jit.kernel`.
    """

    name: str
    choose: Callable[..., int]
    """choose(state, ring, actions, draws, scores): fill the scores, return the index; change scratch fields alone."""
    width: Callable[..., float]
    """width(state, pending_width): the factor of exploration, where `pending_width` is W_t."""
    pending_width: Callable[..., float] = sum_of_norms
    """pending_width(state, ring, now): W_t, the part of the width that is due to rounds that may still convert."""
    window_term: Callable[..., float] = squared_norm
    """window_term(state, c): the square of what a played action adds to W; c = ‖A_s‖² in V_s⁻¹."""
    advance_time: Callable[..., None] = unchanged_by_time
    """advance_time(state, ring, now): bring statistics up to a decision at `now`, before `expire`."""
    observe_actions: Callable[..., None] | None = None
    """observe_actions(state, summary): learn from the summary of the set, before `advance_time`; the extra fields must
    have `action_summary`."""
    begin_round: Callable[..., None] = unchanged_by_round
    """begin_round(state, ring, draws): the other changes that a decision makes, between `advance_time` and `expire`."""
    advance_set: Callable[..., None] = unchanged_by_time
    """advance_set(state, ring, now): let a confidence set learn from closing rounds, after `advance_time`."""
    record_in_set: Callable[..., None] = keep_no_set
    """record_in_set(state, ring, action): let it know of the round that has just been added to the ring."""
    correct_set: Callable[..., None] = no_set_to_correct
    """correct_set(state, ring, slot, before, after): correct what it has learnt from a closed round; its values."""
    round_fields: tuple[str, ...] = ()
    """The numbers that the algorithm keeps of each open round: fields of the ring's blocks."""
    correct_closed_round: Callable[..., None] = nothing_to_correct
    """correct_closed_round(state, ring, slot, change, delay): the value of a closed round has changed by `change`, and
    B with it; `delay` is its conversion's where new and known, else −1. Correct what else was learnt from the round.
    Long after it closed, `ring` is not the state's, and has the round alone."""
    forget: Callable[..., None] | None = ignore_actions
    """forget(state, factor): multiply the weights of all rounds in its own statistics; None: it cannot forget."""
    estimate: Callable[..., None] = ridge_estimate
    """estimate(state): fill state.theta_hat."""
    posterior: Callable[..., None] | None = None
    """posterior(state, ring, actions, means, spread): the Gaussian law of the scores that `choose` samples: score k is
    means[k] + Σ_i z_i·spread[i, k]; spread comes as zeros."""
    square_bonus: Callable[..., float] = no_bonus
    """square_bonus(state): the factor of ‖a‖²_{V⁻¹} in the means of `posterior`, which is linear in a otherwise."""
    scores_are_probabilities: bool = False
    """The scores are the probabilities by which `choose` draws."""
    fill_probabilities: Callable[..., None] | None = None
    """fill_probabilities(state, ring, actions, draws, scores, out): see `choice_probabilities`, which sets it."""
    propose: Callable[..., int] | None = None  # the `choose` of the algorithm that this one randomises
    suggest: Callable[..., int] | None = None  # the `choose` of the algorithm that this one guards
    guards: "Algorithm | None" = None  # the algorithm whose proposals this one judges: see `guard`
    randomises: "Algorithm | None" = None  # the algorithm that this one randomises
    signed_propensity: Callable[..., float] = unknown_propensity
    """signed_propensity(state): the probability of the latest choice, negative where the control made it."""
    draw: Draw = Draw.NOTHING  # the random numbers that a decision takes
    needs_cholesky: bool = False  # keep U with UᵀU = V, to sample from N(0, V⁻¹)
    needs_arrival_times: bool = False  # keep the arrival times of conversions in snapshots: it reads delays
    learn_on_close: bool = False  # let a round enter V and B when it closes, not when it is played
    extra_fields: Callable[[int, int, float], ExtraFields] = no_fields
    """extra_fields(dim, span, ridge): the fields that the state has besides, by name."""
    key: str = field(init=False)  # the name by which kernels find the algorithm

    def __post_init__(self) -> None:
        number = sum(other.name == self.name for other in _ALGORITHMS.values())
        object.__setattr__(self, "key", f"{self.name}/{number}" if number else self.name)
        _ALGORITHMS[self.key] = self

    @property
    def summarise_and_observe(self) -> Callable[..., None]:
        """The function that takes an action set itself."""
        return ignore_actions if self.observe_actions is None else _summarise_and_observe

    @property
    def latest_summary(self) -> Callable[..., None]:
        """The function that fills in the summary of the set just decided on."""
        return _summarise if self.observe_actions is None else _copy_summary

    @property
    def is_randomised(self) -> bool:
        """Tell whether the choice is drawn by known probabilities; a decision then takes one more random number."""
        return self.randomises is not None

    @property
    def changes_with_time(self) -> bool:
        """Tell whether the statistics change as time passes."""
        return self.advance_time is not unchanged_by_time or self.has_set

    @property
    def has_set(self) -> bool:
        """Tell whether the algorithm keeps a confidence set."""
        return self.advance_set is not unchanged_by_time


_ALGORITHMS: dict[str, Algorithm] = {}
"""By key."""


# Each function below stands for that of the state's algorithm.


@hook("choose")
def choose(state: State, ring: Ring, actions: Array, draws: Array | None, scores: Array) -> int:
    """Choose an action by the state's algorithm."""
    return _ALGORITHMS[state.algorithm].choose(state, ring, actions, draws, scores)


@hook("propose")
def propose(state: State, ring: Ring, actions: Array, draws: Array | None, scores: Array) -> int:
    """Choose an action by the algorithm that the state's algorithm randomises."""
    found: int = _ALGORITHMS[state.algorithm].propose(state, ring, actions, draws, scores)  # type: ignore[misc]
    return found


@hook("suggest")
def suggest(state: State, ring: Ring, actions: Array, draws: Array | None, scores: Array) -> int:
    """Choose an action by the algorithm that the state's algorithm guards."""
    found: int = _ALGORITHMS[state.algorithm].suggest(state, ring, actions, draws, scores)  # type: ignore[misc]
    return found


@hook("posterior")
def posterior(state: State, ring: Ring, actions: Array, means: Array, spread: Array) -> None:
    """Fill in the law of the scores of the state's algorithm."""
    _ALGORITHMS[state.algorithm].posterior(state, ring, actions, means, spread)  # type: ignore[misc]


@hook("square_bonus")
def square_bonus(state: State) -> float:
    """Return the factor of ‖a‖²_{V⁻¹} in the scores of the state's algorithm."""
    return _ALGORITHMS[state.algorithm].square_bonus(state)


@hook("fill_probabilities")
def fill_probabilities(state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array) -> None:
    """Fill in the probabilities by which the state's algorithm would choose without a floor or a control."""
    _ALGORITHMS[state.algorithm].fill_probabilities(state, ring, actions, draws, scores, out)  # type: ignore[misc]


@hook("signed_propensity")
def signed_propensity(state: State) -> float:
    """Return the probability of the latest choice, negative where the control made it; NaN where it is unknown."""
    return _ALGORITHMS[state.algorithm].signed_propensity(state)


@hook("width")
def width(state: State, pending_width: float) -> float:
    """Return the width of the state's algorithm."""
    return _ALGORITHMS[state.algorithm].width(state, pending_width)


@hook("pending_width")
def pending_width(state: State, ring: Ring, now: int) -> float:
    """Return W_t of the state's algorithm."""
    return _ALGORITHMS[state.algorithm].pending_width(state, ring, now)


@hook("window_term")
def window_term(state: State, c: float) -> float:
    """Return the square of an action's term in W of the state's algorithm."""
    return _ALGORITHMS[state.algorithm].window_term(state, c)


@hook("advance_time")
def advance_time(state: State, ring: Ring, now: int) -> None:
    """Bring the statistics of the state's algorithm up to `now`."""
    _ALGORITHMS[state.algorithm].advance_time(state, ring, now)


@hook("advance_set")
def advance_set(state: State, ring: Ring, now: int) -> None:
    """Bring the confidence set of the state's algorithm up to `now`, if it has one."""
    _ALGORITHMS[state.algorithm].advance_set(state, ring, now)


@hook("correct_set")
def correct_set(state: State, ring: Ring, slot: int, before: float, after: float) -> None:
    """Correct the confidence set of the state's algorithm, if it has one."""
    _ALGORITHMS[state.algorithm].correct_set(state, ring, slot, before, after)


@hook("record_in_set")
def record_in_set(state: State, ring: Ring, action: Array) -> None:
    """Give the round just played to the confidence set of the state's algorithm, if it has one."""
    _ALGORITHMS[state.algorithm].record_in_set(state, ring, action)


@hook("forget")
def forget_own(state: State, factor: float) -> None:
    """Multiply the weights of all rounds in the algorithm's own statistics by a factor."""
    _ALGORITHMS[state.algorithm].forget(state, factor)  # type: ignore[misc]


@hook("begin_round")
def begin_round(state: State, ring: Ring, draws: Array | None) -> None:
    """Make the changes of the state's algorithm that come before the choice."""
    _ALGORITHMS[state.algorithm].begin_round(state, ring, draws)


@hook("correct_closed_round")
def correct_closed_round(state: State, ring: Ring, slot: int, change: float, delay: int) -> None:
    """Correct what the state's algorithm has learnt from a closed round, B apart."""
    _ALGORITHMS[state.algorithm].correct_closed_round(state, ring, slot, change, delay)


@hook("observe_actions", default=ignore_actions)
def observe_summary(state: State, summary: Shorts) -> None:
    """Give a summary to the state's algorithm, if it wants summaries."""
    (_ALGORITHMS[state.algorithm].observe_actions or ignore_actions)(state, summary)


@hook("summarise_and_observe")
def observe_actions(state: State, actions: Array) -> None:
    """Summarise an action set for the state's algorithm, if it wants summaries."""
    _ALGORITHMS[state.algorithm].summarise_and_observe(state, actions)


@hook("latest_summary")
def latest_summary(state: State, actions: Array, summary: Shorts) -> None:
    """Fill in the summary of the set just decided on: the algorithm's own, where it has made one."""
    _ALGORITHMS[state.algorithm].latest_summary(state, actions, summary)


@hook("estimate")
def estimate(state: State) -> None:
    """Fill in θ̂ of the state's algorithm."""
    _ALGORITHMS[state.algorithm].estimate(state)


def _summarise(state: State, actions: Array, summary: Shorts) -> None:
    summarise_actions(actions, summary)


def _copy_summary(state: State, actions: Array, summary: Shorts) -> None:
    summary[:] = state.action_summary


def _summarise_and_observe(state: State, actions: Array) -> None:
    summarise_actions(actions, state.action_summary)
    if not state.frozen:
        observe_summary(state, state.action_summary)
