"""A history of what clients saw, and a check of it against the log.

Each client records every request that it sends, with its answer or its error. `find_violations` compares all of them
with the log that the store has at the end, and names the rule that each contradiction breaks.
"""

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any

import polars as pl
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.service.messages import DecisionAnswer

CONVERSION, REVOCATION = "conversion", "revocation"
ACCEPTED, UNKNOWN = "accepted", "unknown"
SHOWN = 20
"""Violations in the message of a failed check."""


class Rule(Enum):
    """What must hold between the histories and the log."""

    ACKNOWLEDGED_IS_KEPT = "an acknowledged decision is in the log"
    ONCE = "a decision is in the log once"
    SAME_DECISION = "the log has the round, the index, the score and the action id of the answer"
    GAPLESS = "rounds are 1, 2, … without a gap, in the order of the log"
    REAL_TIME = "a decision that was answered before another was requested has the lower round"
    SAME_ANSWER = "the same request id has the same answer, whichever replica is asked"
    OWN_DECISION = "two requests have two decisions"
    EXPLAINED_DECISION = "a decision that nobody was told of belongs to a request that failed, at most one for each"
    ACCEPTED_ONCE = "a decision has at most one accepted conversion, and after it at most one accepted revocation"
    VERDICT_IS_KEPT = "an acknowledged verdict is in the log"
    EXPLAINED_REPORT = "a decision has no more reports in the log than were sent"
    KNOWN = "a conversion of an acknowledged decision is not unknown"


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken, and where."""

    rule: Rule
    text: str

    def __str__(self) -> str:
        return f"{self.rule.value}: {self.text}"


# ---- what a client saw ----


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """A request for a decision. `answer` is None where it failed; `error` says how."""

    replica: str
    request_id: str | None
    sent_at: float
    ended_at: float
    answer: DecisionAnswer | None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRecord:
    """A report of a conversion or revocation. `sends`: how often it was sent at most, by a client with retries."""

    replica: str
    kind: str
    decision_id: str
    sent_at: float
    ended_at: float
    verdict: str | None
    error: str | None = None
    sends: int = 1


@dataclass(slots=True)
class ClientHistory:
    """The records of one client, in the order of their ends. One thread writes it."""

    decisions: list[DecisionRecord] = field(default_factory=list)
    reports: list[ReportRecord] = field(default_factory=list)
    acknowledged: int = 0

    def decided(
        self,
        replica: str,
        request_id: str | None,
        sent_at: float,
        *,
        answer: DecisionAnswer | None = None,
        error: str | None = None,
    ) -> None:
        """Record a request for a decision that has ended now."""
        self.acknowledged += answer is not None
        self.decisions.append(
            DecisionRecord(
                replica=replica,
                request_id=request_id,
                sent_at=sent_at,
                ended_at=time.monotonic(),
                answer=answer,
                error=error,
            )
        )

    def reported(
        self,
        replica: str,
        kind: str,
        decision_ids: Sequence[str],
        sent_at: float,
        *,
        verdicts: Sequence[str] | None = None,
        error: str | None = None,
        sends: int = 1,
    ) -> None:
        """Record the reports of one request that has ended now."""
        ended_at = time.monotonic()
        self.acknowledged += 0 if verdicts is None else len(verdicts)
        given: Sequence[str | None] = [None] * len(decision_ids) if verdicts is None else verdicts
        self.reports += [
            ReportRecord(
                replica=replica,
                kind=kind,
                decision_id=decision_id,
                sent_at=sent_at,
                ended_at=ended_at,
                verdict=verdict,
                error=error,
                sends=sends,
            )
            for decision_id, verdict in zip(decision_ids, given, strict=True)
        ]


class History:
    """The histories of all clients of one bandit."""

    def __init__(self) -> None:
        self._clients: list[ClientHistory] = []

    def add_client(self) -> ClientHistory:
        """Return an empty history for one more client."""
        self._clients.append(ClientHistory())
        return self._clients[-1]

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Every request for a decision."""
        return [record for client in self._clients for record in list(client.decisions)]

    @property
    def reports(self) -> list[ReportRecord]:
        """Every report."""
        return [record for client in self._clients for record in list(client.reports)]

    @property
    def errors(self) -> list[str]:
        """The errors that clients saw."""
        records: list[DecisionRecord | ReportRecord] = [*self.decisions, *self.reports]
        return [record.error for record in records if record.error is not None]

    @property
    def acknowledged(self) -> int:
        """How many decisions and reports were acknowledged so far."""
        return sum(client.acknowledged for client in self._clients)


