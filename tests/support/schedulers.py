"""A Dask scheduler and workers, as processes of their own."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

TIMEOUT = 120.0
"""Seconds for anything that must happen at all: the first run ever compiles, on a machine that may be busy."""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


class Machines:
    """A scheduler and its workers on the loopback; every process that was started is ended by its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> Self:
        contact = self.folder / "scheduler.json"
        try:
            # The time limits are for a test process that is itself killed: then all this ends by itself.
            self._start("scheduler", "--port", "0", "--idle-timeout", "600", "--scheduler-file", str(contact))
            wait_until(lambda: contact.exists() and contact.read_text().endswith("}"))
        except BaseException:
            self.__exit__()
            raise
        self.address = json.loads(contact.read_text())["address"]
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait(TIMEOUT)

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *options]
        command += ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        with (self.folder / f"{role}-{len(self.processes)}.log").open("wb") as log:
            # The environment has the tests' LATECOMER_CACHE_DIR: nothing is compiled twice.
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)  # noqa: S603
        self.processes.append(process)
        return process

    def work(self, *options: str) -> subprocess.Popen[bytes]:
        one_thread = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--death-timeout", "120"]
        return self._start("worker", self.address, *one_thread, "--local-directory", str(self.folder), *options)
