"""The class that every policy shares: decisions and conversions in, verdicts out.

Arguments, windows, random numbers and files are here. A policy is not for several threads at once.
"""

from collections.abc import Collection, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt
from numpy import ndarray

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import UNSTAMPED
from latecomer.durations import parse_window
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import DOUBLE, check_action_sets, check_actions, explain_inadmissible
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.choice_probabilities import NO_CONTROL
from latecomer.policies.base.clock import Clock, Span, WindowClock
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.decision import NO_ROUND, VERDICTS, Decision, Verdict, round_of
from latecomer.policies.base.guard import check_guard, find_guarded, guard_numbers
from latecomer.policies.base.kernels import UNFIT
from latecomer.policies.base.parameters import expand_common
from latecomer.policies.base.policy_code import job_for
from latecomer.policies.base.randomisation import Control, Randomisation, randomise
from latecomer.policies.base.readings import PolicyReadings
from latecomer.policies.base.rng import Draw, PolicyRng, Seed
from latecomer.policies.base.saving import SavedPolicy
from latecomer.timestamps import Moment
from latecomer.validation import check_conversion_value, check_integer, check_positive

if TYPE_CHECKING:
    from latecomer.policies.base.learning import LearnableLog, LearningReport


LARGEST_SET = 1024
"""The largest dimension of a confidence set."""


