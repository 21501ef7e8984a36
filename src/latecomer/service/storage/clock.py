"""Time that only runs forward, at its own pace, whatever is done to the machine's clock.

A store's time is what has passed since the machine was started, plus an offset. The offset is taken from the wall clock
when a file is first opened after a start of the machine, and kept in the file; so a clock that is set an hour or a
month ahead or back closes no window early, neither in one process nor from one to the next. After a restart of the
machine the wall clock is asked anew, and believed unless it lies before the latest stamp of the log: then time goes on
from there.

Where a wrong clock was believed once, the store's time stays ahead of the calendar for ever: it cannot go back without
breaking windows. `adjust` accepts that: the difference becomes the `shift`, calendar times are converted by it on their
way in and out, and time itself goes on as it was.
"""

import time
from pathlib import Path
from typing import Protocol

from latecomer.errors import InputError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_RUNNING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # BOOTTIME counts a suspended machine's time too


class Clocks(Protocol):
    """What tells the time: in tests, something that can be set."""

    def wall(self) -> int:
        """Microseconds since 1970, for what they are worth."""

    def running(self) -> int:
        """Microseconds since the machine was started, which nobody sets."""

    def boot(self) -> str:
        """Which start of which machine this is; empty where that cannot be told."""


class SystemClocks:
    """The clocks of the machine that this runs on."""

    def wall(self) -> int:
        """Microseconds since 1970."""
        return time.time_ns() // 1000

    def running(self) -> int:
        """Microseconds since the start of the machine."""
        return time.clock_gettime_ns(_RUNNING) // 1000

    def boot(self) -> str:
        """The kernel's own name for this start."""
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""


class StoreClock:
    """Microseconds since 1970 that never run backwards.

    Parameters
    ----------
    machine
        What tells the time.
    latest
        The latest stamp of the log: time goes on from there.
    boot, offset
        What an earlier clock of the same file had.
    shift
        Microseconds by which the store's time is known to be ahead of the calendar.
    """

    def __init__(self, machine: Clocks, *, latest: int, boot: str = "", offset: int = 0, shift: int = 0) -> None:
        if not hasattr(machine, "running"):
            raise InputError(f"clock must be a latecomer.service.storage.clock.Machine; got {machine!r}")
        self._machine = machine
        self.boot, self.shift = machine.boot(), shift
        same_start = bool(boot) and boot == self.boot
        self.offset = offset if same_start else machine.wall() + shift - machine.running()
        self.offset += max(0, latest - self.now())

    def now(self) -> int:
        """The store's time."""
        return self._machine.running() + self.offset

    def ahead(self) -> float:
        """Seconds by which the store's time is ahead of the wall clock, beyond the shift."""
        return (self.now() - self._machine.wall() - self.shift) / 1e6

    def adjust(self) -> float:
        """Take the wall clock for right: the difference is added to the shift. Return it in seconds."""
        ahead = self.ahead()
        self.shift = self.now() - self._machine.wall()
        return ahead