# ---- what the log has ----


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDecision:
    """A decision of the log."""

    decision_id: str
    round: int
    index: int
    score: float
    action_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedReport:
    """A report of the log."""

    decision_id: str
    kind: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Log:
    """The decisions and the reports of a bandit, each in the order of the log."""

    decisions: list[LoggedDecision]
    reports: list[LoggedReport]


def read_log(store: str | Path, bandit: str) -> Log:
    """Read a bandit's log by `latecomer log export`."""
    with tempfile.TemporaryDirectory(prefix="latecomer-export-") as folder:
        result = CliRunner().invoke(app, ["log", "export", str(store), "--bandit", bandit, "--out", folder])
        assert result.exit_code == 0, f"log export: {result.output} {result.exception!r}"
        tables = {table: _read_table(Path(folder), table) for table in ("decisions", "reports")}
    return Log(
        [LoggedDecision(**row) for row in _rows(tables["decisions"], LoggedDecision)],
        [LoggedReport(**row) for row in _rows(tables["reports"], LoggedReport)],
    )


def _read_table(folder: Path, table: str) -> pl.DataFrame | None:
    parts = sorted(folder.glob(f"{table}-*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts]) if parts else None


def _rows(frame: pl.DataFrame | None, record: Any) -> Iterable[dict[str, Any]]:
    return [] if frame is None else frame.select([column.name for column in fields(record)]).iter_rows(named=True)


# ---- the check ----


def check_history(history: History, log: Log) -> None:
    """Raise `AssertionError` with what is broken, where anything is."""
    found = find_violations(history, log)
    if found:
        counts = Counter(violation.rule.name for violation in found)
        lines = [f"{len(found)} violations: {dict(counts)}", *map(str, found[:SHOWN])]
        raise AssertionError("\n".join(lines))


def find_violations(history: History, log: Log) -> list[Violation]:
    """Compare the histories with the log; return every contradiction."""
    requests = _collect_requests(history)
    logged = {decision.decision_id: decision for decision in log.decisions}
    return [
        *_check_rounds(log),
        *_check_answers(requests, logged),
        *_check_order(requests),
        *_check_unexplained(requests, logged),
        *_check_accepted(log),
        *_check_reports(history, log),
        *_check_known(history, requests),
    ]


@dataclass(slots=True)
class _Request:
    """The tries of one request for a decision, which have one request id; without an id, a try is a request."""

    name: str
    sent_at: float
    ended_at: float | None = None
    """When the first answer came."""
    answers: list[DecisionAnswer] = field(default_factory=list)
    """The different answers that it got: one, where all is well."""


def _collect_requests(history: History) -> list[_Request]:
    found: dict[object, _Request] = {}
    for number, record in enumerate(history.decisions):
        key: object = number if record.request_id is None else record.request_id
        name = f"request {number} without an id" if record.request_id is None else f"request {record.request_id}"
        request = found.setdefault(key, _Request(name, record.sent_at))
        request.sent_at = min(request.sent_at, record.sent_at)
        if record.answer is not None:
            request.ended_at = min(request.ended_at or record.ended_at, record.ended_at)
            if record.answer not in request.answers:
                request.answers.append(record.answer)
    return list(found.values())


def _check_rounds(log: Log) -> Iterator[Violation]:
    for position, decision in enumerate(log.decisions, start=1):
        if decision.round != position:
            yield Violation(Rule.GAPLESS, f"decision {position} of the log has the round {decision.round}")
            break  # all that come after it are displaced too
    for what, counts in (
        ("id", Counter(decision.decision_id for decision in log.decisions)),
        ("round", Counter(decision.round for decision in log.decisions)),
    ):
        for value, count in counts.items():
            if count > 1:
                yield Violation(Rule.ONCE, f"the {what} {value} is there {count} times")


def _check_answers(requests: list[_Request], logged: dict[str, LoggedDecision]) -> Iterator[Violation]:
    owners: dict[str, str] = {}
    for request in requests:
        if len(request.answers) > 1:
            yield Violation(Rule.SAME_ANSWER, f"{request.name} got {request.answers}")
        for answer in request.answers:
            if owners.setdefault(answer.decision_id, request.name) != request.name:
                owner = owners[answer.decision_id]
                yield Violation(Rule.OWN_DECISION, f"{owner} and {request.name} both got {answer.decision_id}")
            kept = logged.get(answer.decision_id)
            if kept is None:
                yield Violation(Rule.ACKNOWLEDGED_IS_KEPT, f"{request.name} got {answer}, which is not there")
            elif not _is_same(answer, kept):
                yield Violation(Rule.SAME_DECISION, f"{request.name} got {answer}, the log has {kept}")


def _is_same(answer: DecisionAnswer, kept: LoggedDecision) -> bool:
    given = (answer.round, answer.index, answer.score, answer.action_id)
    return given == (kept.round, kept.index, kept.score, kept.action_id)


def _check_order(requests: list[_Request]) -> Iterator[Violation]:
    answered = [
        (request.answers[0].round, request.sent_at, request.ended_at, request.name)
        for request in requests
        if request.answers and request.ended_at is not None
    ]
    earliest: tuple[float, str] | None = None  # of the higher rounds, the one that was answered first
    for _, sent_at, ended_at, name in sorted(answered, reverse=True):
        if earliest is not None and earliest[0] < sent_at:
            yield Violation(Rule.REAL_TIME, f"{earliest[1]} was answered before {name} was sent, and has a later round")
        if earliest is None or ended_at < earliest[0]:
            earliest = (ended_at, name)


def _check_unexplained(requests: list[_Request], logged: dict[str, LoggedDecision]) -> Iterator[Violation]:
    """The log's tables have no request ids: count the decisions that no answer has, and the requests without answer."""
    answered = {answer.decision_id for request in requests for answer in request.answers}
    untold = [decision_id for decision_id in logged if decision_id not in answered]
    failed = sum(not request.answers for request in requests)
    if len(untold) > failed:
        yield Violation(
            Rule.EXPLAINED_DECISION,
            f"{len(untold)} decisions have no answer, and {failed} requests have none: {untold[:5]}",
        )


def _check_accepted(log: Log) -> Iterator[Violation]:
    orders: dict[str, list[str]] = defaultdict(list)
    for report in log.reports:
        if report.verdict == ACCEPTED:
            orders[report.decision_id].append(report.kind)
    for decision_id, order in orders.items():
        if order not in ([CONVERSION], [CONVERSION, REVOCATION]):
            yield Violation(Rule.ACCEPTED_ONCE, f"{decision_id} has the accepted reports {order}")


def _check_reports(history: History, log: Log) -> Iterator[Violation]:
    kept = Counter((report.decision_id, report.kind, report.verdict) for report in log.reports)
    told: Counter[tuple[str, str, str]] = Counter()
    sent: Counter[tuple[str, str]] = Counter()
    for record in history.reports:
        sent[record.decision_id, record.kind] += record.sends
        if record.verdict is not None:
            told[record.decision_id, record.kind, record.verdict] += 1
    for key, count in told.items():
        if key[2] != UNKNOWN and kept[key] < count:  # the log only counts the reports of unknown decisions
            yield Violation(Rule.VERDICT_IS_KEPT, f"{key} was told {count} times and is in the log {kept[key]} times")
    rows = Counter((report.decision_id, report.kind) for report in log.reports)
    for pair, count in rows.items():
        if count > sent[pair]:
            yield Violation(Rule.EXPLAINED_REPORT, f"{pair} was sent {sent[pair]} times and is there {count} times")


def _check_known(history: History, requests: list[_Request]) -> Iterator[Violation]:
    ended = {answer.decision_id: request.ended_at for request in requests for answer in request.answers}
    for record in history.reports:
        if record.kind != CONVERSION or record.verdict != UNKNOWN:
            continue
        told_at = ended.get(record.decision_id)
        if told_at is not None and told_at <= record.sent_at:
            yield Violation(Rule.KNOWN, f"{record.replica} does not know {record.decision_id}")
