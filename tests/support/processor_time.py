"""Processor time of tests and of every process that they start; files that take more than their budget are listed."""

import os
import time
from collections import defaultdict
from pathlib import Path

import pytest
from processes import children_of

BUDGET = 3.0
"""Seconds of processor time that a file of tests, or a document, may take in the default run."""

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Return the processor time of this process, and of those that it has started and their children."""
    ended = os.times()
    running = sum(map(_ticks, children_of(os.getpid()))) / _TICKS
    return time.process_time() + ended.children_user + ended.children_system + running


def _ticks(process: int) -> int:
    """Return the ticks of a process, of its ended children, and of the running ones."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, fields[11:15])) + sum(map(_ticks, children_of(process)))


class Costs:
    """The processor time of each file; a plugin that lists the files above the budget at the end."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, path: str, seconds: float) -> None:
        """Count the seconds of a file."""
        self.seconds[path] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the files above the budget."""
        over = sorted(((cost, path) for path, cost in self.seconds.items() if cost > BUDGET), reverse=True)
        if not over:
            return
        total = sum(self.seconds.values())
        terminalreporter.section(f"{total:.0f} s of processor time; files above {BUDGET:.0f} s")
        for seconds, path in over:
            terminalreporter.line(f"{seconds:6.1f} s  {path}")


COSTS = pytest.StashKey[Costs]()
