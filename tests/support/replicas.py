"""Replicas for tests: `latecomer serve` on one database, each a process of its own, killed and started at will."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import fork_server
import httpx
from free_ports import free_port
from history import History, read_log
from history_checker import check_history
from replica_load import BANDIT
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.client.certificates import trusted_certificates
from latecomer.service.messages import BanditStats
from latecomer.service.store import Store

START_LIMIT, STOP_LIMIT, STEP = 60.0, 20.0, 0.02
KEPT = {"LATECOMER_CACHE_DIR"}
"""Variables of the tests that a replica has too; none of the user's."""
PLAIN = {"LATECOMER_COMPILE": "never"}
"""Plain Python, to the same bits: a replica that lives for a second does not load machine code. Soaks do."""
COMPARED = (
    "rounds",
    "pending",
    "conversions",
    "revocations",
    "before_decision",
    "theta_hat",
    "width",
    "pending_width",
    "delay_counts",
    "delay_sum",
)
"""Statistics that follow from the log alone, where the window is a number of rounds."""


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until the condition holds, for so many seconds at most; return whether it does."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(STEP)
    return holds


def run_cli(*arguments: object) -> str:
    """Run a command of `latecomer` in this process; return what it prints. It must succeed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, f"latecomer {' '.join(map(str, arguments))}: {result.output} {result.exception!r}"
    return result.output


class Replica:
    """A running server. It keeps its port when it is started again."""

    def __init__(
        self,
        store: str | Path,
        folder: Path,
        *arguments: str,
        name: str = "a",
        clock_ahead: float = 0.0,
        **environment: str,
    ) -> None:
        self.store, self.name, self.port = str(store), name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = folder / f"{name}-{self.port}.log"
        self._arguments, self._environment, self._clock_ahead = arguments, environment, clock_ahead
        self.pid = 0
        self.http = httpx.Client(base_url=self.url, timeout=60, verify=trusted_certificates())

    # ---- its life ----

    def start(self, *, wait: bool = True) -> None:
        """Start the server; wait until it is ready, unless told otherwise."""
        assert not self.pid, f"replica {self.name} runs already"
        arguments = ["serve", "--port", str(self.port), *self._arguments]
        if "LATECOMER_STORE" not in self._environment:
            arguments += ["--store", self.store]
        kept = {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith("LATECOMER_")}
        with self.log_file.open("ab") as log:
            self._process = fork_server.start(
                arguments,
                stderr=log.fileno(),
                environment={**kept, **PLAIN, **self._environment},
                folder=self.log_file.parent,
                clock_ahead=self._clock_ahead,
            )
        self.pid = self._process.pid
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until /readyz says yes."""
        end = time.monotonic() + START_LIMIT
        while not self.is_ready():
            assert self._poll() is None, f"replica {self.name} has ended: {self.log}"
            assert time.monotonic() < end, f"replica {self.name} is not ready: {self.log}"
            time.sleep(STEP)

    def is_ready(self) -> bool:
        """Tell whether /readyz says yes."""
        return self.status("/readyz") == 200

    def status(self, path: str, *, timeout: float = 10.0) -> int | None:
        """Return the status of a path; None where there is no answer."""
        try:
            return self.http.get(path, timeout=timeout).status_code
        except httpx.TransportError:
            return None

    def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.begin_stop()
        return self.wait_for_end()

    def begin_stop(self) -> None:
        """Send SIGTERM, once: a second one ends a server that is still draining."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)
        self.wait_for_end()

    def freeze(self) -> None:
        """Send SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid:
            os.kill(self.pid, number)  # its end has not been seen yet, so the id is still its own

    def wait_for_end(self) -> int:
        """Return the exit code of a server that was told to end."""
        if not self.pid:
            return 0
        code = self._await_end()
        if code is None:
            os.kill(self.pid, signal.SIGKILL)
            assert self._await_end() is not None
            raise AssertionError(f"replica {self.name} did not stop: {self.log}")
        return code

    def _await_end(self) -> int | None:
        end = time.monotonic() + STOP_LIMIT
        while (code := self._poll()) is None and time.monotonic() < end:
            time.sleep(STEP)
        return code

    def _poll(self) -> int | None:
        """Return the exit code of a process that has ended, once; None while it runs."""
        code = self._process.poll()
        if code is not None:
            self.pid = 0
        return code

    def close(self) -> None:
        """End it, however it is."""
        try:
            if self.pid:
                self.resume()
                self.kill()
        finally:
            self.http.close()

    # ---- its answers ----

    @property
    def log(self) -> str:
        """The lines of its log."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    def client(self, **arguments: Any) -> lc.Client:
        """Return a client of this replica alone."""
        return lc.Client(self.url, **arguments)

    def stats(self, bandit: str) -> dict[str, Any]:
        """Return the statistics that follow from the log."""
        answer = self.http.get(f"/v1/bandits/{bandit}/stats")
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return {name: found[name] for name in COMPARED}


def init_store(url: str) -> str:
    """Create the schema in an empty database; return its address."""
    run_cli("store", "init", url)
    return url


@contextmanager
def run_replicas(
    store: str, folder: Path, count: int = 3, *arguments: str, **environment: str
) -> Iterator[list[Replica]]:
    """Run replicas on one database for the length of a block."""
    with ExitStack() as stack:
        replicas = [
            Replica(store, folder, *arguments, name=name, clock_ahead=0.0, **environment) for name in "abcdef"[:count]
        ]
        for replica in replicas:
            stack.callback(replica.close)
        for replica in replicas:
            replica.start(wait=False)
        for replica in replicas:
            replica.wait_until_ready()
        yield replicas


def agree(replicas: Sequence[Replica], bandit: str) -> dict[str, Any]:
    """Wait until the replicas have the same statistics, to the last bit; return them."""
    found: list[dict[str, Any]] = []

    def same() -> bool:
        found[:] = [replica.stats(bandit) for replica in replicas]
        return all(stats == found[0] for stats in found)

    assert wait_for(same, 10.0), f"the replicas disagree: {found}"
    return found[0]


def stop_and_check(
    history: History, replicas: Sequence[Replica], store: str, folder: Path, bandit: str = BANDIT
) -> None:
    """Check what clients saw against the log, stop the replicas, and check that all ways lead to the same bits."""
    check_history(history, read_log(store, bandit))
    stats = agree(replicas, bandit)
    stop_all(replicas)
    check_bits(store, bandit, stats, folder)


def stop_all(replicas: Sequence[Replica]) -> None:
    """Stop replicas at the same time; each must end in good order."""
    for replica in replicas:
        replica.begin_stop()
    for replica in replicas:
        assert replica.wait_for_end() == 0, replica.log


def check_bits(store: str, bandit: str, expected: dict[str, Any], folder: Path) -> None:
    """Check that a recovery, a replay and a copy of the log all end with these statistics, and that it is whole.

    No replica runs meanwhile.
    """
    assert run_cli("log", "verify", store).splitlines()[-1] == "whole"
    with lc.open(store, name=bandit) as opened:
        assert _select(opened.stats()) == expected, "a process that opens the database has other statistics"
    replayed, copy = f"{bandit}-replayed", folder / f"{bandit}-copy.db"
    run_cli("log", "replay", store, "--bandit", bandit, "--into", replayed)
    run_cli("store", "copy", store, copy)
    assert run_cli("log", "verify", copy).splitlines()[-1] == "whole"
    with Store.open(copy) as copied:
        assert _select(copied.stats(bandit)) == expected, "a copy has other statistics"
        assert _select(copied.stats(replayed)) == expected, "a replay has other statistics"
        first, second = (copied.registry.bandits[name].policy for name in (bandit, replayed))
        assert first.V.tobytes() == second.V.tobytes()
        assert first.B.tobytes() == second.B.tobytes()
        assert first.rng.state() == second.rng.state()


def _select(stats: BanditStats) -> dict[str, Any]:
    return {name: getattr(stats, name) for name in COMPARED}
