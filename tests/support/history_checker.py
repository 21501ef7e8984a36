"""The check of what clients saw against the log that the store has at the end: it names the rule that is broken."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from history import ACCEPTED, CONVERSION, REVOCATION, UNKNOWN, History, Log, LoggedDecision

from latecomer.service.messages import DecisionAnswer

SHOWN = 20
"""Violations in the message of a failed check."""


class Rule(Enum):
    """A rule that must hold between the histories and the log."""

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
    return given == (kept.round, kept.chosen, kept.score, kept.action_id)


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
