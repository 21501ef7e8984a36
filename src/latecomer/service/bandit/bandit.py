"""One bandit: a policy with a name, decision ids and counters. Events in, bytes for the log out; no I/O.

`decide`, `convert` and `revoke` change the policy and return the bytes that describe the change. `bandit.apply` makes
the same changes from those bytes, to the same bits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from latecomer.core.action_summary import Shorts
from latecomer.core.conversions import ACCEPTED, DUPLICATE
from latecomer.core.state import Array, Integers
from latecomer.policies.base import bulk
from latecomer.policies.base.decision import VERDICTS, Decision
from latecomer.policies.base.policy import LinearPolicy
from latecomer.service.bandit import events
from latecomer.service.bandit.attribution import attribute_conversions
from latecomer.service.bandit.bandit_stats import count_events, make_bandit_stats
from latecomer.service.bandit.catalogue import Catalogue
from latecomer.service.bandit.contest import Contest
from latecomer.service.bandit.counters import Counters
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.bandit.decision_ids import DecisionIds
from latecomer.service.bandit.decision_log import log_decision, repeat_answer
from latecomer.service.bandit.decision_run import decide_calls
from latecomer.service.bandit.deferrals import PREFIX, Deferrals
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.bandit.monitor.grid import Grid
from latecomer.service.bandit.monitor.monitor import Monitor
from latecomer.service.bandit.offers import OfferWriter
from latecomer.service.bandit.purchases import Purchases
from latecomer.service.bandit.ranked_decisions import decide_ranking
from latecomer.service.bandit.reports import (
    check_target,
    check_value,
    compute_arrivals,
    pack_reports,
    parse_occurrences,
)
from latecomer.service.bandit.stages import Stages
from latecomer.service.bandit.tally.credited_rounds import CreditedRounds
from latecomer.service.bandit.tally.tally import Tally
from latecomer.service.bandit.verdict_list import VerdictList, make_early_warnings
from latecomer.service.messages import (
    Activation,
    Alarm,
    BanditCounts,
    BanditStats,
    Conversion,
    DecisionAnswer,
    Revocation,
    StageReport,
    decision_id_of,
)

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Bandit:
    """A policy with an identity.

    Parameters
    ----------
    descriptor
        Its name, number and specification.
    policy
        Its policy: a fresh one, or a saved one.
    challenger
        Its challenger where the specification has one: a saved one, or None for a fresh one.
    """

    def __init__(
        self, descriptor: BanditDescriptor, policy: LinearPolicy, challenger: LinearPolicy | None = None
    ) -> None:
        self.descriptor = descriptor
        self.info = descriptor.describe()
        self.number = descriptor.number
        self.policy = policy
        challenger = challenger or descriptor.make_challenger()
        self.contest = None if challenger is None else Contest(descriptor, policy, challenger)
        self.policies: tuple[LinearPolicy, ...] = (policy,) if challenger is None else (policy, challenger)
        """The policies that learn: the first has the verdicts."""
        self.dim = policy.dim
        self.in_rounds = isinstance(policy.window, int)
        self.window_span = policy.span
        """The window in rounds, or in microseconds."""
        self.rounds = policy.rounds
        self.stamp = descriptor.stamp
        """The stamp of its latest event."""
        self.counters = Counters(self.in_rounds)
        self.tally = Tally(policy.rounds + 1)
        self.monitor = Monitor(Grid(policy.span, in_rounds=self.in_rounds), policy.dim, policy.rounds)
        self.ids = DecisionIds(descriptor.skipped)
        self.offers = OfferWriter() if descriptor.spec.log_offers else None
        self._control_id = descriptor.control_id
        if policy.keeps_baskets:
            self.tally.credited = CreditedRounds()
        self.deferrals, self.purchases, self.stages = Deferrals(self), Purchases(self), Stages(self)
        self.catalogue = Catalogue(policy.dim)
        self.has_unlogged_change = False
        """True once the policy may have changed; the caller clears it when the bytes are on their way to the log."""

    def rename(self, name: str) -> bytes:
        """Change the name; return the event for the log."""
        self.descriptor = msgspec.structs.replace(self.descriptor, name=name)
        self.info = self.descriptor.describe()
        return self.descriptor.pack_created()

    # ---- live events; `now` is the store's time, `shift` its microseconds ahead of the calendar ----

    def decide(self, call: DecisionCall, *, now: int, shift: int = 0) -> tuple[DecisionAnswer, bytes]:
        """Choose an action and record the round; return the answer and the events for the log."""
        call = call.pick_actions(self)
        control = call.find_control(self._control_id)
        if call.examination is not None:
            return decide_ranking(self, call, control, now=now, shift=shift)
        if call.deferred:
            return self.deferrals.decide(call, control, now=now, shift=shift)
        self.has_unlogged_change = True
        at = None if self.in_rounds else now / 1e6
        probabilities = self.find_probabilities(call, control, at)
        decision, summary = self.choose(call, at=at, control=control)
        made = log_decision(
            self, call, decision, summary, now=now, expires_at=self.find_expiry(now, shift), probabilities=probabilities
        )
        if self.tally.is_full:
            self.count_notes()
        return made

    def decide_run(
        self, calls: Sequence[DecisionCall], rows: Array, *, now: int, shift: int = 0
    ) -> list[tuple[DecisionAnswer, bytes]]:
        """Decide as calls of `decide` would, one after the other, at one time; none is deferred, all are admissible.

        `rows` are the actions of all of them.
        """
        if self.contest is not None or self.policy.limited_ids:
            return [self.decide(call, now=now, shift=shift) for call in calls]
        self.has_unlogged_change = True
        made = decide_calls(
            self,
            calls,
            rows,
            [call.find_control(self._control_id) for call in calls],
            now=now,
            expires_at=self.find_expiry(now, shift),
        )
        if self.tally.is_full:  # not before: the policy may have closed rounds of the same run
            self.count_notes()
        return made

    def find_probabilities(self, call: DecisionCall, control: int | None, at: float | None) -> list[float] | None:
        """Return the probabilities of the next decision, where the call asks for them."""
        if not call.probabilities:
            return None
        if self.contest is not None:
            return call.place_probabilities(self.contest.find_probabilities(call, at=at))
        places = call.find_places(self.policy.limited_ids)
        return call.place_probabilities(self.policy.probabilities(call.rows, at=at, control=control, places=places))

    def choose(self, call: DecisionCall, *, at: float | None, control: int | None) -> tuple[Decision, Shorts]:
        """Have the policy decide, or the challenger; return the decision, and the summary of the actions."""
        return (
            call.choose(self.policy, at=at, control=control)
            if self.contest is None
            else self.contest.choose(call, at=at)
        )

    def find_expiry(self, stamp: int, shift: int) -> datetime | None:
        """Return when the window of a decision closes, by the calendar; None where it is in rounds."""
        if self.in_rounds:
            return None
        return _UNIX_EPOCH + timedelta(microseconds=stamp + self.window_span - shift)

    def repeat_answer(self, known: LoggedDecision, *, shift: int) -> DecisionAnswer:
        """Return the answer that a logged decision got."""
        return repeat_answer(self, known, shift=shift)

    def convert(self, conversions: Sequence[Conversion], *, now: int, shift: int = 0) -> tuple[VerdictList, bytes]:
        """Apply conversions in their order; return the verdicts and the events for the log."""
        if self.purchases.takes(conversions):
            return self.purchases.convert(conversions, now=now, shift=shift)
        values = np.array([check_value(conversion.value, i) for i, conversion in enumerate(conversions)])
        occurred = parse_occurrences(conversions, now=now, shift=shift)
        attributed = attribute_conversions(self, conversions, compute_arrivals(occurred, now), now)
        if attributed is not None:
            values, occurred = values[attributed.places], occurred[attributed.places]
        rounds = self._find_rounds(conversions) if attributed is None else attributed.rounds
        self.has_unlogged_change = True
        verdicts, delays = self.apply_conversions(
            rounds, values, compute_arrivals(occurred, now), np.full(len(rounds), now)
        )
        early = self.counters.add_conversions(verdicts, delays)
        self.monitor.note_reports(rounds, self.leave_out_stragglers(rounds, verdicts), now, self.rounds)
        if self.tally.note_conversions(rounds, values, verdicts, now):
            self.count_notes()
        reports = pack_reports(events.CONVERSIONS, events.CONVERSION, verdicts, rounds, occurred, now)
        reports["value"] = values
        answers, data = self.finish_reports(reports, verdicts, now, unknown=(1, 0))
        answers.warnings = make_early_warnings(early.tolist())
        return answers if attributed is None else attributed.join(answers, self.deferrals.id_of), data

    def revoke(self, revocations: Sequence[Revocation], *, now: int, shift: int = 0) -> tuple[VerdictList, bytes]:
        """Take conversions back in their order; return the verdicts and the events for the log."""
        if self.purchases.takes(revocations):
            return self.purchases.revoke(revocations, now=now, shift=shift)
        for place, revocation in enumerate(revocations):
            check_target(revocation, place)
        rounds, occurred = self._find_rounds(revocations), parse_occurrences(revocations, now=now, shift=shift)
        arrivals = compute_arrivals(occurred, now)
        self.has_unlogged_change = True
        verdicts = self.apply_revocations(rounds, arrivals, np.full(len(rounds), now))
        self.counters.add_revocations(verdicts)
        if self.tally.note_revocations(rounds, verdicts, now):
            self.count_notes()
        reports = pack_reports(events.REVOCATIONS, events.REVOCATION, verdicts, rounds, occurred, now)
        return self.finish_reports(reports, verdicts, now, unknown=(0, 1))

    def activate(self, activations: Sequence[Activation], *, now: int, shift: int = 0) -> tuple[VerdictList, bytes]:  # noqa: ARG002
        """Record deferred decisions that were shown; return the verdicts and the events for the log."""
        return self.deferrals.activate(activations, now=now)

    def report_stages(self, reports: Sequence[StageReport], *, now: int, shift: int = 0) -> tuple[VerdictList, bytes]:
        """Take reports of stages in their order; return the verdicts and the events for the log."""
        return self.stages.report(reports, now=now, shift=shift)

    def finish_reports(
        self, reports: events.Records, verdicts: Integers, now: int, unknown: tuple[int, int]
    ) -> tuple[VerdictList, bytes]:
        """Pack the reports of known rounds; those of unknown rounds are only counted, since a replay has no use."""
        is_known = (reports["round"] > 0) & (reports["round"] <= self.rounds)
        data, unknown_count = reports[is_known].tobytes(), len(reports) - int(is_known.sum())
        if unknown_count:
            conversions, revocations = unknown
            data += events.pack_unknown(events.UNKNOWN, conversions * unknown_count, revocations * unknown_count)
        self.stamp = now
        return VerdictList(VERDICTS[verdict] for verdict in verdicts.tolist()), data

    def _find_rounds(self, reports: Sequence[Conversion | Revocation]) -> Integers:
        return np.array([self.find_round(report.decision_id or "") for report in reports], np.int64)

    def find_round(self, decision_id: str) -> int:
        """Return the round of a decision id; 0 where this bandit did not give it, or it is deferred and not active."""
        found = decision_id if isinstance(decision_id, str) else decision_id_of(decision_id)
        return self.deferrals.find_round(found) if found.startswith(PREFIX) else self.ids.find_round(found)

    # ---- changes to the policy, live and replayed ----

    def apply_decisions(self, actions: Array, summaries: Shorts, stamps: Integers) -> None:
        """Record decisions that were made before; the policy uses up the random numbers that each took."""
        for policy in self.policies:
            bulk.record(policy, actions, summaries, stamps)

    def apply_conversions(
        self, rounds: Integers, values: Array, arrivals: Integers, reported: Integers
    ) -> tuple[Integers, Integers]:
        """Apply conversions in their order; return verdicts by number, and delays (negative: before the decision)."""
        for other in self.policies[1:]:
            bulk.convert(other, rounds, values, arrivals, reported)
        return bulk.convert(self.policy, rounds, values, arrivals, reported)

    def leave_out_stragglers(self, rounds: Integers, verdicts: Integers) -> Integers:
        """Return verdicts for the monitor, which counts no conversion after its window: those are as duplicates."""
        is_closed = rounds < self.policy.state.number("oldest")
        return np.where(is_closed & (verdicts == ACCEPTED), DUPLICATE, verdicts) if is_closed.any() else verdicts

    def apply_revocations(self, rounds: Integers, arrivals: Integers, reported: Integers) -> Integers:
        """Take conversions back in their order; return verdicts by number."""
        reports = zip(rounds.tolist(), arrivals.tolist(), reported.tolist(), strict=True)
        return np.array([self.revoke_one(*report) for report in reports], np.int64)

    def revoke_one(self, round: int, arrival: int, reported: int, digest: bytes | None = None) -> int:
        """Revoke one conversion of a round, or all of them; return the verdict by its number."""
        for other in self.policies[1:]:
            bulk.revoke(other, round, arrival, reported, digest)
        return bulk.revoke(self.policy, round, arrival, reported, digest)

    # ---- statistics ----

    def count_notes(self) -> None:
        """Count what the tally and the monitor have noted, and close the rounds that the policy has closed."""
        self.tally.count_events()
        self.monitor.count_notes(self.tally.find_slots, self.tally.names)
        state = self.policy.state
        kept = int(state.number("kept"))
        self.stages.forget(kept, self.tally.close_rounds(int(state.number("oldest")), kept=kept))
        self.purchases.forget_counted()

    def count(self) -> BanditCounts:
        """Return what has happened, without computing anything of the policy."""
        return count_events(self)

    def stats(self, alarms: Sequence[Alarm] = (), now: int | None = None) -> BanditStats:
        """Return counts, what was learned by `now` or the latest event, and the alarms that the caller has found."""
        return make_bandit_stats(self, alarms, now=self.stamp if now is None else now)
