"""The class that every policy shares: decisions and conversions in, verdicts out.

Arguments, windows, random numbers and files are here. A policy is not for several threads at once.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
from numpy import ndarray

from latecomer.core.state import UNSTAMPED
from latecomer.durations import Duration, parse_grace, parse_window
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import DOUBLE, check_action_sets, check_actions, explain_inadmissible
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.baskets import BasketTable, parse_returns
from latecomer.policies.base.clock import Clock, Span, WindowClock
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.decision_options import DecisionOptions, check_options, show_options
from latecomer.policies.base.deferral import DeferredTable, parse_activation_timeout
from latecomer.policies.base.forgetting import check_half_life
from latecomer.policies.base.guard import check_guard, find_guarded, guard_numbers
from latecomer.policies.base.kernels import UNFIT
from latecomer.policies.base.limits import Limits
from latecomer.policies.base.optioned_policy import OptionedPolicy
from latecomer.policies.base.parameters import check_dim, check_ridge, expand_common, explain_unknown, list_crediting
from latecomer.policies.base.policy_code import job_for
from latecomer.policies.base.randomisation import Control, Randomisation, randomise
from latecomer.policies.base.reward import Reward, parse_reward
from latecomer.policies.base.rng import Draw, Seed
from latecomer.policies.base.saving import SavedPolicy
from latecomer.policies.base.subjects import ATTRIBUTIONS, Attribution, SubjectTable
from latecomer.policies.base.surrogates import DEFAULT_PRIOR, make_surrogates
from latecomer.timestamps import Moment
from latecomer.validation import check_choice

_MICROSECOND = timedelta(microseconds=1)


class LinearPolicy(OptionedPolicy, SavedPolicy):
    """A ridge estimate with a window of open rounds; a subclass has an `algorithm`, or gives one where it varies.

    `numbers` are the parameters that the algorithm reads from its state, `options` those that are texts; files have
    both; `state_numbers` follow from them, for the kernels alone. With `refresh_norms` the norms of open rounds follow
    V, O(m·d) a round.

    Parameters
    ----------
    half_life
        The age at which a round counts half, in rounds or as a time, as the window is; None: all count alike.
    floor
        ε in [0, 1]: every one of K actions is chosen with a probability of at least ε/K.
    ceiling
        In (0, 1]: no action is chosen with a larger probability, or 1/K where that is more, but by the control.
    limits
        {"offer-7": {"floor": 0.05, "ceiling": 0.3}}: the least and the largest probability of single actions, by their
        ids; `decide` is told their `places` in the set. The control's choices are not limited.
    draws
        n > 1: a sampler chooses by the share of n samples that each action wins, so that the probability is known.
    control
        {"share": 0.05, "policy": "uniform"}: that share of the decisions is made by the control, which is "uniform",
        the index of an action, or its id (then `decide` is told its index in the set). They are marked `is_control`.
    guard
        κ ≥ 0, 4 is usual: a proposal whose upper bound is more than κ times the width of its interval below the best
        one's is replaced by that one. The regret is then at most 1 + κ times `OTFLinUCB(width="variance")`'s bound.
    grace
        Where the window is a time: how long after its window a decision still takes conversions that occurred inside
        the window, "1d" or a `timedelta`. Until then its action is kept; for widths and maturity it is closed.
    activation_timeout
        How long a deferred decision waits for its activation, in the unit of the window; None is as long as the window.
    attribution
        The decisions in the window that a conversion of a subject is credited to: the "last", the "first" or "all".
    reward
        {"scale": 200, "aggregate": "sum"}: conversions have amounts, of which the "first", the "sum" or the "max"
        counts, as a share of the scale, and no more than that. None is a value in [0, 1], of the first conversion.
    returns
        How long after its window a credited value can still be revoked or corrected, in the unit of the window; the
        actions of credited decisions are kept until then. None is as long as the grace.
    stages
        ["click", "cart"]: signals before a conversion, which `reach` reports; a decision that reaches one is credited
        with a surrogate until its conversion is known. See docs/how-to/stages.md.
    stage_prior
        The rounds that the prior of a stage's rates weighs as much as.
    seed
        An int, or a NumPy generator; None takes fresh entropy.
    clock
        Where the window is a time: the function that tells the time when `at` is not given.
    """

    algorithm: Algorithm

    def __init_subclass__(cls) -> None:
        """Show the arguments that `**common` stands for."""
        super().__init_subclass__()
        cls.__signature__ = expand_common(cls.__init__)  # type: ignore[attr-defined]

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float,
        numbers: dict[str, float] | None = None,
        options: dict[str, str] | None = None,
        algorithm: Algorithm | None = None,
        state_numbers: dict[str, float] | None = None,
        refresh_norms: bool = False,
        half_life: Span | None = None,
        floor: float = 0.0,
        ceiling: float = 1.0,
        limits: Limits | None = None,
        draws: int = 1,
        control: Control | None = None,
        guard: float | None = None,
        grace: Duration | None = None,
        activation_timeout: Span | None = None,
        attribution: Attribution = "last",
        reward: Reward | None = None,
        returns: Span | None = None,
        stages: Sequence[str] | None = None,
        stage_prior: float = DEFAULT_PRIOR,
        seed: Seed = None,
        clock: Clock | None = None,
        **unknown: object,
    ) -> None:
        if unknown:
            raise explain_unknown(type(self), *unknown)
        self._randomisation = randomisation = Randomisation.check(floor, draws, control, ceiling, limits)
        self.limited_ids = tuple(limit.action for limit in randomisation.limits)
        algorithm, guarded = algorithm or self.algorithm, check_guard(guard)
        self.algorithm = algorithm = randomise(find_guarded(algorithm) if guarded else algorithm, randomisation)
        self._dim = check_dim(dim, has_set=algorithm.has_set)
        self._window = parse_window(window)
        self._grace = parse_grace(grace, self._window)
        self._clock = WindowClock(self._window, clock)
        self._in_rounds, self._is_randomised = self._clock.in_rounds, algorithm.is_randomised
        self._takes_draws = algorithm.draw is not Draw.NOTHING or self._is_randomised
        self._propensity = 1.0 if algorithm.draw is Draw.NOTHING else None
        self.rng = self._make_rng(seed)
        """The policy's generator; decisions draw from it in their order."""
        numbers = {"ridge": check_ridge(ridge), **(numbers or {})}
        self.deferred = DeferredTable(self._dim, parse_activation_timeout(activation_timeout, self._window))
        """The deferred decisions, for the service and tests; a caller must not change them."""
        self.subjects = SubjectTable()
        """The rounds of each subject, for the service and tests; a caller must not change them."""
        self.attribution: Attribution = check_choice("attribution", attribution, ATTRIBUTIONS)  # type: ignore[assignment]
        self.baskets, self.reward, found = BasketTable(), parse_reward(reward), parse_returns(returns, self._window)
        """The conversions of credited decisions, for the service and tests; a caller must not change them."""
        surrogates = make_surrogates(stages, stage_prior)
        self.keeps_baskets = found > 0 or not self.reward.is_binary or surrogates is not None
        self._is_plain = self._in_rounds and not self.keeps_baskets
        self.correctable = max(found, self._grace // _MICROSECOND)
        forgetting = check_half_life(half_life, self._window, algorithm)
        settings: dict[str, Any] = {**(options or {}), **randomisation.parameters, **guarded, **forgetting.parameters}
        crediting = list_crediting(self._grace, attribution, activation_timeout, returns)
        self._parameters: dict[str, Any] = {**numbers, **settings, **crediting, **self.reward.parameters}
        self._parameters.update({} if surrogates is None else surrogates.parameters)
        numbers.update(randomisation.numbers, **guard_numbers(guarded), **(state_numbers or {}), **forgetting.numbers)
        kind = forgetting.parameters_in_rounds(numbers.get("false_alarms", 0.0))
        job = job_for(type(self), self._dim, settings | kind)
        self.state = CompiledState(
            algorithm,
            self._dim,
            span=self._clock.span,
            grace=self._grace // _MICROSECOND,
            numbers=numbers,
            refresh_norms=refresh_norms,
            job=job,
        )
        """The record and the ring, for the simulator, the service and tests; a caller must not change them."""
        if surrogates is not None:
            self.state.attach_surrogates(surrogates)

    # ---- decisions ----

    def decide(
        self,
        actions: npt.ArrayLike | None = None,
        *,
        at: Moment | None = None,
        **options: Unpack[DecisionOptions],
    ) -> Decision:
        """Choose one of the actions, or k of them, and record the choice.

        Parameters
        ----------
        actions
            A (K, d) array-like, finite, of norms at most 1.
        at
            The time, where the window is a time: a `datetime` (UTC where it has no zone), an ISO 8601 text, a
            numpy.datetime64, or seconds since 1970. Without it, or with None, the policy's clock is read. A
            time before the latest decision's counts as that one's; a time more than a window before it raises
            `ClockError`.
        control
            Where the control plays an action by its id: the index of that action, None where the set has none such.
        places
            Where actions are limited by their ids: the index of each that is in the set.
        deferred
            Whether the decision counts only once it is activated (`activate`): what is never shown never enters V. Its
            `round` is negative, and stands for it in `activate`, `convert` and `revoke`.
        subject
            The user that the decision is for: `convert` may name it in place of the decision. A digest of it is kept.
        oracle
            In place of the actions, for a sampler: a function of θ̃ that returns the action of the largest ⟨a, θ̃⟩, a
            vector of norm at most 1; the set may be an assignment, a path or a subset. The decision's `index` is 0, or
            tells different answers apart where there are several draws.
        k
            How many different actions to choose, ranked; each is a round. See docs/how-to/top-k.md.
        examination
            With k > 1: the probability that each position is looked at, such as [1, 0.6, 0.4]; 1 each by default.
        """
        if options:
            check_options(options)
            return self._decide_with_options(actions, at, **options)
        state = self.state
        if type(actions) is not ndarray or actions.dtype is not DOUBLE or actions.ndim != 2:
            actions = check_actions(actions, self._dim)
        is_unstamped = at is None and self._in_rounds
        stamp = UNSTAMPED if is_unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        draws = None
        if self._takes_draws:  # a mistake takes no random numbers: the set is checked here, and not in the kernel
            if not state.is_admissible(actions):
                actions = check_actions(actions, self._dim)
                if not state.is_admissible(actions):
                    raise explain_inadmissible(actions)
            draws = self.rng.draws_of_one(self._dim)
        index, round_, score = state.code.decide_small(state.record, state.ring, actions, stamp, draws)
        if index < 0:
            if draws is None and index == UNFIT:
                actions = check_actions(actions, self._dim)
            index, round_, score = state.decide(actions, stamp, draws)
            if index == UNFIT:
                raise explain_inadmissible(actions)
        if not self._is_randomised:
            propensity = self._propensity or self._read_propensity(score, 0.0, len(actions))[0]
            return Decision(round_, index, state.last_action.tobytes(), score, propensity)
        signed = state.record["signed_propensity"].item()
        return Decision(round_, index, state.last_action.tobytes(), score, abs(signed), signed < 0.0)

    decide.__signature__ = show_options(decide, OptionedPolicy._decide_with_options)  # type: ignore[attr-defined]

    def decide_many(
        self,
        action_sets: npt.ArrayLike | Sequence[npt.ArrayLike],
        *,
        at: Moment | Collection[Moment] | None = None,
        controls: Sequence[int | None] | None = None,
    ) -> list[Decision]:
        """Decide for one action set after the other, with the answers of as many calls of `decide`.

        `at` is one time for all, or one for each; `controls` has what `decide` takes as `control`, for each set. Where
        any set is refused, none has been decided.
        """
        if self.limited_ids:
            raise InputError("decide_many is for policies without limits: call decide, with places", field="limits")
        sets = check_action_sets(action_sets, self._dim)
        for position, actions in enumerate(sets):
            if not self.state.is_admissible(actions):
                raise InputError(f"in set {position} of the batch: {explain_inadmissible(actions)}", field="actions")
        indices = None if controls is None else self._randomisation.check_indices(controls, sets)
        stamps = self._clock.decision_stamps(at, len(sets), now=self._now, rounds=self.rounds)
        first = self.rounds + 1
        draws = self.rng.draws(len(sets), self._dim)
        if isinstance(sets, list) or indices is not None:
            each = draws if self._takes_draws else [None] * len(sets)  # as `decide` gives them: one code for both
            events = zip(sets, stamps.tolist(), each, indices or [None] * len(sets), strict=True)
            decided = [self.state.decide_signed(*event) for event in events]
        else:
            ends = np.arange(1, len(sets) + 1) * sets.shape[1]
            found = self.state.decide_many(sets.reshape(-1, self._dim), ends, stamps, draws)
            columns = found.indices.tolist(), found.scores.tolist(), found.signed.tolist()
            decided = list(zip(*columns, strict=True))
        return [
            Decision(
                first + i, index, sets[i][index].copy(), score, *self._read_propensity(score, signed, len(sets[i]))
            )
            for i, (index, score, signed) in enumerate(decided)
        ]
