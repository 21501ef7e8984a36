"""Alarms of a whole store: each follows from its health, names what is wrong, and says what to do."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from fake_clocks import HOUR, FakeClocks

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Alarm, Health
from latecomer.service.page.layout import write_bandit
from latecomer.service.store import Store
from latecomer.service.store_alarms import LEAST_ROOM, LITTLE_ROOM, list_store_alarms

WELL = Health(
    failure=None,
    snapshot_failure=None,
    commits=1,
    events=1,
    bytes=1,
    commit_seconds=0.1,
    clock_offset=0.5,
    free_bytes=LITTLE_ROOM,
)


def test_a_store_in_order_has_no_alarms() -> None:
    assert list_store_alarms(WELL) == []
    assert list_store_alarms(msgspec.structs.replace(WELL, free_bytes=None)) == []


@pytest.mark.parametrize(
    ("change", "id", "severity", "named"),
    [
        ({"failure": "the disk is full"}, "store_failing", "critical", "the disk is full"),
        ({"snapshot_failure": "no room"}, "snapshots_failing", "warning", "no room"),
        ({"clock_offset": 61.0}, "clock_off", "warning", "61 s ahead of"),
        ({"clock_offset": -3600.0}, "clock_off", "warning", "3,600 s behind"),
        ({"free_bytes": LITTLE_ROOM - 1}, "disk_nearly_full", "warning", "1,024 MiB"),
        ({"free_bytes": LEAST_ROOM - 1}, "disk_nearly_full", "critical", "100 MiB"),
        ({"quarantined": {"b": "row 7 is damaged"}}, "bandit_quarantined", "critical", "b (row 7 is damaged)"),
    ],
)
def test_each_trouble_has_its_alarm(change: dict[str, object], id: str, severity: str, named: str) -> None:
    (alarm,) = list_store_alarms(msgspec.structs.replace(WELL, **change))
    assert (alarm.id, alarm.severity, alarm.bandit) == (id, severity, None)
    assert named in alarm.sentence
    assert alarm.remedy


def test_a_clock_that_was_set_back_is_in_stats_report_and_page(tmp_path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(tmp_path / "s.db", clock=clocks, create=True) as store:
        store.create("b", BanditSpec(dim=2, window="1d"))
        store.decide("b", np.eye(2))
        assert not [alarm for alarm in store.stats("b").alarms if alarm.id == "clock_off"]
        clocks.set_clock(-HOUR)
        (alarm,) = [alarm for alarm in store.stats("b").alarms if alarm.id == "clock_off"]
        assert isinstance(alarm, Alarm)
        assert "3,600 s ahead of" in alarm.sentence
        report = store.bandit_report("b")
        assert alarm in report.alarms
        assert "adjust-clock" in write_bandit(report)
