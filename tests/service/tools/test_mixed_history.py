"""One history of grace, subjects, deferrals, baskets, stages, rankings, catalogues, a freeze and a challenger."""

import shutil
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import polars as pl
import pytest
from fake_clocks import HOUR, FakeClocks, state_of

import latecomer as lc
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec, RewardSpec
from latecomer.service.catalogue_arguments import prepare_pick
from latecomer.service.messages import Activation, Conversion, RankingAnswer, Revocation, StageReport, Verdict
from latecomer.service.store import Store
from latecomer.service.tools.copy_store import copy_store
from latecomer.service.tools.export import export
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify
from latecomer.timestamps import to_datetime

ROWS, IDS = np.array([[0.9, 0.0], [0.0, 0.9], [0.6, 0.6]]), ["a", "b", "c"]
REWARD = RewardSpec(scale=200.0, aggregate="sum", unit="EUR")
SPEC = BanditSpec(
    dim=2,
    window="10h",
    grace="4h",
    parameters={"seed": 4, "stages": ["click", "cart"]},
    reward=REWARD,
    returns="20d",
    challenger=ChallengerSpec(policy="LinUCB", share=0.5),
)
YES = Verdict.ACCEPTED


def open_store(path: Path, machine: FakeClocks) -> Store:
    return Store.open(path, clock=machine, snapshot_every=7)


@pytest.fixture
def machine() -> FakeClocks:
    return FakeClocks(wall=1_700_000_000_000_000)


class History:
    """The events, and the V and B that they leave, added up one by one."""

    def __init__(self, store: Store, machine: FakeClocks) -> None:
        self.store, self.machine = store, machine
        self.V, self.B = np.eye(2), np.zeros(2)
        self.arms = {"challenger": 0, "champion": 0}

    def decide(self, **options: Any) -> tuple[str, Any]:
        """Return the decision's id and its action, which is learnt unless it is deferred."""
        answer, _ = self.store.decide("shop", ROWS, IDS, **options)
        action = ROWS[answer.index]
        if not options.get("deferred"):
            self.learn(action, answer.is_control)
        self.last_is_champion = answer.is_control
        return answer.decision_id, action

    def learn(self, action: Any, is_champion: bool) -> None:
        """Count the decision of an arm, whose action both policies learn."""
        self.V += np.outer(action, action)
        self.arms["champion" if is_champion else "challenger"] += 1

    def play(self) -> None:
        store, machine = self.store, self.machine
        store.create("shop", SPEC)
        store.put_actions("shop", dict(zip(IDS, ROWS, strict=True)))
        straggler, late_action = self.decide(subject="ann")
        basket, basket_action = self.decide(exclude=["a"], request_id="x")
        shown, shown_action = self.decide(deferred=True, subject="bob")
        is_champion = self.last_is_champion
        self.decide(deferred=True)  # and is never shown
        assert store.activate("shop", [Activation(shown)])[0] == [YES]
        self.learn(shown_action, is_champion)
        ranking, _ = store.decide("shop", ROWS, IDS, k=2)
        assert isinstance(ranking, RankingAnswer)
        for entry in ranking.ranking:
            self.learn(ROWS[entry.index], ranking.is_control)
        picked, _ = store.decide("shop", **prepare_pick(None, None, ["b"], "exact"))
        self.learn(ROWS[IDS.index(str(picked.action_id))].astype(np.float32), picked.is_control)
        stages = [StageReport(basket, "click"), StageReport(basket, "cart"), StageReport(picked.decision_id, "click")]
        assert store.report_stages("shop", stages)[0] == [YES] * 3
        purchases = [Conversion(basket, 150.0, conversion_id="o1"), Conversion(basket, 30.0, conversion_id="o2")]
        assert store.convert("shop", [*purchases, Conversion(ranking.ranking[1].decision_id, 40.0)])[0] == [YES] * 3
        self.B += 0.2 * ROWS[ranking.ranking[1].index]
        machine.advance(11 * HOUR)
        self.decide(pin="c", subject="eve")  # it closes the others, which are in their grace
        occurred = to_datetime(machine.wall() - 2 * HOUR)
        stragglers = [Conversion(straggler, 100.0, occurred), Conversion(None, 20.0, occurred, subject="bob")]
        assert store.convert("shop", stragglers)[0] == [YES] * 2
        self.B += 0.5 * late_action + 0.1 * shown_action
        assert store.freeze("shop", True)[0] == [YES]
        frozen, _ = store.decide("shop", ROWS, IDS)
        self.learn(0.0 * ROWS[0], frozen.is_control)
        assert store.freeze("shop", False)[0] == [YES]
        machine.advance(48 * HOUR)
        assert store.revoke("shop", [Revocation(basket, None, "o1")])[0] == [YES], "a return, weeks later"
        self.B += 30.0 / 200.0 * basket_action
        self.decide()
        self.decide(deferred=True)  # what waits is looked at when another does


