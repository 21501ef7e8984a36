"""The class that every policy shares: decisions and conversions in, verdicts out.

Arguments, windows, random numbers and files are here. A policy is not for several threads at once.
"""

from collections.abc import Collection, Sequence
from copy import copy
from datetime import timedelta
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numpy import ndarray

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import UNSTAMPED, Array, FieldKind
from latecomer.durations import parse_window
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import DOUBLE, check_action_sets, check_actions, explain_inadmissible
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.clock import Clock, Span, WindowClock
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.decision import NO_ROUND, VERDICTS, Decision, Verdict, round_of
from latecomer.policies.base.kernels import UNFIT
from latecomer.policies.base.policy_code import job_for
from latecomer.policies.base.rng import Draw, PolicyRng, Seed
from latecomer.policies.persistence.file_format import pack, write
from latecomer.policies.registry import check_registered
from latecomer.timestamps import Moment
from latecomer.validation import check_conversion_value, check_integer, check_positive


class LinearPolicy:
    """A ridge estimate with a window of open rounds; a subclass has an `algorithm`, or gives one where it varies.

    `numbers` are the parameters that the algorithm reads from its state, `options` those that are texts; files have
    both. With `refresh_norms` the norms of open rounds follow V, O(m·d) a round.
    """

    algorithm: Algorithm

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float,
        numbers: dict[str, float] | None = None,
        options: dict[str, str] | None = None,
        algorithm: Algorithm | None = None,
        refresh_norms: bool = False,
        seed: Seed = 0,
        clock: Clock | None = None,
    ) -> None:
        self.algorithm = algorithm = algorithm or self.algorithm
        self._dim = check_integer("dim", dim, least=1)
        self._window = parse_window(window)
        self._clock = WindowClock(self._window, clock)
        self._in_rounds = self._clock.in_rounds
        self.rng = PolicyRng(algorithm.draw, seed)
        """The policy's generator; decisions draw from it in their order."""
        self._no_draws = None if algorithm.draw is Draw.NOTHING else np.empty(self._dim)
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
        self._parameters: dict[str, Any] = {**numbers, **(options or {})}
        job = job_for(type(self), self._dim, options or {})
        self.state = CompiledState(
            algorithm, self._dim, span=self._clock.span, numbers=numbers, refresh_norms=refresh_norms, job=job
        )
        """The record and the ring, for the simulator, the service and tests; a caller must not change them."""

    # ---- decisions ----

    def decide(self, actions: npt.ArrayLike, *, at: Moment | None = None) -> Decision:
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
        """
        state = self.state
        if type(actions) is not ndarray or actions.dtype is not DOUBLE or actions.ndim != 2:
            actions = check_actions(actions, self._dim)
        is_unstamped = at is None and self._in_rounds
        stamp = UNSTAMPED if is_unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        draws = self._no_draws
        if draws is not None:  # a mistake takes no random numbers: the set is checked here, and not in the kernel
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
        return Decision(round_, index, state.last_action.copy(), score)

    def decide_many(
        self,
        action_sets: npt.ArrayLike | Sequence[npt.ArrayLike],
        *,
        at: Moment | Collection[Moment] | None = None,
    ) -> list[Decision]:
        """Decide for one action set after the other, with the answers of as many calls of `decide`.

        `at` is one time for all, or one for each. Where any set is refused, none has been decided.
        """
        sets = check_action_sets(action_sets, self._dim)
        for position, actions in enumerate(sets):
            if not self.state.is_admissible(actions):
                raise InputError(f"in set {position} of the batch: {explain_inadmissible(actions)}", field="actions")
        stamps = self._clock.decision_stamps(at, len(sets), now=self._now, rounds=self.rounds)
        first = self.rounds + 1
        draws = self.rng.draws(len(sets), self._dim)
        if isinstance(sets, list):
            each = [None] * len(sets) if self._no_draws is None else draws  # as `decide` gives them: one code for both
            decided = [self.state.decide(*event) for event in zip(sets, stamps.tolist(), each, strict=True)]
            indices, scores = [index for index, _, _ in decided], [score for _, _, score in decided]
        else:
            indices, scores = self.state.decide_many(sets, stamps, draws)
        return [
            Decision(first + i, index, sets[i][index].copy(), score)
            for i, (index, score) in enumerate(zip(indices, scores, strict=True))
        ]

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

    def _arrival_stamp(self, round_: int, at: Moment | None) -> int:
        stamp, now = self._clock.read(at), self._now
        if now - stamp <= self.span:
            return stamp  # as it is: the kernel tells a time before its own decision from one before the latest
        if self.state.judge_conversion(round_, now) != ACCEPTED:
            return now  # an old message for a decision that is closed or converted: the verdict says so
        return self._clock.not_before(stamp, now, latest=self.rounds)  # raises

    # ---- readings: numbers and copies ----

    @property
    def dim(self) -> int:
        """d, the number of features of an action."""
        return self._dim

    @property
    def window(self) -> int | timedelta:
        """m, the window: rounds, or a time."""
        return self._window

    @property
    def span(self) -> int:
        """The window in the unit of stamps: rounds, or microseconds."""
        return self._clock.span

    @property
    def rounds(self) -> int:
        """The number of decisions made."""
        return int(self.state.number("rounds"))

    @property
    def pending(self) -> int:
        """The number of decisions that would be credited if they converted now; in time, with the latest decision."""
        return int(self.state.number("pending"))

    @property
    def V(self) -> Array:
        """V = λI + Σ A_s A_sᵀ, a copy."""
        return self.state.array("V")

    @property
    def V_inv(self) -> Array:
        """V⁻¹, a copy."""
        return self.state.array("V_inv")

    @property
    def B(self) -> Array:
        """B = Σ Ỹ_s A_s, a copy."""
        return self.state.array("B")

    @property
    def log_det(self) -> float:
        """The logarithm of det(V)/λ^d."""
        return float(self.state.number("log_det"))

    @property
    def theta_hat(self) -> Array:
        """θ̂ = V⁻¹B, Eq. 1, or the policy's own estimate in its place, as of the next round.

        It estimates τ_m·θ: how many conversions the window loses cannot be known from inside it.
        """
        return self.state.theta_hat(self._next_stamp)

    @property
    def width(self) -> float:
        """The algorithm's width (α_t or β_t) as of the next round; in time, as if it came with the latest one."""
        return self.state.width(self._next_stamp)

    @property
    def pending_width(self) -> float:
        """W_t, the part of the width that is due to rounds that may still convert."""
        return self.state.pending_width(self._next_stamp)

    @property
    def delay_curve(self) -> tuple[Array, Array] | None:
        """F̂_m, where it is estimated: ages in the window's unit, and the share of observable conversions by then."""
        edges, curve = self.state.find_array(FieldKind.BIN_EDGES), self.state.find_array(FieldKind.DELAY_CURVE)
        if edges is None or curve is None:
            return None
        return edges.astype(np.float64) / (1 if self._in_rounds else 1e6), curve

    @property
    def _now(self) -> int:
        return int(self.state.number("now"))

    @property
    def _next_stamp(self) -> int:
        return self.rounds + 1 if self._in_rounds else self._now

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self._parameters.items())
        return f"<{type(self).__name__}(dim={self.dim}, window={self.window!r}{parameters}) after {self.rounds} rounds>"

    # ---- files and copies ----

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a policy of the same parameters; seed and clock are not among them."""
        return {"dim": self._dim, "window": self._window, **self._parameters}

    def fresh(self, seed: Seed = None) -> Self:
        """Make a policy of the same parameters that has seen nothing, with a generator of its own."""
        twin = copy(self)
        twin.state = self.state.make_empty()
        twin.rng = PolicyRng(self.algorithm.draw, 0 if self._no_draws is None else seed)
        return twin

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, atomically; `latecomer.load` continues from it bit for bit."""
        write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the contents of the file that `save` writes."""
        check_registered(type(self))
        name, generator = type(self).__name__, self.rng.state()
        return pack(policy=name, parameters=self.parameters, generator=generator, arrays=self.state.arrays())

    def restore(self, generator: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the policy that was saved; `latecomer.load` calls it."""
        self.rng.restore(generator)
        self.state.restore(arrays)
