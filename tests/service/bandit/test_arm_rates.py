"""Rates by arm: what a report of a range counts, and bandits that have one arm or no curve."""

from pathlib import Path

import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks

from latecomer.service.bandit.arm_rates import rate_arms
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec
from latecomer.service.messages import Conversion
from latecomer.service.store import Store

ROWS = np.eye(2)


def play(store: Store, clocks: FakeClocks, rounds: int) -> list[bool]:
    """Decide eight times a day, and convert every third decision; return who decided."""
    made = []
    for number in range(rounds):
        clocks.advance(DAY // 8)
        answer, ticket = store.decide("shop", ROWS)
        if number % 3 == 0:
            ticket = store.convert("shop", [Conversion(answer.decision_id)])[1]
        store.wait(ticket)
        made.append(answer.is_control)
    return made


def test_one_arm_has_no_rates_of_its_own(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks) as store:
        store.create("shop", BanditSpec(dim=2, window="3d"))
        play(store, clocks, 8)
        assert store.stats("shop").arms == {}
        assert store.bandit_report("shop").arms == {}


@pytest.mark.parametrize(("champion", "challenger"), [("LinUCB", "recommended"), ("LinUCB", "LinUCB")])
def test_the_curve_of_either_policy_matures_both_arms(path: Path, champion: str, challenger: str) -> None:
    clocks = FakeClocks()
    spec = BanditSpec(dim=2, window="3d", policy=champion, challenger=ChallengerSpec(policy=challenger, share=0.5))
    with Store.open(path, clock=clocks) as store:
        store.create("shop", spec)
        made = play(store, clocks, 40)
        arms, report = store.stats("shop").arms, store.bandit_report("shop")
    assert [arms["champion"].decisions, arms["challenger"].decisions] == [sum(made), 40 - sum(made)]
    assert arms == report.arms
    if challenger == "LinUCB":
        assert all(rates.matured is None for rates in arms.values())
        assert report.rates.matured is None
        return
    assert sum(rates.matured_decisions or 0.0 for rates in arms.values()) == pytest.approx(
        sum(period.matured_decisions or 0.0 for period in report.periods)
    )
    for rates in arms.values():
        assert rates.matured_decisions is not None
        assert rates.matured == pytest.approx(rates.conversions / rates.matured_decisions)


def test_a_range_has_rates_of_its_decisions(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks) as store:
        store.create(
            "shop", BanditSpec(dim=2, window="3d", parameters={"control": {"share": 0.5, "policy": "uniform"}})
        )
        made = play(store, clocks, 30)
        cut = store.bandit_report("shop").at
        made += play(store, clocks, 30)
        early, late = store.bandit_report("shop", until=cut), store.bandit_report("shop", since=cut)
        whole = store.bandit_report("shop").arms
    for arm, is_control in (("policy", False), ("control", True)):
        first, second = early.arms[arm], late.arms[arm]
        assert first.decisions + second.decisions == made.count(is_control) == whole[arm].decisions
        assert first.conversions + second.conversions == whole[arm].conversions
        assert (first.matured_decisions or 0.0) + (second.matured_decisions or 0.0) == pytest.approx(
            whole[arm].matured_decisions
        )


def test_rounds_that_close_after_the_tally_was_taken_count_as_closed(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks) as store:
        store.create("shop", BanditSpec(dim=2, window="3d", challenger=ChallengerSpec(policy="LinUCB", share=0.5)))
        play(store, clocks, 40)
        bandit = store.read_bandit("shop")
        bandit.count_notes()
        taken = bandit.tally
        clocks.advance(10 * DAY)
        for policy in bandit.policies:  # as a decision does after the counts of a range were read
            policy.decide(ROWS, at=clocks.wall() / 1e6)
        arms = rate_arms(bandit, taken, now=clocks.wall())
    assert [rates.matured_decisions for rates in arms.values()] == [rates.decisions for rates in arms.values()]