class LinearPolicy(PolicyReadings, SavedPolicy):
    """A ridge estimate with a window of open rounds; a subclass has an `algorithm`, or gives one where it varies.

    `numbers` are the parameters that the algorithm reads from its state, `options` those that are texts; files have
    both; `state_numbers` follow from them, for the kernels alone. With `refresh_norms` the norms of open rounds follow
    V, O(m·d) a round.

    Parameters
    ----------
    floor
        ε in [0, 1]: every one of K actions is chosen with a probability of at least ε/K.
    draws
        n ≥ 1: where n > 1 a sampler draws n samples and chooses by the share of them that each action wins, so that
        the probability of its choice is known. With one draw and no floor its choices are as they always were.
    control
        {"share": 0.05, "policy": "uniform"}: that share of the decisions is made by the control, which is "uniform",
        the index of an action, or its id (then `decide` is told its index in the set). They are marked `is_control`.
    guard
        κ ≥ 0: the policy proposes, and a confidence set judges; a proposal whose upper bound is more than κ times the
        width of its interval below the best one's is replaced by that one. The regret then has a bound, 1 + κ times
        that of `OTFLinUCB(width="variance")`; 4 is usual. None is off.
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
        floor: float = 0.0,
        draws: int = 1,
        control: Control | None = None,
        guard: float | None = None,
        seed: Seed = None,
        clock: Clock | None = None,
    ) -> None:
        self._randomisation = randomisation = Randomisation.check(floor, draws, control)
        algorithm, guarded = algorithm or self.algorithm, check_guard(guard)
        self.algorithm = algorithm = randomise(find_guarded(algorithm) if guarded else algorithm, randomisation)
        self._dim = check_integer("dim", dim, least=1)
        self._window = parse_window(window)
        self._clock = WindowClock(self._window, clock)
        self._in_rounds = self._clock.in_rounds
        self._is_randomised = algorithm.is_randomised
        self._takes_draws = algorithm.draw is not Draw.NOTHING or self._is_randomised
        self._propensity = 1.0 if algorithm.draw is Draw.NOTHING else None
        self.rng = self._make_rng(seed)
        """The policy's generator; decisions draw from it in their order."""
        numbers = {"ridge": check_positive("ridge", ridge), **(numbers or {})}
        if not 1e-12 <= numbers["ridge"] <= 1e12:
            raise InputError(
                f"ridge must be between 1e-12 and 1e12, for doubles to tell it from 0; got {ridge!r}, 1 is usual",
                field="ridge",
            )
        if self._dim > 8192:
            raise InputError(
                f"dim must be at most 8192, for V is kept whole; got {dim!r}: hash the features into fewer", field="dim"
            )
        if algorithm.has_set and self._dim > LARGEST_SET:
            raise InputError(
                f"dim must be at most {LARGEST_SET} with a confidence set, which keeps twelve matrices; got {dim!r}: "
                "hash the features into fewer",
                field="dim",
            )
        options = {**(options or {}), **randomisation.parameters, **guarded}
        self._parameters: dict[str, Any] = {**numbers, **options}
        numbers.update(randomisation.numbers, **guard_numbers(guarded), **(state_numbers or {}))
        job = job_for(type(self), self._dim, options)
        self.state = CompiledState(
            algorithm, self._dim, span=self._clock.span, numbers=numbers, refresh_norms=refresh_norms, job=job
        )
        """The record and the ring, for the simulator, the service and tests; a caller must not change them."""

    # ---- decisions ----

    def decide(self, actions: npt.ArrayLike, *, at: Moment | None = None, control: int | None = None) -> Decision:
        """Choose one of the actions, and record the choice.

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
        """
        state = self.state
        if type(actions) is not ndarray or actions.dtype is not DOUBLE or actions.ndim != 2:
            actions = check_actions(actions, self._dim)
        is_unstamped = at is None and self._in_rounds
        stamp = UNSTAMPED if is_unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        draws = None
        if control is not None:
            control = self._randomisation.check_index(control, len(actions))
        if self._takes_draws:  # a mistake takes no random numbers: the set is checked here, and not in the kernel
            if not state.is_admissible(actions):
                actions = check_actions(actions, self._dim)
                if not state.is_admissible(actions):
                    raise explain_inadmissible(actions)
            if control is not None:
                state.record["control_index"] = control
            draws = self.rng.draws_of_one(self._dim)
        index, round_, score = state.code.decide_small(state.record, state.ring, actions, stamp, draws)
        if index < 0:
            if draws is None and index == UNFIT:
                actions = check_actions(actions, self._dim)
            index, round_, score = state.decide(actions, stamp, draws)
            if index == UNFIT:
                raise explain_inadmissible(actions)
        if not self._is_randomised:
            propensity = self._propensity or (score if self.algorithm.scores_are_probabilities else None)
            return Decision(round_, index, state.last_action.copy(), score, propensity)
        if control is not None:
            state.record["control_index"] = NO_CONTROL
        signed = state.record["signed_propensity"].item()
        return Decision(round_, index, state.last_action.copy(), score, abs(signed), signed < 0.0)

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
            decided = self.state.decide_many(sets, stamps, draws)
        return [
            Decision(first + i, index, sets[i][index].copy(), score, *self._read_propensity(score, signed))
            for i, (index, score, signed) in enumerate(decided)
        ]

    def _read_propensity(self, score: float, signed: float) -> tuple[float | None, bool]:
        """Return a decision's propensity, and whether the control made it."""
        if self._is_randomised:
            return abs(signed), signed < 0.0
        return self._propensity or (score if self.algorithm.scores_are_probabilities else None), False

    # ---- conversions ----

    def convert(self, decision: Decision | float, value: float = 1.0, *, at: Moment | None = None) -> Verdict:
        """Credit a conversion to its decision, while its window is open.

        Anything but `Verdict.ACCEPTED` has changed nothing. Once its window has closed a decision is forgotten, and any
        conversion of it is late, duplicates included.

        Parameters
        ----------
        decision
            The decision, or its round: a whole number, which may be a float, as in a column with missing values.
        value
            The value of the conversion, in [0, 1].
        at
            The time of arrival, where the window is a time, as in `decide`; NaT and NaN are refused. A time before the
            latest decision's counts as that one's. Of a time before the conversion's own decision the delay is
            unknown, and the delay curve leaves it out.
        """
        if type(value) is not float or not 0.0 <= value <= 1.0:
            value = check_conversion_value("value", value)
        round_ = decision if type(decision) is int and 0 < decision < NO_ROUND else round_of(decision)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)
        state = self.state
        return VERDICTS[state.code.convert(state.record, state.ring, round_, value, stamp)]

    def revoke(self, decision: Decision | float, *, at: Moment | None = None) -> Verdict:
        """Revoke a credited conversion for good, while its window is open: a purchase that was returned.

        Verdicts are as in `convert`, but `DUPLICATE`: it was revoked before; `UNKNOWN`: also, it has not converted.
        """
        round_ = round_of(decision)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)
        return VERDICTS[self.state.revoke(round_, stamp)]

    def learn(self, log: "LearnableLog", *, encoder: Any = None, scale: float = 1.0) -> "LearningReport":
        """Learn from decisions that others made, with their conversions, in the order of time: a warm start.

        The policy becomes, bit for bit, the one that would have recorded these events one by one; rounds whose window
        is still open stay open. It must come before later decisions.

        Parameters
        ----------
        log
            A log of decisions, as `latecomer.read_log` reads it.
        encoder
            Where the log has features by name: the `latecomer.Encoder` that makes actions of them.
        scale
            The largest value that a conversion can have; values are divided by it.
        """
        from latecomer.policies.base.learning import learn  # noqa: PLC0415 - it needs this class

        batches = log.logged_decisions(self._dim, encoder=encoder, scale=check_positive("scale", scale))
        before = self.state.record.copy(), self.state.ring.copy(), self.rng.state()
        try:
            return learn(self, batches, decisions=log.decisions)
        except BaseException:  # a mistake in the middle of a log leaves nothing half learnt
            self.state.put_back(*before[:2])
            self.rng.restore(before[2])
            raise

    def _arrival_stamp(self, round_: int, at: Moment | None) -> int:
        stamp, now = self._clock.read(at), self._now
        if now - stamp <= self.span:
            return stamp  # as it is: the kernel tells a time before its own decision from one before the latest
        if self.state.judge_conversion(round_, now) != ACCEPTED:
            return now  # an old message for a decision that is closed or converted: the verdict says so
        return self._clock.not_before(stamp, now, latest=self.rounds)  # raises

    # ---- copies ----

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self._parameters.items())
        return f"<{type(self).__name__}(dim={self.dim}, window={self.window!r}{parameters}) after {self.rounds} rounds>"

    def fresh(self, seed: Seed = None) -> Self:
        """Make a policy of the same parameters that has seen nothing, with a generator of its own."""
        twin = copy(self)
        twin.state = self.state.make_empty()
        twin.rng, twin._assessor = self._make_rng(seed), None
        return twin

    def _make_rng(self, seed: Seed) -> PolicyRng:
        """Make a generator; that of a policy which draws nothing is always the same."""
        return PolicyRng(self.algorithm.draw, seed if self._takes_draws else 0, spare=int(self._is_randomised))
