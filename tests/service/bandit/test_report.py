"""A report's numbers equal those of the events, and its sentences say what they mean."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import DAY, SECOND, FakeClocks
from test_tally import IDS, SPEC, play

from latecomer.service.bandit.lift import report_lift
from latecomer.service.bandit.matured_decisions import weigh_open_rounds
from latecomer.service.bandit.tally.exact_sums import split_values
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.page.layout import write_bandit
from latecomer.service.store import Store


@pytest.mark.parametrize(
    ("window", "rounds"),
    [("20min", 160), (60, 160), *(pytest.param(window, 700, marks=pytest.mark.soak) for window in ("2h", 150))],
)
def test_report_equals_the_events(tmp_path: Path, window: int | str, rounds: int) -> None:
    clocks = FakeClocks()
    spec = BanditSpec(dim=3, window=window, parameters=SPEC.parameters)
    with Store.open(tmp_path / "a.db", clock=clocks) as store:
        store.create("b", spec)
        decisions = play(store, clocks, rounds, seed=3).decisions
        clocks.advance(60 * SECOND)
        report: Any = store.bandit_report("b")
        stats = store.stats("b")
        policy: Any = store.read_bandit("b").policy
        now = store.clock.now()
    converted = [d for d in decisions if d["converted"]]
    assert (report.decisions, report.conversions) == (rounds, len(converted))
    assert report.value == sum(d["value"] for d in decisions)
    edges, shares = policy.delay_curve
    ages = [(now - d["stamp"]) / 1e6 if isinstance(window, str) else rounds + 1 - d["answer"].round for d in decisions]
    oldest = int(policy.state.number("oldest"))
    weights = [
        1.0 if d["answer"].round < oldest else np.interp(age, edges, shares)
        for d, age in zip(decisions, ages, strict=True)
    ]
    assert sum(p.matured_decisions for p in report.periods) == pytest.approx(sum(weights))
    first = 0
    for period in report.periods:
        mine = slice(first, first := first + period.decisions)
        assert period.matured_decisions == pytest.approx(sum(weights[mine]))
        assert period.conversions == sum(d["converted"] for d in decisions[mine])
        assert period.controls == sum(d["answer"].is_control for d in decisions[mine])
        assert sum(period.choices.values()) == period.decisions
    rates = report.rates
    assert rates.naive == len(converted) / rounds < rates.matured == pytest.approx(len(converted) / sum(weights))
    assert rates.on_its_way == pytest.approx(rates.matured * (rounds - sum(weights)))
    closed = [d for d in decisions if d["answer"].round < oldest]
    assert rates.closed == sum(d["converted"] for d in closed) / len(closed)
    assert list(report.arms) == ["policy", "control"]
    for arm, is_control in (("policy", False), ("control", True)):
        own = [place for place, d in enumerate(decisions) if d["answer"].is_control == is_control]
        found, count = report.arms[arm], sum(decisions[place]["converted"] for place in own)
        assert (found.decisions, found.conversions, found.naive) == (len(own), count, count / len(own))
        assert found.matured_decisions == pytest.approx(sum(weights[place] for place in own))
        assert found.matured == pytest.approx(count / found.matured_decisions)
    assert report.arms == stats.arms
    lift = report.lift
    assert lift.decisions + lift.control_decisions == len(closed) == rounds - report.open_decisions
    for mean, is_control in ((lift.mean, False), (lift.control_mean, True)):
        values = [d["value"] for d in closed if d["answer"].is_control == is_control]
        assert mean == pytest.approx(np.mean(values))
    assert {choice.id: choice.decisions for choice in report.choices} == {
        label: sum(d["answer"].action_id == label for d in decisions) for label in IDS
    }
    assert report.health.failure is None


def test_empty_report(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        store.create("b", SPEC)
        report = store.bandit_report("b")
    assert (report.decisions, report.periods, report.lift, report.choices) == (0, [], None, [])
    assert (report.rates.naive, report.rates.matured, report.rates.note) == (None, None, "there is no decision yet")


@pytest.mark.parametrize("window", ["0s", 0])
def test_a_window_of_nothing_takes_what_comes_at_once(tmp_path: Path, window: int | str) -> None:
    clocks = FakeClocks()
    with Store.open(tmp_path / "a.db", clock=clocks) as store:
        store.create("b", BanditSpec(dim=3, window=window, parameters=SPEC.parameters))
        decisions = [store.decide("b", np.eye(3), IDS)[0].decision_id for _ in range(3)]
        verdicts = list(store.convert("b", [Conversion(decisions[2])])[0])
        clocks.advance(60 * SECOND)
        store.decide("b", np.eye(3), IDS)
        verdicts += store.convert("b", [Conversion(decisions[1])])[0]
    with Store.open(tmp_path / "a.db", clock=clocks) as store:
        report = store.bandit_report("b")
    assert verdicts == ["accepted", "late"]
    assert (report.decisions, report.conversions, report.alarms) == (4, 1, [])
    assert report.rates.note in write_bandit(report)


def test_young_decisions_are_not_called_old(tmp_path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(tmp_path / "a.db", clock=clocks) as store:
        store.create("b", BanditSpec(dim=3, window="7d", parameters=SPEC.parameters))

        def decide(count: int) -> Any:
            decisions = [store.decide("b", np.eye(3))[0].decision_id for _ in range(count)]
            clocks.advance(SECOND)
            store.convert("b", [Conversion(decision) for decision in decisions[1::2]])
            return store.bandit_report("b")

        one = decide(1)
        assert (one.rates.naive, one.rates.matured, one.rates.on_its_way) == (0.0, None, None)
        assert one.rates.note.startswith("too little is known of the delays; 1 decision is open")
        assert "Half of the conversions" not in write_bandit(one)
        assert "Too few conversions have come to know their delays" in write_bandit(one)
        young = decide(31)  # 15 conversions, but no decision is old enough to know a delay from
        assert (young.conversions, young.rates.matured) == (15, None)
        assert [arm.matured for arm in young.arms.values()] == [None, None]
        clocks.advance(60 * SECOND)
        store.decide("b", np.eye(3))  # the curve is brought up to date by a decision
        clocks.advance(60 * SECOND)
        known = store.bandit_report("b")
        assert known.rates.matured == pytest.approx(15 / 33)
        assert known.rates.note.startswith("they hardly do: 33 decisions are open")
        clocks.advance(8 * DAY)
        old = store.bandit_report("b")
        assert old.rates.note.startswith("they do not: every decision is old enough")
        assert old.rates.matured == 15 / 33


def test_policy_without_a_curve_has_no_matured_rate(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        store.create("b", BanditSpec(dim=3, window=2, policy="OTFLinUCB"))
        for _ in range(5):
            store.decide("b", np.eye(3))
        report = store.bandit_report("b")
        policy = store.read_bandit("b").policy
    assert (report.rates.matured, report.rates.naive, report.rates.closed) == (None, 0.0, 0.0)
    assert [choice.id for choice in report.choices] == [None]
    with pytest.raises(ValueError, match="no delay curve"):
        weigh_open_rounds(policy, np.array([1, 6]), now=0)


def arms(count: int, rate: float, controls: int, control_rate: float) -> Any:
    counts = [(n, round(n * p)) for n, p in ((count, rate), (controls, control_rate))]
    return np.array([[n, won, *split_values(np.array([float(won)]))[0]] for n, won in counts], np.int64)


def test_lift_says_what_follows() -> None:
    better: Any = report_lift(arms(50_000, 0.08, 50_000, 0.05))
    assert 0 < better.low < better.difference < better.high
    assert better.note.startswith("the policy is better than the control: +3.00 points, 95% interval +")
    assert better.note.endswith(" points; as a share of the control's mean +60%")
    worse: Any = report_lift(arms(50_000, 0.05, 50_000, 0.08))
    assert worse.high < 0
    assert "worse" in worse.note
    unsure: Any = report_lift(arms(2_000, 0.06, 500, 0.05))
    assert unsure.low < 0 < unsure.high
    assert unsure.note.startswith(f"not enough yet: about {unsure.more_decisions:,} more decisions")
    total = 2_500 + unsure.more_decisions  # with so many, at the same shares and rates, it is told
    told: Any = report_lift(arms(round(total * 0.8), 0.06, round(total * 0.2), 0.05))
    assert told.low > 0
    assert report_lift(arms(0, 0.0, 0, 0.0)).note.startswith("not enough yet: no decision")
    assert "too few closed" in report_lift(arms(100, 0.5, 3, 0.0)).note
