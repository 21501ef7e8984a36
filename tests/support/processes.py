"""Python code in a process of its own."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def run_python(code: str, *arguments: str | Path, timeout: float = 120.0) -> str:
    """Run code in a fresh interpreter that must succeed; return what it prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)  # noqa: S603
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def children_of(process: int) -> list[int]:
    """Return the ids of the processes that a process has started and not yet seen the end of."""
    children: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # a process that has ended
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
                children += map(int, task.read_text().split())
    return children


def is_running(process: int) -> bool:
    """Tell whether a process is there and has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
