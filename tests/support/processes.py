"""Python code in a process of its own."""

import subprocess
import sys
from pathlib import Path


def run_python(code: str, *arguments: str | Path, timeout: float = 120.0) -> str:
    """Run code in a fresh interpreter that must succeed; return what it prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)  # noqa: S603
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
