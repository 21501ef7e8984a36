"""Alarms of a whole store, from its health: writing, snapshots, the clock, the disk, and damaged bandits."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from latecomer.service.messages import Alarm, Health

MOST_CLOCK_OFFSET = 60.0
"""Seconds by which the store's time may differ from the machine's."""
LITTLE_ROOM, LEAST_ROOM = 1 << 30, 100 << 20
"""Free bytes on the store's disk below which there is a warning, and below which it is critical."""
STORE_ALARMS = ("store_failing", "bandit_quarantined", "disk_nearly_full", "snapshots_failing", "clock_off")
"""The ids of the alarms that a store can have."""


def list_store_alarms(health: Health, may_name: Callable[[str], bool] = lambda _: True) -> list[Alarm]:
    """List the alarms of a store, the most urgent first; they name the bandits that may be named, and count others."""
    return [
        *_check_writing(health),
        *_check_damage(health, may_name),
        *_check_disk(health),
        *_check_snapshots(health),
        *_check_clock(health),
    ]


def _check_writing(health: Health) -> list[Alarm]:
    if health.failure is None:
        return []
    return _raise_alarm(
        "store_failing",
        "critical",
        f"nothing can be decided or credited: {health.failure}",
        "free the disk or bring the database back; the server goes on by itself as soon as it can write",
    )


def _check_damage(health: Health, may_name: Callable[[str], bool]) -> list[Alarm]:
    if not health.quarantined:
        return []
    named = [f"{name} ({reason})" for name, reason in health.quarantined.items() if may_name(name)]
    others = len(health.quarantined) - len(named)
    found = ", ".join([*named, f"{others} of the store's"] if others else named)
    return _raise_alarm(
        "bandit_quarantined",
        "critical",
        f"rows of the log are damaged, and these bandits are not served: {found}",
        "run `latecomer log verify`, and restore the store from a backup, or delete and recreate the bandits",
    )


def _check_disk(health: Health) -> list[Alarm]:
    free = health.free_bytes
    if free is None or free >= LITTLE_ROOM:
        return []
    return _raise_alarm(
        "disk_nearly_full",
        "critical" if free < LEAST_ROOM else "warning",
        f"the store's disk has {free / (1 << 20):,.0f} MiB left",
        "make room, or keep decisions for a shorter time (the setting retention)",
    )


def _check_snapshots(health: Health) -> list[Alarm]:
    if health.snapshot_failure is None:
        return []
    return _raise_alarm(
        "snapshots_failing",
        "warning",
        f"the latest snapshot, compaction or pruning failed: {health.snapshot_failure}",
        "nothing is lost, but the log grows and a restart takes longer: look at the disk and at the server's log",
    )


def _check_clock(health: Health) -> list[Alarm]:
    if abs(health.clock_offset) <= MOST_CLOCK_OFFSET:
        return []
    word = "ahead of" if health.clock_offset > 0 else "behind"
    return _raise_alarm(
        "clock_off",
        "warning",
        f"the store's time is {abs(health.clock_offset):,.0f} s {word} the machine's clock",
        "synchronise the machine's clock; where that is right, stop the server and run `latecomer log adjust-clock`",
    )


def _raise_alarm(id: str, severity: Literal["warning", "critical"], sentence: str, remedy: str) -> list[Alarm]:
    since: datetime | None = None  # a store's health has no history
    return [Alarm(id=id, severity=severity, bandit=None, since=since, sentence=sentence, remedy=remedy)]
