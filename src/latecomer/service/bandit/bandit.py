"""One bandit: a policy, what has been asked of it, and what has happened to it. Events in, bytes out; no files.

`decide`, `convert` and `revoke` move the policy and give the bytes for the log; `service.bandit.apply` moves it by
those bytes, to the same bits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.policies.base import bulk
from latecomer.policies.base.decision import VERDICTS
from latecomer.policies.base.policy import LinearPolicy
from latecomer.service.bandit import events
from latecomer.service.bandit.counters import Counters
from latecomer.service.bandit.decision_ids import DecisionIds
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.feedback import arrival, in_store_time, occurred_of, reports_of, value_of
from latecomer.service.bandit.request_index import RequestIndex
from latecomer.service.bandit.verdicts import Verdicts, warnings_of_early
from latecomer.service.messages import BanditCounts, BanditStats, Conversion, DecisionAnswer, Revocation, decision_id_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Bandit:
    """A policy with an identity.

    Parameters
    ----------
    descriptor
        Who it is.
    policy
        Its policy: a fresh one, or a saved one.
    """

    def __init__(self, descriptor: BanditDescriptor, policy: LinearPolicy) -> None:
        self.descriptor = descriptor
        self.info = descriptor.info()
        self.number = descriptor.number
        self.policy = policy
        self.dim = policy.dim
        self.in_rounds = isinstance(policy.window, int)
        self.span = policy.span
        self.rounds = policy.rounds
        self.stamp = descriptor.stamp
        """The stamp of its latest event."""
        self.requests = RequestIndex()
        self.recent: dict[bytes, Any] = {}
        """Answers whose row is not in the log yet."""
        self.counters = Counters(self.in_rounds)
        self.unsaved = 0
        """Events since the latest snapshot."""
        self.bound = 0
        """Up to which row of the log small ones have been bound."""
        self.loose = 0
        """Rows since then, at most."""
        self.binding = False
        self.damage = ""
        """What is wrong with rows that were to be bound."""
        self.is_moving = False
        """Whether its policy may have been moved by what is not on its way to the log: whoever sends it says so."""
        self.saved_at = descriptor.stamp
        """When that was begun."""
        self.saving = False
        self.shift = 0
        """Microseconds by which stamps are ahead of the calendar."""
        self.forgotten = 0
        """Up to which round the log has been pruned."""
        self.ids = DecisionIds(descriptor.skipped)

    def renamed(self, name: str) -> bytes:
        """Be called otherwise; what the log should say of it."""
        self.descriptor = msgspec.structs.replace(self.descriptor, name=name)
        self.info = self.descriptor.info()
        return self.descriptor.event()

    # ---- live ----

    def decide(
        self, actions: Array, ids: Sequence[str] | None, *, now: int, digests: bytes = b""
    ) -> tuple[DecisionAnswer, bytes]:
        """Decide, and what the log should say of it; `digests` are the request's and its body's, where it has an id."""
        self.is_moving = True
        decision = self.policy.decide(actions, at=None if self.in_rounds else now / 1e6)
        index, round_, score = decision.index, decision.round, decision.score
        kind = events.DECISION_WITH_REQUEST if digests else events.DECISION
        chosen = decision.action.tobytes() + bulk.latest_summary(self.policy, actions).tobytes()
        secret = b"" if self.ids.is_current else self.ids.renew(round_)
        data = secret + events.pack_decision(kind, index, round_, now, score) + chosen + digests
        label = None
        if ids is not None:
            label = ids[index]
            data += events.text_event(events.LABEL, label.encode())
        if digests:
            self.requests.add(digests[: events.DIGEST], round_)
        self.rounds, self.stamp = round_, now
        self.unsaved += 1
        return self.answer(round_, index=index, score=score, stamp=now, label=label), data

    def answer(self, round: int, *, index: int, score: float, stamp: int, label: str | None) -> DecisionAnswer:
        """An answer from what the log knows of it."""
        expires_at = None if self.in_rounds else _EPOCH + timedelta(microseconds=stamp + self.span - self.shift)
        return DecisionAnswer(self.ids.id_of(round), index, label, round, score, expires_at)

    def convert(self, conversions: Sequence[Conversion], now: int) -> tuple[Verdicts, bytes]:
        """Credit conversions in their order: the verdicts, and what the log should say."""
        values = np.array([value_of(conversion.value, i) for i, conversion in enumerate(conversions)])
        rounds, occurred = self._rounds(conversions), self._occurred(conversions, now)
        self.is_moving = True
        verdicts, delays = bulk.convert(self.policy, rounds, values, arrival(occurred, now))
        early = self.counters.add_conversions(verdicts, delays)
        told = reports_of(events.CONVERSIONS, events.CONVERSION, verdicts, rounds, occurred, now)
        told["value"] = values
        answers, data = self._reported(told, verdicts, now, unknown=(events.UNKNOWN, 1, 0))
        answers.warnings = warnings_of_early(early.tolist())
        return answers, data

    def revoke(self, revocations: Sequence[Revocation], now: int) -> tuple[Verdicts, bytes]:
        """Take conversions back in their order: the verdicts, and what the log should say."""
        rounds, occurred = self._rounds(revocations), self._occurred(revocations, now)
        stamps = arrival(occurred, now)
        self.is_moving = True
        verdicts = self.taken_back(rounds, stamps)
        self.counters.add_revocations(verdicts)
        told = reports_of(events.REVOCATIONS, events.REVOCATION, verdicts, rounds, occurred, now)
        return self._reported(told, verdicts, now, unknown=(events.UNKNOWN, 0, 1))

    def taken_back(self, rounds: Integers, stamps: Integers) -> Integers:
        """Take conversions back in their order: the verdicts by their numbers."""
        pairs = zip(rounds.tolist(), stamps.tolist(), strict=True)
        return np.array([bulk.revoke(self.policy, round_, stamp) for round_, stamp in pairs], np.int64)

    def _reported(
        self, told: events.Records, verdicts: Integers, now: int, unknown: tuple[int, int, int]
    ) -> tuple[Verdicts, bytes]:
        """Reports of rounds that were never played are but counted: a replay could not use them."""
        played = (told["round"] > 0) & (told["round"] <= self.rounds)
        data, strangers = told[played].tobytes(), len(told) - int(played.sum())
        if strangers:
            kind, conversions, revocations = unknown
            data += events.pack_unknown(kind, conversions * strangers, revocations * strangers)
        self.stamp = now
        self.unsaved += len(told)
        return Verdicts(VERDICTS[verdict] for verdict in verdicts.tolist()), data

    def _occurred(self, reports: Sequence[Conversion | Revocation], now: int) -> Integers:
        """When each happened, in the store's time."""
        return in_store_time(occurred_of(reports, now - self.shift), self.shift)

    def _rounds(self, reports: Sequence[Conversion | Revocation]) -> Integers:
        return np.array([self.round_of(report.decision_id) for report in reports], np.int64)

    def round_of(self, decision_id: str) -> int:
        """The round of a decision's id; 0 where it is no id of this history."""
        return self.ids.round_of(decision_id if isinstance(decision_id, str) else decision_id_of(decision_id))

    # ---- what it knows ----

    def counts(self) -> BanditCounts:
        """What has happened: numbers that are there."""
        policy, counters = self.policy, self.counters
        drift, refactorisations = bulk.drift(policy)
        return BanditCounts(
            name=self.info.name,
            rounds=policy.rounds,
            pending=policy.pending,
            conversions=counters.by_name(counters.conversions),
            revocations=counters.by_name(counters.revocations),
            before_decision=int(counters.before_decision[0]),
            delay_edges=counters.edges.tolist(),
            delay_counts=counters.delays.tolist(),
            delay_sum=counters.delay_sum,
            drift=drift,
            refactorisations=refactorisations,
        )

    def stats(self) -> BanditStats:
        """Everything at a glance; what the policy knows is computed."""
        policy, curve = self.policy, self.policy.delay_curve
        return BanditStats(
            **msgspec.structs.asdict(self.counts()),
            theta_hat=policy.theta_hat.tolist(),
            width=policy.width,
            pending_width=policy.pending_width,
            delay_curve=None if curve is None else np.column_stack(curve).tolist(),
        )
