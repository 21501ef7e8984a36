"""A Dask scheduler and workers, as processes of their own, forked by one that has imported what they need."""

import json
import multiprocessing
import os
import runpy
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Self

TIMEOUT = 120.0
"""Seconds for anything that must happen at all: the first run ever compiles, on a machine that may be busy."""

IMPORTED = ["distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "latecomer.simulation.simulate", "polars"]
"""The modules of schedulers and workers, imported once for all: that takes longer than most of their work."""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@cache
def _forks() -> Any:
    """Return what starts processes: a server that forks, and ends with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def _run(role: str, options: list[str], folder: Path, log: Path) -> None:
    """Be a scheduler or a worker, as `python -m` starts it: in a folder, without the tests on the path."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    tests = str(Path(__file__).parents[1])
    sys.path = [path for path in sys.path if not path.startswith(tests)]
    os.chdir(folder)
    sys.argv = [f"dask-{role}", *options]
    runpy.run_module(f"distributed.cli.dask_{role}", run_name="__main__")


class Machine:
    """A process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, role: str, options: list[str], folder: Path, log: Path) -> None:
        self._process = _forks().Process(target=_run, args=(role, options, folder, log))
        self._process.start()

    def kill(self) -> None:
        self._process.kill()

    def poll(self) -> int | None:
        """Return the exit code of a process that has ended."""
        code: int | None = self._process.exitcode
        return code

    def wait(self, timeout: float) -> int | None:
        """Wait for the end; return the exit code."""
        self._process.join(timeout)
        return self.poll()


class Machines:
    """A scheduler and its workers on the loopback; every process that was started is ended by its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[Machine] = []
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
            assert process.wait(TIMEOUT) is not None

    def _start(self, role: str, *options: str) -> Machine:
        options += ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
        # The environment has the tests' LATECOMER_CACHE_DIR: nothing is compiled twice.
        log = self.folder / f"{role}-{len(self.processes)}.log"
        process = Machine(role, list(options), self.folder, log)
        self.processes.append(process)
        return process

    def work(self, *options: str) -> Machine:
        one_thread = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--death-timeout", "120"]
        return self._start("worker", self.address, *one_thread, "--local-directory", str(self.folder), *options)
