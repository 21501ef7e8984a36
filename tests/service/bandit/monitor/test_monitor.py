"""The monitor of a bandit on a real store: its alarms ring and end, and its state survives."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import apsw
import numpy as np
import pytest
from fake_clocks import HOUR
from fed_shop import NAME, FedShop

from latecomer.service.bandit.apply import apply_payload
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.monitor.monitor import Finding
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[FedShop]:
    found = FedShop(tmp_path / "shop.db", retention="forever")
    yield found
    found.store.close()


def test_an_outage_of_the_feed_rings_in_time_and_ends_when_conversions_are_back(shop: FedShop) -> None:
    shop.play(36)
    assert shop.alarms() == {}
    outage = shop.store.clock.now()
    least = np.log(100 * 7 * 24 * 168)  # 168 cells an hour, in a window of 6 h
    in_time = least / 0.45 / (10 * np.mean([0.15, 0.3, 0.5]) * (1 - np.exp(-6.0)))  # hours to miss that many
    shop.play(0.5 * in_time, feed=False)
    assert shop.alarms() == {}
    shop.play(1.0 * in_time, feed=False)
    alarm = shop.alarms()["conversions_stopped"]
    assert alarm.severity == "critical"
    assert alarm.sentence.startswith("no conversion has come")
    assert alarm.since is not None
    assert abs(alarm.since.timestamp() - outage / 1e6) < timedelta(hours=2).total_seconds()
    shop.lose_waiting()
    shop.play(6)
    assert shop.alarms() == {}


def test_an_outage_is_found_when_nothing_is_decided_any_more(shop: FedShop) -> None:
    shop.hourly = 200.0
    shop.play(3)
    shop.clocks.advance(2 * HOUR)
    assert list(shop.alarms()) == ["conversions_stopped"]
    shop.clocks.advance(1000 * 24 * HOUR)  # every window has closed: there is nothing more to expect
    assert list(shop.alarms()) == ["conversions_stopped"]


def test_the_monitor_survives_snapshots_restarts_and_replays(shop: FedShop) -> None:
    shop.hourly = 30.0
    shop.play(5)
    shop.reopen(snapshot_every=100)
    shop.play(5, feed=False)
    shop.play(2)
    before, alarms = shop.monitor(), shop.alarms()
    shop.reopen()  # from a snapshot
    assert shop.monitor() == before
    assert shop.alarms() == alarms
    assert [height > 10.0 for _, height in before["flow"]["silence"]["peaks"]] == [True], "the outage is a peak"
    replay(shop.store, NAME, "again")
    again = shop.store.read_bandit("again")
    again.count_notes()
    assert again.monitor.to_dict() == before
    shop.store.close()
    with apsw.Connection(str(shop.path)) as connection:
        connection.execute("DELETE FROM snapshot; DELETE FROM snapshot_part")
    shop.reopen()  # from every row
    assert shop.monitor() == before


@pytest.mark.parametrize("window", ["6h", 400])
def test_the_monitor_does_not_depend_on_how_events_are_grouped(tmp_path: Path, window: str | int) -> None:
    shop = FedShop(tmp_path / "shop.db", retention="forever", hourly=20.0)
    shop.play(12)
    if window != "6h":
        replay(shop.store, NAME, "other", window=window)
    shop.reopen()  # so that every row is written
    bandit = shop.store.read_bandit(NAME if window == "6h" else "other")
    rows = list(shop.store.log.read_rows(bandit.number))
    states = []
    for size in (1, 7, len(rows)):
        fresh = Bandit(bandit.descriptor, bandit.descriptor.make_policy())
        for low in range(0, len(rows), size):
            group = rows[low : low + size]
            apply_payload(fresh, b"".join(row.payload for row in group), group[-1].stamp)
        fresh.count_notes()
        states.append(fresh.monitor.to_dict())
    bandit.count_notes()
    assert all(state == bandit.monitor.to_dict() for state in states)
    assert bandit.monitor.flow.arrivals.conversions > 20
    shop.store.close()


def test_a_late_report_is_the_same_from_a_snapshot_and_from_the_log(path: Path) -> None:
    """A snapshot has forgotten the actions of closed rounds, and a bandit that went on may still know them."""
    with Store.open(path, snapshot_every=10) as store:
        store.create("shop", BanditSpec(dim=2, window=20, policy="Uniform"))
        answers = []
        for _ in range(50):
            answers.append(store.decide("shop", np.eye(2), ["a", "b"])[0])
            late = [Conversion(answer.decision_id) for answer in answers[-25:-24]]
            store.wait(store.convert("shop", late)[1])
        assert store.stats("shop").conversions["late"] == 26
    assert list(verify(path))[-1].endswith("50 rounds")


@pytest.mark.soak
def test_delays_that_become_later_are_found_at_a_look(shop: FedShop) -> None:
    shop.hourly = 20.0
    shop.play(50)
    assert shop.alarms() == {}
    shop.delays = dict.fromkeys(shop.delays, 4.0)
    shop.play(48)
    alarm = shop.alarms()["delays_drift"]
    assert "come later than" in alarm.sentence
    assert alarm.since is not None


@pytest.mark.soak
def test_delays_that_differ_by_action_and_a_short_window_are_found(shop: FedShop) -> None:
    shop.hourly = 20.0
    shop.delays = {"banner": 0.5, "bundle": 1.0, "coupon": 12.0}
    shop.play(75)
    alarms = shop.alarms()
    assert "'coupon'" in alarms["delays_differ_by_action"].sentence
    assert "window_too_short" in alarms
    assert "latecomer window" in alarms["window_too_short"].remedy


def test_findings_of_a_look_become_alarms(shop: FedShop) -> None:
    stamp = shop.store.clock.now()
    shop.store.read_bandit(NAME).monitor.findings = {
        "delays_drift": Finding(stamp, 2e-5, named="later", conversions=412),
        "delays_differ_by_action": Finding(stamp, 3e-6, named="coupon", conversions=412),
        "window_too_short": Finding(stamp, 1e-9, share=0.081, named="end"),
    }
    alarms = shop.alarms()
    assert list(alarms) == ["delays_drift", "delays_differ_by_action", "window_too_short"]
    assert "come later than those of earlier ones (p = 2e-05 on 412 conversions)" in alarms["delays_drift"].sentence
    assert "the latest for 'coupon'" in alarms["delays_differ_by_action"].sentence
    assert "brings 8.1% of the conversions" in alarms["window_too_short"].sentence
    assert all(alarm.since is not None and alarm.since.timestamp() == stamp / 1e6 for alarm in alarms.values())


def test_reports_that_come_too_late_are_found(shop: FedShop) -> None:
    shop.hourly = 5.0
    late = [shop.store.decide(NAME, np.eye(3), list(shop.delays))[0].decision_id for _ in range(60)]
    shop.play(20)
    shop.store.convert(NAME, [Conversion(decision) for decision in late])
    shop.play(12)
    assert "after their window had closed" in shop.alarms()["window_too_short"].sentence


def test_exploration_that_has_collapsed_is_told_from_a_policy_whose_propensities_are_1(tmp_path: Path) -> None:
    """Those that an optimist knows, and of a sampler without draws those of pinned actions, are 1."""
    for policy, rings in (("recommended", True), ("Uniform", True), ("OTFLinTS", False), ("OTFLinUCB", False)):
        shop = FedShop(tmp_path / f"{policy}.db", policy=policy)
        bandit = shop.store.read_bandit(NAME)
        stamp = shop.store.clock.now()
        for _ in range(999):
            bandit.tally.note_decision(stamp, 0.9999, "coupon")
        bandit.tally.count_notes(1)
        assert "exploration_collapsed" not in shop.alarms()
        bandit.tally.note_decision(stamp, 0.9999, "coupon")
        assert ("exploration_collapsed" in shop.alarms()) == rings
        shop.store.close()
