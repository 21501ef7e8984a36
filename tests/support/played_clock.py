"""A clock that a test plays: a file with the time, which a server's process reads in place of the machine's clocks."""

import struct
import time
from mmap import ACCESS_READ, mmap
from pathlib import Path

_TIME = struct.Struct("<q")


class PlayedClock:
    """Microseconds since 1970, in a file; they pass only where the test says so."""

    def __init__(self, path: Path, begin: int) -> None:
        self.path, self.begin, self.elapsed = path, begin, 0
        path.write_bytes(_TIME.pack(begin))
        with path.open("r+b") as file:
            self._shared = mmap(file.fileno(), _TIME.size)

    def advance(self, microseconds: int) -> None:
        """Let time pass."""
        self.elapsed += microseconds
        self._shared[:] = _TIME.pack(self.begin + self.elapsed)


def follow_clock(path: str) -> None:
    """Have this process take the wall clock and the time since the machine's start from a file.

    Its timeouts are measured by another clock, and are as long as ever.
    """
    with Path(path).open("rb") as file:
        shared = mmap(file.fileno(), _TIME.size, access=ACCESS_READ)
    played = {time.CLOCK_REALTIME, time.CLOCK_BOOTTIME}
    clock, clock_ns = time.clock_gettime, time.clock_gettime_ns

    def now() -> int:
        return int(_TIME.unpack(shared[:])[0]) * 1000

    time.time, time.time_ns = lambda: now() / 1e9, now
    time.clock_gettime = lambda clk_id: now() / 1e9 if clk_id in played else clock(clk_id)
    time.clock_gettime_ns = lambda clk_id: now() if clk_id in played else clock_ns(clk_id)
