"""Conversions reported many times by many clients, and servers killed under load: exact counts, exact sums."""

import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from servers import Server, error_of, run_server, wait_until

import latecomer as lc
from latecomer.errors import ServiceError, StoreError
from latecomer.service.messages import Conversion
from latecomer.service.store import Store

T = TypeVar("T")
CLIENTS = 8
DIM, ARMS = 2, 10


def action_sets(seed: int, count: int) -> np.ndarray:
    sets = np.random.default_rng(seed).random((count, ARMS, DIM))
    return np.asarray(sets / np.linalg.norm(sets, axis=2, keepdims=True) * (1 - 1e-9))


def together(works: list[Callable[[], None]]) -> None:
    """Call each function in a thread of its own; raise what one of them raises."""
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


class Ledger:
    """The acknowledged events, and the statistics that follow from it, straight from the definitions."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.actions: dict[str, np.ndarray] = {}
        self.values: dict[str, float] = {}

    def decided(self, decision_id: str, action: np.ndarray) -> None:
        with self.lock:
            assert decision_id not in self.actions, "two requests, one decision"
            self.actions[decision_id] = action

    def converted(self, decision_id: str, value: float) -> None:
        with self.lock:
            self.values[decision_id] = value

    def check(self, store_path: Path, *, tolerance: float) -> None:
        """Against the store itself."""
        with Store.open(store_path) as store:
            policy = store.registry.bandits["b"].policy
            stats = store.stats("b")
        A = np.array(list(self.actions.values()))
        values = np.array([self.values.get(decision_id, 0.0) for decision_id in self.actions])
        V, B = np.eye(DIM) + A.T @ A, A.T @ values
        assert stats.rounds == len(self.actions)
        assert stats.conversions["accepted"] == len(self.values)
        assert np.abs(policy.V - V).max() <= tolerance * np.abs(V).max()
        assert np.abs(policy.B - B).max() <= tolerance * np.abs(B).max()


def flood(folder: Path, decisions: int, compiling: str) -> None:
    ledger, rng = Ledger(), random.Random(0)  # noqa: S311
    sets = action_sets(0, decisions)
    with run_server(folder / "a.db", LATECOMER_COMPILE=compiling) as server:
        with server.client(timeout=60) as client:
            client.create("b", dim=DIM, window=10**9, parameters={"ridge": 1.0})

        def decide(part: range) -> None:
            with server.client() as client:
                for i in part:
                    answer = client.decide("b", sets[i])
                    ledger.decided(answer.decision_id, sets[i][answer.index])

        together([partial(decide, range(k, decisions, CLIENTS)) for k in range(CLIENTS)])
        messages = []
        for decision_id in ledger.actions:
            value = rng.random()
            ledger.converted(decision_id, value)
            messages += [Conversion(decision_id, value)] * rng.randint(1, 10)
        rng.shuffle(messages)
        verdicts: list[lc.Verdict] = []

        def convert(part: list[Conversion]) -> None:
            found: list[lc.Verdict] = []
            sizes, start = random.Random(len(part)), 0  # noqa: S311
            with server.client() as client:
                while start < len(part):
                    size = sizes.choice((1, 10, 1000))
                    found += client.convert_many("b", part[start : start + size])
                    start += size
            verdicts.extend(found)

        together([partial(convert, messages[k::CLIENTS]) for k in range(CLIENTS)])
        counts = Counter(verdicts)
        assert counts == {lc.Verdict.ACCEPTED: decisions, lc.Verdict.DUPLICATE: len(messages) - decisions}
        stats = server.http.get("/v1/bandits/b/stats").json()
        assert stats["conversions"] == {
            "accepted": decisions,
            "duplicate": len(messages) - decisions,
            "late": 0,
            "unknown": 0,
        }
    ledger.check(folder / "a.db", tolerance=1e-12)


def test_conversions_many_times_in_any_order_from_many_clients(tmp_path: Path) -> None:
    flood(tmp_path, 160, "never")


@pytest.mark.soak
def test_a_hundred_thousand_conversions(tmp_path: Path) -> None:
    """As users run it: machine code takes over in the background, under load."""
    flood(tmp_path, 100_000, "auto")


def insisted(call: Callable[[], T]) -> T:
    """Retry without waiting longer each time: hundreds of restarts should not take hours."""
    end = time.monotonic() + 60
    while True:
        try:
            return call()
        except (ServiceError, StoreError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def killed(folder: Path, cycles: int, compiling: str) -> None:
    """Clients go on through every kill, with the same request ids: all that they ask is acknowledged in the end."""
    ledger, store_path, over = Ledger(), folder / "a.db", threading.Event()
    server = Server(store_path, LATECOMER_COMPILE=compiling)
    try:
        port, url = server.port, server.url
        server.http.put("/v1/bandits/b", json={"dim": DIM, "window": 10**9, "parameters": {"ridge": 1.0}})

        def ask(number: int) -> None:
            sets, i = action_sets(number, 200), 0
            rng = random.Random(number)  # noqa: S311
            with lc.Client(url, retries=0, timeout=20) as client:
                while not over.is_set():
                    actions = sets[i % 200]
                    answer = insisted(partial(client.decide, "b", actions, request_id=f"{number}-{i}"))
                    ledger.decided(answer.decision_id, actions[answer.index])
                    if rng.random() < 0.5:
                        verdict = insisted(partial(client.convert, "b", answer.decision_id, value=0.5))
                        assert verdict in (lc.Verdict.ACCEPTED, lc.Verdict.DUPLICATE)  # the second where it was resent
                        ledger.converted(answer.decision_id, 0.5)
                    i += 1

        def has_decided(count: int) -> bool:
            return len(ledger.actions) >= count

        def kill() -> None:
            nonlocal server
            moments = random.Random(1)  # noqa: S311
            try:
                for _ in range(cycles):
                    enough = len(ledger.actions) + 30
                    assert wait_until(partial(has_decided, enough))
                    time.sleep(moments.random() * 0.3)
                    server.kill()
                    server = Server(store_path, port=port, LATECOMER_COMPILE=compiling)
            finally:
                over.set()

        together([kill, *(partial(ask, n) for n in range(CLIENTS))])
    finally:
        server.stop()
    ledger.check(store_path, tolerance=1e-9)


def test_a_server_that_is_killed_loses_and_repeats_nothing(tmp_path: Path) -> None:
    killed(tmp_path, 2, "never")


@pytest.mark.soak
def test_a_server_that_is_killed_three_hundred_times(tmp_path: Path) -> None:
    """Kill a server; tests/service/storage/test_kill.py kills a thousand stores, which start faster."""
    killed(tmp_path, 300, "auto")


def test_a_full_disk_is_a_503_until_there_is_room_again(tmp_path: Path) -> None:
    """The kernel refuses the server's writes, as a full disk would, and then no longer."""
    sets = action_sets(0, 4)
    with run_server(tmp_path / "a.db") as server, server.client(retries=0) as client:
        client.create("b", dim=DIM, window=1000)
        first = client.decide("b", sets[0])
        unlimited = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
        for _ in range(2):
            with pytest.raises(StoreError, match="the log cannot be written"):
                client.decide("b", sets[1], request_id="while it was full")
        with pytest.raises(StoreError):
            client.convert("b", first.decision_id)
        refused = server.http.get("/readyz")
        assert (refused.status_code, error_of(refused)["code"]) == (503, "unavailable")
        assert refused.headers["retry-after"] == "1"
        assert server.http.get("/healthz").status_code == 200
        assert len(server.logged("the store cannot be written")) == 1
        made, gone = {"dim": DIM, "window": 1000}, "/v1/bandits/b?confirm=b"
        for _ in range(2):  # neither is answered before it is durable, however often it is requested
            assert server.http.put("/v1/bandits/new", json=made).status_code == 503
        assert server.http.put("/v1/bandits/b", json=made).status_code == 200
        assert client.stats("b").conversions["accepted"] == 0  # reads go on
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        with server.client(retries=20) as retrying:
            answer = retrying.decide("b", sets[1], request_id="while it was full")
            assert retrying.decide("b", sets[1], request_id="while it was full") == answer
            assert retrying.convert("b", first.decision_id) is lc.Verdict.ACCEPTED
        assert server.http.get("/readyz").status_code == 200
        assert client.stats("b").rounds == answer.round == 2
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
        for path, status in (
            ("/v1/bandits/new", 404),
            (gone, 503),
            (gone, 503),
            ("/v1/bandits/none?confirm=none", 503),
        ):
            method = "DELETE" if "?" in path else "GET"
            assert server.http.request(method, path).status_code == status, path
        server.kill()
    with run_server(tmp_path / "a.db") as server:
        assert [info["name"] for info in server.http.get("/v1/bandits").json()["bandits"]] == ["b"]
