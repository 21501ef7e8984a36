"""The checker of histories finds nothing in a sound history, and in each corrupted one the rule that is broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from history import ACCEPTED, CONVERSION, REVOCATION, History, Log, LoggedDecision, LoggedReport, read_log
from history_checker import Rule, check_history, find_violations

import latecomer as lc
from latecomer.service.messages import DecisionAnswer


def answer_of(round: int) -> DecisionAnswer:
    return DecisionAnswer(f"{round:x}-tag", round % 3, f"arm {round % 3}", round, round / 7, None)


def logged(round: int) -> LoggedDecision:
    answer = answer_of(round)
    return LoggedDecision(
        decision_id=answer.decision_id, round=round, chosen=answer.index, score=answer.score, action_id=answer.action_id
    )


def report(round: int, kind: str, verdict: str) -> LoggedReport:
    return LoggedReport(decision_id=f"{round:x}-tag", kind=kind, verdict=verdict)


def sound() -> tuple[History, Log]:
    """Four decisions by two clients; the third was asked twice, the fourth failed but is in the log."""
    history = History()
    first, second = history.add_client(), history.add_client()
    for client, replica, round, request_id, times in (
        (first, "a", 1, "r1", (0.0, 1.0)),
        (second, "b", 2, "r2", (0.5, 1.5)),
        (first, "c", 3, "r3", (2.0, 3.0)),
        (second, "a", 3, "r3", (4.0, 5.0)),
    ):
        client.decided(replica, request_id, times[0], answer=answer_of(round))
        client.decisions[-1] = replace(client.decisions[-1], ended_at=times[1])
    first.decided("a", "r4", 6.0, error="no answer")
    first.decisions[-1] = replace(first.decisions[-1], ended_at=7.0)
    first.reported("a", CONVERSION, ["1-tag", "2-tag"], 6.0, verdicts=["accepted", "accepted"])
    second.reported("b", CONVERSION, ["1-tag", "9-none"], 6.0, verdicts=["duplicate", "unknown"])
    second.reported("b", CONVERSION, ["3-tag"], 6.0, error="no answer")
    first.reported("c", REVOCATION, ["2-tag"], 7.0, verdicts=["accepted"])
    log = Log(
        [logged(1), logged(2), logged(3), logged(4)],
        [
            report(1, CONVERSION, "accepted"),
            report(2, CONVERSION, "accepted"),
            report(1, CONVERSION, "duplicate"),
            report(3, CONVERSION, "accepted"),
            report(2, REVOCATION, "accepted"),
        ],
    )
    return history, log


def broken(history: History, log: Log) -> set[Rule]:
    return {violation.rule for violation in find_violations(history, log)}


def test_a_sound_history_has_no_violation() -> None:
    history, log = sound()
    check_history(history, log)
    assert history.acknowledged == 4 + 5


def test_a_failed_request_may_be_in_the_log_or_not() -> None:
    history, log = sound()
    log.decisions.pop()
    log.reports.remove(report(3, CONVERSION, "accepted"))
    assert broken(history, log) == set()


# ---- one corruption for each rule ----


def lose_an_acknowledged_decision(history: History, log: Log) -> None:
    log.decisions.pop()  # the failed one, which nobody misses
    log.decisions.pop()


def log_a_decision_twice(history: History, log: Log) -> None:
    log.decisions[3] = log.decisions[2]


def log_another_score(history: History, log: Log) -> None:
    log.decisions[1] = replace(log.decisions[1], score=log.decisions[1].score + 2**-50)


def log_another_index(history: History, log: Log) -> None:
    log.decisions[1] = replace(log.decisions[1], chosen=1)


def log_another_action(history: History, log: Log) -> None:
    log.decisions[0] = replace(log.decisions[0], action_id=None)


def leave_a_gap(history: History, log: Log) -> None:
    log.decisions[3] = replace(log.decisions[3], round=5)


def log_rounds_out_of_order(history: History, log: Log) -> None:
    log.decisions[0], log.decisions[1] = log.decisions[1], log.decisions[0]


def answer_before_an_earlier_round_was_requested(history: History, log: Log) -> None:
    (client, *_) = history._clients
    client.decisions[0] = replace(client.decisions[0], sent_at=1.7, ended_at=1.8)


def answer_a_repeated_request_with_another_score(history: History, log: Log) -> None:
    client = history._clients[1]
    other = msgspec.structs.replace(answer_of(3), score=0.25)
    client.decisions[1] = replace(client.decisions[1], answer=other)


def answer_a_repeated_request_with_another_decision(history: History, log: Log) -> None:
    client = history._clients[1]
    client.decisions[1] = replace(client.decisions[1], answer=answer_of(4))


def give_one_decision_to_two_requests(history: History, log: Log) -> None:
    client = history._clients[1]
    client.decisions[1] = replace(client.decisions[1], request_id="another", sent_at=2.0)


def log_a_failed_request_twice(history: History, log: Log) -> None:
    log.decisions.append(logged(5))


def accept_two_conversions(history: History, log: Log) -> None:
    log.reports[2] = report(1, CONVERSION, ACCEPTED)
    history._clients[1].reports[0] = replace(history._clients[1].reports[0], verdict=ACCEPTED)


def accept_a_conversion_after_its_revocation(history: History, log: Log) -> None:
    log.reports.append(report(2, CONVERSION, ACCEPTED))
    history._clients[0].reported("a", CONVERSION, ["2-tag"], 9.0, verdicts=[ACCEPTED])


def accept_a_revocation_before_the_conversion(history: History, log: Log) -> None:
    log.reports.insert(0, log.reports.pop())


def lose_an_acknowledged_verdict(history: History, log: Log) -> None:
    log.reports.remove(report(1, CONVERSION, "duplicate"))


def lose_an_acknowledged_revocation(history: History, log: Log) -> None:
    log.reports.pop()


def log_a_report_that_nobody_sent(history: History, log: Log) -> None:
    log.reports.append(report(3, CONVERSION, "duplicate"))


def forget_a_decision_on_one_replica(history: History, log: Log) -> None:
    history._clients[0].reported("c", CONVERSION, ["3-tag"], 8.0, verdicts=["unknown"])


CORRUPTIONS: list[tuple[Callable[[History, Log], None], Rule]] = [
    (lose_an_acknowledged_decision, Rule.ACKNOWLEDGED_IS_KEPT),
    (log_a_decision_twice, Rule.ONCE),
    (log_another_score, Rule.SAME_DECISION),
    (log_another_index, Rule.SAME_DECISION),
    (log_another_action, Rule.SAME_DECISION),
    (leave_a_gap, Rule.GAPLESS),
    (log_rounds_out_of_order, Rule.GAPLESS),
    (answer_before_an_earlier_round_was_requested, Rule.REAL_TIME),
    (answer_a_repeated_request_with_another_score, Rule.SAME_ANSWER),
    (answer_a_repeated_request_with_another_decision, Rule.SAME_ANSWER),
    (give_one_decision_to_two_requests, Rule.OWN_DECISION),
    (log_a_failed_request_twice, Rule.EXPLAINED_DECISION),
    (accept_two_conversions, Rule.ACCEPTED_ONCE),
    (accept_a_conversion_after_its_revocation, Rule.ACCEPTED_ONCE),
    (accept_a_revocation_before_the_conversion, Rule.ACCEPTED_ONCE),
    (lose_an_acknowledged_verdict, Rule.VERDICT_IS_KEPT),
    (lose_an_acknowledged_revocation, Rule.VERDICT_IS_KEPT),
    (log_a_report_that_nobody_sent, Rule.EXPLAINED_REPORT),
    (forget_a_decision_on_one_replica, Rule.KNOWN),
]


@pytest.mark.parametrize(("corrupt", "rule"), CORRUPTIONS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_corrupted_history_breaks_its_rule(corrupt: Callable[[History, Log], None], rule: Rule) -> None:
    history, log = sound()
    corrupt(history, log)
    assert rule in broken(history, log)
    with pytest.raises(AssertionError, match=rule.name):
        check_history(history, log)


def test_every_rule_has_a_corruption() -> None:
    assert {rule for _, rule in CORRUPTIONS} == set(Rule)


@pytest.mark.parametrize(("corrupt", "rule"), [case for case in CORRUPTIONS if case[1] is not Rule.ONCE])
def test_a_corruption_breaks_few_rules_besides(corrupt: Callable[[History, Log], None], rule: Rule) -> None:
    """A message that names every rule helps nobody."""
    history, log = sound()
    corrupt(history, log)
    assert len(broken(history, log)) <= 3


def test_the_log_of_a_store_is_read_and_agrees_with_what_its_caller_saw(tmp_path: Path) -> None:
    history, path = History(), tmp_path / "shop.db"
    client = history.add_client()
    with lc.open(path, name="offers", dim=2, window=1000) as bandit:
        answers = [bandit.decide([[0.6, 0.0], [0.0, 0.8]], ids=["x", "y"], request_id=f"r{i}") for i in range(3)]
        for i, answer in enumerate(answers):
            client.decided("here", f"r{i}", float(i), answer=answer)
            client.decisions[-1] = replace(client.decisions[-1], ended_at=i + 0.5)
        for kind, call in ((CONVERSION, bandit.convert), (CONVERSION, bandit.convert), (REVOCATION, bandit.revoke)):
            verdict = call(answers[0].decision_id)
            client.reported("here", kind, [answers[0].decision_id], 9.0, verdicts=[verdict.value])
    log = read_log(path, "offers")
    check_history(history, log)
    assert [decision.round for decision in log.decisions] == [1, 2, 3]
    assert [(entry.kind, entry.verdict) for entry in log.reports] == [
        (CONVERSION, "accepted"),
        (CONVERSION, "duplicate"),
        (REVOCATION, "accepted"),
    ]
    client.decided("here", "r9", 9.0, answer=answer_of(9))
    assert Rule.ACKNOWLEDGED_IS_KEPT in broken(history, log)
