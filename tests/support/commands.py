"""`latecomer` in a process of its own that is forked, not started: its exit code, and what it wrote."""

import os
import time
from pathlib import Path

import fork_server

LIMIT = 60.0


class Command:
    """A running `latecomer`, in a folder; what it wrote is there once it has ended and `wait` has returned."""

    def __init__(self, *arguments: str, folder: Path, **environment: str) -> None:
        self._written: tuple[int, ...] = os.memfd_create("stdout"), os.memfd_create("stderr")
        self.stdout = self.stderr = ""
        self.process = fork_server.start(
            list(arguments),
            stderr=self._written[1],
            stdout=self._written[0],
            environment={**os.environ, **environment},
            folder=folder,
        )

    def is_running(self) -> bool:
        """Tell if it has not ended."""
        return self.process.poll() is None

    def await_line(self) -> str:
        """Wait for a whole line on standard error; return it."""
        end = time.monotonic() + LIMIT
        while "\n" not in (said := _read(self._written[1])):
            assert time.monotonic() < end, f"it wrote no line: {said!r}"
            time.sleep(0.01)
        return said.splitlines()[0]

    def wait(self) -> int:
        """Wait for the end, and end it where that takes too long; return the exit code."""
        try:
            return self.process.wait(LIMIT)
        finally:
            self.end()

    def end(self) -> None:
        """Kill it where it still runs; take what it wrote."""
        if self._written:
            self.process.kill()
            self.process.wait(LIMIT)
            self.stdout, self.stderr = map(_read, self._written)
            for descriptor in self._written:
                os.close(descriptor)
            self._written = ()


def _read(descriptor: int) -> str:
    """Read from the beginning, and leave the writer's place as it is."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()


def run_command(*arguments: str, folder: Path, **environment: str) -> Command:
    """Run `latecomer` with these arguments to its end."""
    command = Command(*arguments, folder=folder, **environment)
    command.wait()
    return command