@pytest.fixture
def history(tmp_path: Path, machine: FakeClocks) -> History:
    for _ in range(20):  # each creation draws the seed of its arms: in one of a hundred, one arm decides all
        with open_store(tmp_path / "store.db", machine) as store:
            found = History(store, machine)
            found.play()
            if min(found.arms.values()) > 0:
                check(store, "shop", found)
                return found
        for file in tmp_path.glob("store.db*"):
            file.unlink()
    raise AssertionError("one arm decides all, again and again")


def check(store: Store, name: str, history: History) -> None:
    policies, stats = store.registry.bandits[name].policies, store.stats(name)
    assert len(policies) == 2
    for policy in policies:
        np.testing.assert_allclose(policy.V, history.V, rtol=0, atol=1e-6)
        np.testing.assert_allclose(policy.B, history.B, rtol=0, atol=1e-6)
    assert {arm: rates.decisions for arm, rates in stats.arms.items()} == history.arms
    assert {stage: found.decisions for stage, found in stats.stages.items()} == {"click": 2, "cart": 1}
    rates = policies[0].stage_rates["click"]
    assert (rates.reached, rates.others) == (2, 7)
    assert (rates.reached_credit, rates.other_credit) == pytest.approx((30 / 200, (40 + 100 + 20) / 200))
    assert stats.conversions["accepted"] == 5
    assert stats.revocations["accepted"] == 1
    assert stats.value == pytest.approx(30 + 40 + 100 + 20)
    assert (stats.rounds, stats.deferred["activated"], stats.deferred["expired"]) == (9, 1, 1)


def test_a_mixed_history_survives_lost_snapshots_copies_and_a_replay(
    tmp_path: Path, machine: FakeClocks, history: History, database: str
) -> None:
    path = tmp_path / "store.db"
    list(verify(path))  # raises
    shutil.copy(path, tmp_path / "bare.db")
    connection = apsw.Connection(str(tmp_path / "bare.db"))
    connection.execute("DELETE FROM snapshot; DELETE FROM snapshot_part")
    connection.close()
    copy_store(path, database)
    copy_store(database, tmp_path / "copy.db")
    with open_store(path, machine) as store:
        before = state_of(store, "shop")
        check(store, "shop", history)
        replay(store, "shop", "longer", window="30h")
        check(store, "longer", history)
        replay(store, "shop", "shorter", window="1h", grace="1h")
        shorter = store.stats("shorter")
        assert (shorter.conversions["late"], shorter.conversions["accepted"]) == (2, 3), "what occurred after 9 hours"
    for name in ("bare.db", "copy.db"):
        with open_store(tmp_path / name, machine) as store:
            assert state_of(store, "shop") == before
            check(store, "shop", history)


@pytest.mark.usefixtures("history")
def test_a_mixed_history_is_exported_and_imported(tmp_path: Path) -> None:
    decisions = pl.concat([frame for table, frame in export(tmp_path / "store.db", "shop") if table == "decisions"])
    assert len(decisions) == 9
    decisions.write_parquet(tmp_path / "log.parquet")
    log = lc.read_log(tmp_path / "log.parquet")
    assert log.skipped == {"no actions offered": 1}, "an export has no rows for a decision among the catalogue"
    challenger = {"policy": "LinUCB"}
    with lc.open(tmp_path / "heir.db", name="heir", dim=2, window="10h", grace="4h", challenger=challenger) as heir:
        report = heir.import_log(log, scale=200.0)
        assert (report.decisions, report.conversions["accepted"]) == (8, 4)
        credits = {"straggler": 100.0, "basket": 30.0, "of the subject": 20.0, "second of a ranking": 40.0}
        assert heir.stats().value == pytest.approx(sum(credits.values()) / 200.0)
        champion, other = heir._store.read_bandit("heir").policies
        np.testing.assert_allclose(other.V, champion.V, rtol=0, atol=1e-12)
        np.testing.assert_allclose(other.B, champion.B, rtol=0, atol=1e-12)
        assert other.rounds == champion.rounds == 8
        assert not any(rates.decisions for rates in heir.stats().arms.values()), "they were another system's"
