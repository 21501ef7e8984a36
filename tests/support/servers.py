"""Real servers for tests: `latecomer serve` in a process of its own, on a free port, ended by its process id."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import fork_server
import httpx

import latecomer as lc
from latecomer.client.certificates import trusted_certificates

START_LIMIT, STOP_LIMIT, WAIT_LIMIT = 60.0, 20.0, 60.0


def wait_until(condition: Callable[[], bool]) -> bool:
    """Wait until the condition holds, but not for ever; return whether it does."""
    end = time.monotonic() + WAIT_LIMIT
    while not (came := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return came


class Server:
    """A running server and the lines of its log."""

    def __init__(
        self,
        store: Path,
        *arguments: str,
        port: int = 0,
        at: str = "127.0.0.1",
        clock: Path | None = None,
        **environment: str,
    ) -> None:
        self.store, self._at = store, at
        command = ["serve", "--store", str(store), "--port", str(port), *arguments]
        kept = {"LATECOMER_CACHE_DIR", "LATECOMER_COMPILE"}  # those of the tests: no child process that compiles
        clean = {name: value for name, value in os.environ.items() if name in kept or not name.startswith("LATECOMER_")}
        log, theirs = os.pipe()
        self.process = fork_server.start(
            command, stderr=theirs, environment={**clean, **environment}, folder=store.parent, clock=clock
        )
        os.close(theirs)
        self._log = os.fdopen(log)
        self.lines: list[str] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.port = self._port()
        except BaseException:
            self.process.kill()
            self.process.wait(STOP_LIMIT)
            self._reader.join()
            raise
        self.url = f"http://{at}:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=60, verify=trusted_certificates())

    def _read(self) -> None:
        with self._log as stream:
            for line in stream:
                self.lines.append(line)

    def _port(self) -> int:
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end and self.process.poll() is None:
            for entry in self.logged("serving"):
                self._await_answer(int(entry["port"]), end)
                return int(entry["port"])
            time.sleep(0.02)
        self.process.kill()
        self._reader.join()
        raise AssertionError(f"the server did not start: {self.output}")

    def _await_answer(self, port: int, end: float) -> None:
        while time.monotonic() < end:
            try:
                httpx.get(f"http://{self._at}:{port}/healthz", verify=trusted_certificates()).raise_for_status()
                return
            except httpx.TransportError:
                time.sleep(0.02)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines with that event."""
        entries = [json.loads(line) for line in list(self.lines) if line.startswith("{")]
        return [entry for entry in entries if entry["event"] == event]

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def memory(self) -> int:
        """Resident bytes now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def client(self, **arguments: Any) -> lc.Client:
        """Return a client that waits as long as the tests do: others use this machine too."""
        return lc.Client(self.url, **{"timeout": WAIT_LIMIT, **arguments})

    def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_LIMIT)
            raise AssertionError(f"the server did not stop: {self.output}") from None
        finally:
            self.http.close()
        self._reader.join()
        return code


@contextmanager
def run_server(
    store: Path, *arguments: str, port: int = 0, clock: Path | None = None, **environment: str
) -> Iterator[Server]:
    """Run a server for the length of a block; `clock` is the file of one that is played (played_clock.py)."""
    server = Server(store, *arguments, port=port, at="127.0.0.1", clock=clock, **environment)
    try:
        yield server
    finally:
        server.stop()


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the error of an answer, after a check of its shape."""
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert {"code", "message"} <= set(error) <= {"code", "message", "field"}
    assert all(isinstance(value, str) and value for value in error.values())
    return error
