"""The shell that every policy shares: events in, verdicts out.

An algorithm is its `choose`; arguments, windows, draws and files are here. A policy has one owner: it is not for
several threads at once.
"""

from collections.abc import Collection, Sequence
from copy import copy
from datetime import timedelta
from os import PathLike
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from numpy import ndarray

from latecomer.core.ring import ACCEPTED
from latecomer.core.state import UNSTAMPED, Array
from latecomer.durations import parse_window
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import DOUBLE, check_action_sets, check_actions, explain_inadmissible
from latecomer.policies.base.algorithm import ALGORITHMS, tag_of
from latecomer.policies.base.clock import Clock, Span, not_before, span_of, system_clock
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.decision import NO_ROUND, VERDICTS, Decision, Verdict, round_of
from latecomer.policies.base.knowledge import Knowledge
from latecomer.policies.base.rng import Draw, PolicyRng, Seed
from latecomer.policies.persistence.file_format import pack, write
from latecomer.policies.registry import POLICIES
from latecomer.timestamps import Moment, parse_timestamp
from latecomer.validation import check_conversion_value, check_integer, check_positive


class LinearPolicy(Knowledge):
    """A ridge estimate with a window of open rounds; a subclass gives it a way to choose."""

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float,
        tag: str | None = None,
        exact: bool = False,
        numbers: dict[str, float] | None = None,
        options: dict[str, str] | None = None,
        seed: Seed = 0,
        clock: Clock | None = None,
    ) -> None:
        tag = tag or tag_of(type(self))
        algorithm = ALGORITHMS[tag]
        self._dim = check_integer("dim", dim, least=1)
        self._window = parse_window(window)
        self._span = span_of(self._window)
        self._in_rounds = not isinstance(self._window, timedelta)
        self._clock = clock or system_clock
        self._randomness = PolicyRng(algorithm.draw, seed)
        self._no_draws = None if self._randomness.draw is Draw.NOTHING else np.empty(self._dim)
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
        if clock is not None and not callable(clock):
            raise InputError(f"clock must be a function that tells the time; got {clock!r}", field="clock")
        self._parameters: dict[str, Any] = {**numbers, **(options or {})}
        self._memory = CompiledState(
            tag,
            self._dim,
            span=self._span,
            exact=exact,
            sampled=algorithm.sampled,
            deferred=algorithm.deferred,
            numbers=numbers,
            extras=algorithm.extras(self._dim, self._span, numbers["ridge"]),
        )

    # ---- decisions ----

    def decide(self, actions: npt.ArrayLike, *, at: Moment | None = None) -> Decision:
        """Choose one of the actions, and record the choice.

        Parameters
        ----------
        actions
            A (K, d) array-like, finite, of norms at most 1.
        at
            The time, where the window is a time: a `datetime` (UTC where it has no zone), an ISO 8601 text, a
            numpy.datetime64, or seconds since 1970. Without it, or with None, the policy's clock is asked. A
            time before the latest decision's counts as that one's; a time more than a window before it raises
            `ClockError`.
        """
        memory = self._memory
        if type(actions) is not ndarray or actions.dtype is not DOUBLE or actions.ndim != 2:
            actions = check_actions(actions, self._dim)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._decision_stamp(at)
        draws = self._no_draws
        if draws is not None:  # none is spent on a mistake
            if not memory.admits(actions):
                actions = self._admitted(actions)
            memory.ready(actions, draws)
            draws = self._randomness.draws_of_one(self._dim)
        index, round_, score = memory.step(memory.state, memory.ring, actions, stamp, draws)
        if index < 0:
            actions = self._admitted(actions)
            index, round_, score = memory.play(actions, stamp, draws)
        return Decision(round_, index, memory.played.copy(), score)

    def decide_many(
        self,
        action_sets: npt.ArrayLike | Sequence[npt.ArrayLike],
        *,
        at: Moment | Collection[Moment] | None = None,
    ) -> list[Decision]:
        """Decide for one action set after the other: the answers of as many calls of `decide`, in one go.

        `at` is one time for all, or one for each. Where any set is refused, none has been decided.
        """
        sets = check_action_sets(action_sets, self._dim)
        for position, actions in enumerate(sets):
            if not self._memory.admits(actions):
                raise InputError(f"in set {position} of the batch: {explain_inadmissible(actions)}")
        stamps = self._decision_stamps(at, len(sets))
        first = self.rounds + 1
        draws = self._randomness.draws(len(sets), self._dim)
        if isinstance(sets, list):
            each = [None] * len(sets) if self._no_draws is None else draws  # as `decide` gives them: one code for both
            played = [self._memory.play(*event) for event in zip(sets, stamps.tolist(), each, strict=True)]
            indices, scores = [index for index, _, _ in played], [score for _, _, score in played]
        else:
            indices, scores = self._memory.play_many(sets, stamps, draws)
        return [
            Decision(first + i, index, sets[i][index].copy(), score)
            for i, (index, score) in enumerate(zip(indices, scores, strict=True))
        ]

    def _admitted(self, actions: npt.ArrayLike) -> Array:
        """A set that the kernels take, or an error that says why not."""
        array = check_actions(actions, self._dim)
        if not self._memory.admits(array):
            raise explain_inadmissible(array)
        return array

    def _decision_stamp(self, at: Moment | None) -> int:
        if self._in_rounds:
            self._refuse_time(at)
        stamp, now = self._clock_stamp() if at is None else parse_timestamp(at), self._now
        return stamp if stamp >= now else not_before(stamp, now, span=self._span, latest=self.rounds)

    def _decision_stamps(self, at: Any, count: int) -> npt.NDArray[np.int64]:
        if self._in_rounds:
            return np.full(count, UNSTAMPED if at is None else self._refuse_time(at))
        if isinstance(at, str) or not hasattr(at, "__len__"):
            return np.full(count, self._decision_stamp(at))
        if np.shape(at)[:1] != (count,):
            raise InputError(f"at must be one time, or one per action set, {count}; got {at!r}", field="at")
        stamps, now, rounds = np.empty(count, np.int64), self._now, self.rounds
        for i, moment in enumerate(at):
            try:
                stamps[i] = now = not_before(parse_timestamp(moment), now, span=self._span, latest=rounds + i)
            except InputError as error:
                raise type(error)(f"for set {i} of the batch: {error}") from None
        return stamps

    def _clock_stamp(self) -> int:
        return parse_timestamp(self._clock(), name="what clock tells")

    # ---- conversions ----

    def convert(self, decision: Decision | float, value: float = 1.0, *, at: Moment | None = None) -> Verdict:
        """Credit a conversion to its decision, while its window is open.

        Anything but `Verdict.ACCEPTED` has changed nothing. Once its window has closed a decision is forgotten, and all
        that comes for it is late, its duplicates included.

        Parameters
        ----------
        decision
            The decision, or its round: a whole number, which may be a float, as in a column with missing values.
        value
            What the conversion is worth, in [0, 1].
        at
            The time of arrival, where the window is a time, as in `decide`; NaT and NaN are refused. A time before the
            latest decision's counts as that one's. Of a time before the conversion's own decision the delay is
            unknown, and the delay curve leaves it out.
        """
        if type(value) is not float or not 0.0 <= value <= 1.0:
            value = check_conversion_value("value", value)
        round_ = decision if type(decision) is int and 0 < decision < NO_ROUND else round_of(decision)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)
        memory = self._memory
        credit = memory.credit or memory.ready_credit()
        return VERDICTS[credit(memory.state, memory.ring, round_, value, stamp)]

    def revoke(self, decision: Decision | float, *, at: Moment | None = None) -> Verdict:
        """Take a credited conversion back, for good, while its window is open: a purchase that was returned.

        `ACCEPTED`: it no longer counts. `DUPLICATE`: it was revoked before. `LATE`: its window has closed. `UNKNOWN`:
        no such decision, or it has not converted.
        """
        round_ = round_of(decision)
        stamp = UNSTAMPED if at is None and self._in_rounds else self._arrival_stamp(round_, at)
        return VERDICTS[self._memory.revoke(round_, stamp)]

    def _arrival_stamp(self, round_: int, at: Moment | None) -> int:
        if self._in_rounds:
            self._refuse_time(at)
        stamp, now = self._clock_stamp() if at is None else parse_timestamp(at), self._now
        if now - stamp <= self._span:
            return stamp  # as it is: the kernel tells a time before its own decision from one before the latest
        if self._memory.verdict(round_, now) != ACCEPTED:
            return now  # an old message for a decision that is closed or converted: the verdict says so
        return not_before(stamp, now, span=self._span, latest=self.rounds)  # raises

    def _refuse_time(self, at: object) -> NoReturn:
        raise InputError(f"at is for windows in time, and this window is {self._span} rounds; got {at!r}: leave it out")

    # ---- files and copies ----

    def fresh(self, seed: Seed = None) -> Self:
        """A policy of the same parameters that has seen nothing, with a generator of its own."""
        twin = copy(self)
        twin._memory = self._memory.emptied()
        twin._randomness = PolicyRng(self._randomness.draw, 0 if self._no_draws is None else seed)
        return twin

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, atomically; `latecomer.load` continues from it bit for bit."""
        write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        if type(self).__name__ not in POLICIES:
            raise InputError(
                f"save is for the policies that load knows, {', '.join(POLICIES)}; got {type(self).__name__}"
            )
        return pack(
            policy=type(self).__name__,
            parameters={"dim": self._dim, "window": self._window, **self._parameters},
            generator=self._randomness.state(),
            arrays=self._memory.arrays(),
        )

    def _restore(self, generator: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the policy that was saved; for `latecomer.load`."""
        self._randomness.restore(generator)
        self._memory.restore(arrays)
