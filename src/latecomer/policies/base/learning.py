"""Learning from the decisions of others: their events in the order of time, through the kernels of live ones."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from latecomer.core.action_summary import Shorts, summarise_actions
from latecomer.core.jit import kernel
from latecomer.core.state import Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base import bulk
from latecomer.policies.base.decision import VERDICTS
from latecomer.policies.base.policy import LinearPolicy
from latecomer.tiers.tiered_kernel import TieredKernel

NEVER = np.iinfo(np.int64).max
"""The arrival of a conversion that has not come."""


class LoggedDecisions(NamedTuple):
    """Decisions in the order of time: a row each, with the conversion that it got, if any."""

    actions: Array
    """The chosen actions, (N, d)."""
    summaries: Shorts
    """The summaries of the action sets, (N, d + 2); see `summarise_sets`."""
    stamps: Integers
    """Times of the decisions, in microseconds since 1970."""
    arrivals: Integers
    """Times of the conversions; `NEVER` where there is none."""
    values: Array
    """Values of the conversions, in [0, 1]."""


class LearnableLog(Protocol):
    """A log of decisions that can be learnt from, such as that of `latecomer.read_log`."""

    @property
    def decisions(self) -> int:
        """The number of decisions, about."""

    def logged_decisions(self, dim: int, *, encoder: Any = None, scale: float = 1.0) -> Iterator[LoggedDecisions]:
        """Yield the decisions in the order of time, some at once; values are divided by `scale`."""


class Conversions(NamedTuple):
    """Conversions in the order of their arrivals."""

    rounds: Integers
    values: Array
    stamps: Integers


class LearningReport(Struct, frozen=True, kw_only=True):
    """The events that a policy has learnt from: decisions, and conversions by their verdicts."""

    decisions: int
    conversions: dict[str, int]


def learn(policy: LinearPolicy, batches: Iterable[LoggedDecisions], *, decisions: int) -> LearningReport:
    """Feed decisions and conversions to a policy in the order of time; see `LinearPolicy.learn`."""
    policy.state.prepare(decisions)
    before, counts = policy.rounds, np.zeros(len(VERDICTS), np.int64)
    has_times = before > 0 and not isinstance(policy.window, int)
    for event in order_events(batches, rounds=before, latest=policy.latest_stamp if has_times else None):
        if isinstance(event, LoggedDecisions):
            bulk.record(policy, event.actions, event.summaries, event.stamps)
        else:
            verdicts, _ = bulk.convert(policy, *event)
            counts += np.bincount(verdicts, minlength=len(VERDICTS))
    named = {verdict.value: int(count) for verdict, count in zip(VERDICTS, counts, strict=True)}
    return LearningReport(decisions=policy.rounds - before, conversions=named)


def order_events(
    batches: Iterable[LoggedDecisions], *, rounds: int, latest: int | None
) -> Iterator[LoggedDecisions | Conversions]:
    """Yield decisions and conversions in the order of time, each as many at once as follow each other.

    `rounds` is the number of rounds before the first, and `latest` the stamp of the last of these, which no decision
    may precede.
    """
    for batch, conversions in pair_conversions(batches, rounds=rounds, latest=latest):
        yield from interleave(batch, conversions)


def pair_conversions(
    batches: Iterable[LoggedDecisions], *, rounds: int, latest: int | None
) -> Iterator[tuple[LoggedDecisions, Conversions]]:
    """Yield each batch with the conversions that arrive before its last decision, and at last those that are left.

    The latter come with a batch of no decisions.
    """
    waiting = Conversions(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
    batch = None
    for batch in batches:
        latest = _check_order(batch.stamps, latest)
        waiting = _add_waiting(waiting, batch, rounds)
        due = waiting.stamps < batch.stamps[-1] if len(batch.stamps) else np.zeros(len(waiting.stamps), np.bool_)
        yield batch, _select(waiting, due)
        waiting = _select(waiting, ~due)
        rounds += len(batch.stamps)
    if batch is not None and len(waiting.rounds):
        yield slice_decisions(batch, 0, 0), waiting


def interleave(batch: LoggedDecisions, conversions: Conversions) -> Iterator[LoggedDecisions | Conversions]:
    """Yield the events of a batch in the order of time; a conversion comes after the decisions of its own moment."""
    places = np.searchsorted(batch.stamps, conversions.stamps, side="right")
    begin = 0
    for place in np.unique(places).tolist():
        if place > begin:
            yield slice_decisions(batch, begin, place)
        yield _select(conversions, places == place)
        begin = place
    if begin < len(batch.stamps):
        yield slice_decisions(batch, begin, len(batch.stamps))


def _check_order(stamps: Integers, latest: int | None) -> int:
    if len(stamps) and latest is not None and stamps[0] < latest:
        raise InputError(
            "a log can be learnt from before the decisions that come after it: its next decision lies "
            f"{(latest - int(stamps[0])) / 1e6:,.0f} s before the latest one; learn first, and decide then"
        )
    return int(stamps[-1]) if len(stamps) else (latest or 0)


def _add_waiting(waiting: Conversions, batch: LoggedDecisions, rounds: int) -> Conversions:
    """Add the conversions of a batch, in the order of their arrivals."""
    converted = np.flatnonzero(batch.arrivals != NEVER)
    joined = Conversions(
        np.concatenate([waiting.rounds, rounds + 1 + converted]),
        np.concatenate([waiting.values, batch.values[converted]]),
        np.concatenate([waiting.stamps, batch.arrivals[converted]]),
    )
    return _select(joined, np.argsort(joined.stamps, kind="stable"))


def _select(conversions: Conversions, which: Any) -> Conversions:
    return Conversions(*(np.ascontiguousarray(column[which]) for column in conversions))


def slice_decisions(batch: LoggedDecisions, begin: int, end: int) -> LoggedDecisions:
    """Return some of the decisions of a batch."""
    return LoggedDecisions._make(column[begin:end] for column in batch)


@kernel
def _summarise_each(actions: Array, starts: Integers, summaries: Shorts) -> None:
    for i in range(summaries.shape[0]):
        summarise_actions(actions[starts[i] : starts[i + 1]], summaries[i])


_summarise_many = TieredKernel(
    _summarise_each,
    lambda: (np.empty((1, 1)), np.ones(2, np.int64), np.empty((1, 3), np.int16)),
    label="the summaries of action sets",
)


def summarise_sets(actions: Array, starts: Integers) -> Shorts:
    """Return the summary of each set; set i is rows starts[i] to starts[i + 1] of `actions`."""
    summaries = np.empty((len(starts) - 1, actions.shape[1] + 2), np.int16)
    _summarise_many.prepare(len(summaries))(np.ascontiguousarray(actions), starts, summaries)
    return summaries
