"""The store's clock: it only runs forward, at its own pace, however the machine's clock is set.

A store's time is what has passed since the machine was started, plus an offset. The offset is taken from the wall clock
when a file is first opened after a start of the machine, and kept in the file; so a clock that is set an hour or a
month ahead or back closes no window early, neither in one process nor from one to the next. After a restart of the
machine the offset is taken from the wall clock again, unless that lies before the latest stamp of the log: then time
goes on from there.

Where the wall clock was once far ahead, the store's time stays ahead of the calendar: it cannot go back without
breaking windows. `adjust` accepts that: the difference becomes the `shift`, by which calendar times are converted on
their way in and out, and the store's time goes on as it was.
"""

import time
from pathlib import Path
from typing import Protocol

from latecomer.errors import InputError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # BOOTTIME counts a suspended machine's time too


class Clocks(Protocol):
    """The clocks of a machine; a test has its own."""

    def wall(self) -> int:
        """Return microseconds since 1970, which somebody may have set."""

    def running(self) -> int:
        """Return microseconds since the machine was started, which nobody can set."""

    def boot(self) -> str:
        """Return an id of this start of this machine; empty where there is none."""


class SystemClocks:
    """The clocks of this machine."""

    def wall(self) -> int:
        """Return microseconds since 1970."""
        return time.time_ns() // 1000

    def running(self) -> int:
        """Return microseconds since the start of the machine."""
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1000

    def boot(self) -> str:
        """Return the kernel's boot id."""
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""


class StoreClock:
    """Microseconds since 1970 that never run backwards.

    Parameters
    ----------
    clocks
        The machine's.
    latest
        The latest stamp of the log: time goes on from there.
    boot, offset
        Those of an earlier clock of the same file.
    shift
        Microseconds by which the store's time is known to be ahead of the calendar.
    """

    def __init__(self, clocks: Clocks, *, latest: int, boot: str = "", offset: int = 0, shift: int = 0) -> None:
        if not hasattr(clocks, "running"):
            raise InputError(f"clock must be a latecomer.service.storage.clock.Clocks; got {clocks!r}", field="clock")
        self._clocks = clocks
        self.boot, self.shift = clocks.boot(), shift
        same_start = bool(boot) and boot == self.boot
        self.offset = offset if same_start else clocks.wall() + shift - clocks.running()
        self.offset += max(0, latest - self.now())

    def now(self) -> int:
        """Return the store's time in microseconds."""
        return self._clocks.running() + self.offset

    def compute_lead(self) -> float:
        """Return the seconds by which the store's time is ahead of the wall clock, beyond the shift."""
        return (self.now() - self._clocks.wall() - self.shift) / 1e6

    def adjust(self) -> float:
        """Accept the wall clock as right: add the difference to the shift, and return it in seconds."""
        lead = self.compute_lead()
        self.shift = self.now() - self._clocks.wall()
        return lead
