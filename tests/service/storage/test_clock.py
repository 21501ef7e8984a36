"""The store's clock: the wall clock is set ahead and back, and no window closes early or late."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from fake_clocks import DAY, HOUR, SECOND, FakeClocks
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.storage.clock import StoreClock, SystemClocks
from latecomer.service.store import Store

STEPS = [HOUR, -HOUR, 30 * DAY, -30 * DAY]
WEEK = BanditSpec(dim=2, window="7d", policy="OTFLinTS")
OFFERS = np.eye(2)


def verdict(store: Store, id_: str) -> str:
    return store.convert("shop", [Conversion(id_)])[0][0].value


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("restart", [False, True])
def test_window_closes_after_elapsed_time_however_the_wall_clock_is_set(
    tmp_path: Path, step: int, restart: bool
) -> None:
    machine = FakeClocks()
    store = Store.open(tmp_path / "store.db", clock=machine)
    store.create("shop", WEEK)
    ids = []
    for _ in range(15):  # twice a day, the clock being set every time, there and back
        ids.append(store.decide("shop", OFFERS)[0].decision_id)
        machine.set_clock(step if len(ids) % 2 else -step)
        if restart:
            store.close()
            store = Store.open(tmp_path / "store.db", clock=machine)
        machine.advance(DAY // 2)
    # 7.5 days have passed since the first decision, 7 since the second: exactly the window still counts
    assert [verdict(store, id_) for id_ in ids] == ["late", *["accepted"] * 14]
    assert [verdict(store, id_) for id_ in ids] == ["late", *["duplicate"] * 14]
    assert store.stats("shop").conversions["accepted"] == 14
    store.close()


@pytest.mark.parametrize("step", STEPS)
def test_width_does_not_depend_on_wall_clock_steps(tmp_path: Path, step: int) -> None:
    stats = []
    for name, steps in (("left.db", [0, 0]), ("set.db", [step, -step])):
        machine = FakeClocks()
        with Store.open(tmp_path / name, clock=machine) as store:
            store.create("shop", BanditSpec(dim=2, window="7d", parameters={"seed": 3}))
            for turn in range(40):
                store.decide("shop", OFFERS)
                machine.set_clock(steps[turn % 2])
                machine.advance(6 * HOUR)
            stats.append(store.stats("shop"))
    assert stats[0] == stats[1]


def test_clock_goes_on_from_the_log_after_a_reboot(tmp_path: Path) -> None:
    machine = FakeClocks()
    with Store.open(tmp_path / "store.db", clock=machine) as store:
        store.create("shop", WEEK)
        machine.advance(DAY)
        first = store.decide("shop", OFFERS)[0]
    machine.reboot()
    machine.set_clock(-30 * DAY)
    with Store.open(tmp_path / "store.db", clock=machine) as store:
        machine.advance(6 * DAY)
        assert store.decide("shop", OFFERS)[0].expires_at > first.expires_at  # type: ignore[operator]
        assert verdict(store, first.decision_id) == "accepted"
        assert store.health.clock_offset == pytest.approx(30 * 86_400)


def test_time_while_the_machine_is_off_counts(tmp_path: Path) -> None:
    machine = FakeClocks()
    with Store.open(tmp_path / "store.db", clock=machine) as store:
        store.create("shop", WEEK)
        id_ = store.decide("shop", OFFERS)[0].decision_id
    machine.reboot()
    machine.set_clock(8 * DAY)  # the wall clock went on while nothing ran
    with Store.open(tmp_path / "store.db", clock=machine) as store:
        assert verdict(store, id_) == "late"


def test_system_clocks_agree_with_time_and_never_run_back() -> None:
    clock = StoreClock(SystemClocks(), latest=0)
    first = clock.now()
    assert 0 <= clock.now() - first < 10 * SECOND
    assert abs(clock.compute_lead()) < 10
    later = StoreClock(SystemClocks(), latest=first + DAY)
    assert later.now() >= first + DAY


CENTURY = 36_500 * DAY


def moment(machine: FakeClocks) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=machine.wall())


def test_adjust_clock_converts_calendar_times_and_keeps_windows(tmp_path: Path) -> None:
    """Windows stay as they are; calendar times are right again, and time while the machine is off counts again."""
    machine, path = FakeClocks(), tmp_path / "store.db"
    machine.set_clock(CENTURY)
    with Store.open(path, clock=machine) as store:
        store.create("shop", WEEK)
        first = store.decide("shop", OFFERS)[0]
    machine.reboot()
    machine.set_clock(-CENTURY)
    with Store.open(path, clock=machine) as store:
        machine.advance(6 * DAY)
        assert store.health.clock_offset == pytest.approx(CENTURY / SECOND)
        assert store.settings.adjust_clock() == pytest.approx(CENTURY / SECOND)
        assert store.health.clock_offset == 0
        second = store.decide("shop", OFFERS)[0]
        assert second.expires_at == moment(machine) + timedelta(days=7)
        machine.advance(DAY)
        assert verdict(store, first.decision_id) == "accepted"  # seven days, exactly the window
    with Store.open(path, clock=machine) as store:
        assert store.health.clock_offset == 0
        happened = moment(machine)
        machine.advance(7 * DAY)
        reports = [Conversion(second.decision_id, 1.0, happened)]
        assert store.convert("shop", reports)[0][0].value == "accepted"  # reported in the grace, occurred in time
        third = store.decide("shop", OFFERS)[0]
    machine.reboot()
    machine.set_clock(8 * DAY)  # the machine was off
    with Store.open(path, clock=machine) as store:
        assert store.health.clock_offset == pytest.approx(0)
        assert verdict(store, third.decision_id) == "late"


def test_log_adjust_clock_command_sets_the_shift(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path, clock=FakeClocks(SystemClocks().wall() + CENTURY)) as store:
        store.create("shop", WEEK)
        store.wait(store.decide("shop", OFFERS)[1])
    with Store.open(path) as store:
        assert store.health.clock_offset > 36_499 * 86_400
    done = CliRunner().invoke(app, ["log", "adjust-clock", str(path)])
    assert (done.exit_code, "s ahead of this machine's clock" in done.output) == (0, True)
    with Store.open(path) as store:
        assert abs(store.health.clock_offset) < 10
        expires_at = store.decide("shop", OFFERS)[0].expires_at
        assert expires_at is not None
        assert abs(expires_at - datetime.now(UTC) - timedelta(days=7)) < timedelta(minutes=5)
