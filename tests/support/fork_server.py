"""A process that has loaded everything and forks `latecomer serve`: a server of a test starts in a few milliseconds.

`start` asks for one; run as a script, this is the process that forks. A server's arguments, environment, folder, limit
of open files and standard error are its own, as if it had been started alone.
"""

import atexit
import gc
import importlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from played_clock import follow_clock

LOADED = (
    "latecomer.cli.main",
    "latecomer.service.http.logging_setup",
    "latecomer.service.http.server",
    "latecomer.service.http.key_table",
    "latecomer.service.replicated_store",
    "opentelemetry.trace",
    "scipy.special",
    "uvloop",
)
"""The modules that `latecomer serve` imports before it listens, or as soon as it does."""

LONGEST_ORDER = 1 << 17


class ForkedProcess:
    """A forked server, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, None

    def poll(self) -> int | None:
        """Return the exit code of a process that has ended."""
        if self.returncode is None:
            self.returncode = _forks().ask({"poll": self.pid})["code"]
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the end; return the exit code."""
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(["latecomer", "serve"], timeout)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to a process that has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    arguments: list[str],
    *,
    stderr: int,
    stdout: int | None = None,
    environment: dict[str, str],
    folder: Path,
    clock_ahead: float = 0.0,
    clock: Path | None = None,
) -> ForkedProcess:
    """Fork a process that runs `latecomer` with these arguments; `stderr` and `stdout` are descriptors.

    `clock_ahead` shifts the machine's clocks as that process sees them: the wall clock, and the time since the start of
    the machine. Its timeouts are measured by another clock, and are as long as ever. `clock` is the file of a clock
    that is played (played_clock.py).
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    order: dict[str, Any] = {
        "arguments": arguments,
        "environment": environment,
        "folder": str(folder),
        "open files": limit,
    }
    order["clock_ahead"], order["clock"] = clock_ahead, None if clock is None else str(clock)
    descriptors = [stderr] if stdout is None else [stderr, stdout]
    return ForkedProcess(_forks().ask(order, *descriptors)["pid"])


class _Forks:
    """The process that forks, as its parent sees it. It ends, and its servers with it, when this one does."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])  # noqa: S603
        theirs.close()
        atexit.register(self._end)

    def ask(self, order: dict[str, Any], *descriptors: int) -> dict[str, Any]:
        """Send an order, and descriptors with it; return the answer."""
        with self._lock:
            socket.send_fds(self._channel, [json.dumps(order).encode()], descriptors)
            answer: dict[str, Any] = json.loads(self._channel.recv(LONGEST_ORDER))
        return answer

    def _end(self) -> None:
        self._channel.close()
        self._process.wait(30)


@cache
def _forks() -> _Forks:
    return _Forks()


def main() -> None:
    """Fork and poll as ordered, until the channel is closed; in a forked process, be the server."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    for module in LOADED:
        importlib.import_module(module)
    _parse_a_command()
    gc.collect()
    gc.freeze()  # what has been imported stays: no server looks through it, which would copy all of it
    running: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, LONGEST_ORDER, 2)
        if not message:
            break
        order = json.loads(message)
        if "poll" in order:
            found, status = os.waitpid(order["poll"], os.WNOHANG)
            running.discard(found)
            answer = {"code": os.waitstatus_to_exitcode(status) if found else None}
        else:
            pid = os.fork()
            if pid == 0:
                channel.close()
                _serve(order, descriptors)
                return
            running.add(pid)
            for descriptor in descriptors:
                os.close(descriptor)
            answer = {"pid": pid}
        channel.sendall(json.dumps(answer).encode())
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _parse_a_command() -> None:
    """Have Typer import what it imports at the first command, a tenth of a second of each server's start."""
    from typer.testing import CliRunner

    from latecomer.cli.main import app

    assert CliRunner().invoke(app, ["serve", "--port", "none"]).exit_code == 2


def _serve(order: dict[str, Any], descriptors: list[int]) -> None:
    from latecomer.__main__ import main as run_latecomer

    for number, descriptor in zip((2, 1), descriptors, strict=False):  # standard error, standard output
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this process has inherited
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_NOFILE, tuple(order["open files"]))
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    if order["clock_ahead"]:
        _set_clocks_ahead(order["clock_ahead"])
    if order["clock"] is not None:
        follow_clock(order["clock"])
    sys.argv = ["latecomer", *order["arguments"]]
    try:
        run_latecomer()
    except SystemExit as end:
        _exit(end.code)
        raise


def _exit(code: Any) -> None:
    """End as a process does, but leave its memory as it is: to take that apart takes a quarter of a second."""
    if not isinstance(code, int | None):
        return
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def _set_clocks_ahead(seconds: float) -> None:
    """Shift the wall clock and the clock since the machine's start, for Python code that asks for them."""
    shifted = {time.CLOCK_REALTIME, time.CLOCK_BOOTTIME}
    nanoseconds = int(seconds * 10**9)
    wall, wall_ns, clock, clock_ns = time.time, time.time_ns, time.clock_gettime, time.clock_gettime_ns
    time.time = lambda: wall() + seconds
    time.time_ns = lambda: wall_ns() + nanoseconds
    time.clock_gettime = lambda clk_id: clock(clk_id) + (seconds if clk_id in shifted else 0.0)
    time.clock_gettime_ns = lambda clk_id: clock_ns(clk_id) + (nanoseconds if clk_id in shifted else 0)


if __name__ == "__main__":
    main()
