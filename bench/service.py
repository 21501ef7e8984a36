"""The service over HTTP against an echo of the same server, the size of its log, and the time of a restart."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
from load import Load, merged, request, run
from rows import Row, verdict

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.log_interface import Ticket
from latecomer.service.messages import Conversion
from latecomer.service.storage.rows import read_remaining_rows
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store

CONNECTIONS, ARMS = 64, 10
BLOCKS, SECONDS = 50, 0.4
RATIOS = {5: 0.40, 50: 0.35}
"""By dimension, the share of the echo's rate. The echo takes 54 µs of processor time a request."""
TAIL = 8.0
BATCH, BATCH_RATE = 1000, 50_000
SPEC = {"policy": "OTFLinTS", "log_offers": False}
"""The paper's policy."""
DEFAULTS = {"p": {"parameters": {"floor": 0, "draws": 1}, "log_offers": False}, "d": {}}
"""The default policy without propensities and offers, and as it is."""
WITH_PROPENSITIES = 0.6
"""The share of decisions a second that propensities and logged offers leave, at least."""
PENDING = (10_000, 100_000, 1_000_000)
RESTART = 2.0
CONVERTED = 20
"""One of so many decisions converts."""
MEMORY = Path("/dev/shm")  # noqa: S108 - where there is one, a million commits take minutes and not a quarter of an hour


def rows() -> Iterator[Row]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as generator:  # the load has a process of its own
        for dim in RATIOS:
            with TemporaryDirectory() as folder:
                store_path = Path(folder) / "a.db"
                with run_echo_server(store_path) as server:
                    yield from _over_http(server, generator, dim)
                    rounds = server.http.get("/v1/bandits/b/stats").json()["rounds"]
                yield _bytes(store_path, rounds, dim)
            with TemporaryDirectory() as folder, run_echo_server(Path(folder) / "a.db") as server:
                yield _by_default(server, generator, dim, Path(folder) / "a.db")
    yield _restarts()


class EchoServer:
    """A server with an echo."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)


@contextmanager
def run_echo_server(store_path: Path) -> Iterator[EchoServer]:
    command = [sys.executable, str(Path(__file__).with_name("echo.py")), str(store_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        served = EchoServer(json.loads(process.stderr.readline())["port"])
        try:
            yield served
        finally:
            served.http.close()
            process.terminate()
            process.communicate(timeout=60)


def _over_http(server: EchoServer, generator: ProcessPoolExecutor, dim: int) -> Iterator[Row]:
    server.http.put("/v1/bandits/b", json={"dim": dim, "window": "7d", **SPEC}).raise_for_status()
    paths = {"echo": "/v1/bandits/b/echo", "decisions": "/v1/bandits/b/decisions"}
    loads = _run_in_turn(server, generator, dim, paths, BLOCKS)
    yield _rate(loads, dim)
    yield _tail(loads, dim)
    if dim == min(RATIOS):
        ids = [json.loads(body)["decision_id"] for body in merged(loads["decisions"])]
        yield measure_conversions(server.port, generator, "b", ids)


def _run_in_turn(
    server: EchoServer, generator: ProcessPoolExecutor, dim: int, paths: dict[str, str], blocks: int
) -> dict[str, list[Load]]:
    """Send decisions to one path after the other, block by block; the first block of each warms up."""
    bodies = [json.dumps({"actions": rows.tolist()}).encode() for rows in make_action_sets(dim, 50)]
    loads: dict[str, list[Load]] = {side: [] for side in paths}
    for block in range(blocks + 1):
        for side, path in paths.items():
            load = generator.submit(
                run, server.port, [request(path, body) for body in bodies], connections=CONNECTIONS, seconds=SECONDS
            ).result()
            if block:
                loads[side].append(load)
    return loads


def _by_default(server: EchoServer, generator: ProcessPoolExecutor, dim: int, store_path: Path) -> Row:
    """Compare the default policy as it is, with propensities and offers in the log, with itself without them."""
    for name, spec in DEFAULTS.items():
        server.http.put(f"/v1/bandits/{name}", json={"dim": dim, "window": "7d", **spec}).raise_for_status()
    paths = {name: f"/v1/bandits/{name}/decisions" for name in DEFAULTS}
    loads = _run_in_turn(server, generator, dim, paths, BLOCKS // 2)
    ratio = median(known.rate / plain.rate for known, plain in zip(loads["d"], loads["p"], strict=True))
    best = {name: max(load.rate for load in blocks) for name, blocks in loads.items()}
    each = {name: _count_bytes(store_path, number) for number, name in enumerate(DEFAULTS, start=1)}
    return Row(
        work=f"the default policy with propensities and offers, K={ARMS}, d={dim}",
        measured=f"{ratio:.2f} of the decisions without",
        must_reach=f">= {WITH_PROPENSITIES:g} of them",
        verdict=verdict(ratio >= WITH_PROPENSITIES),
        detail=f"the median of {BLOCKS // 2} pairs of blocks; the fastest {best['d']:,.0f} and {best['p']:,.0f} a "
        f"second, {each['d']:.0f} and {each['p']:.0f} bytes a decision in the log; floor 0.02, 64 draws, fresh offers",
    )


def _count_bytes(store_path: Path, number: int) -> float:
    """Return the mean length of a decision's events in a bandit's rows."""
    with closing(connect(store_path, write=False)) as connection:
        rows = list(read_remaining_rows(connection, number))
    return sum(len(row.payload) for row in rows) / max(row.rounds for row in rows)


def make_action_sets(dim: int, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    sets = np.random.default_rng(0).random((count, ARMS, dim))
    return np.asarray(sets / np.linalg.norm(sets, axis=2, keepdims=True) * (1 - 1e-9))


def _rate(loads: dict[str, list[Load]], dim: int) -> Row:
    best = {side: max(load.rate for load in blocks) for side, blocks in loads.items()}
    ratio = median(
        decisions.rate / echo.rate for decisions, echo in zip(loads["decisions"], loads["echo"], strict=True)
    )  # of neighbours: the machine's own speed changes from second to second, and the fastest of each may be far apart
    return Row(
        work=f"durable decisions over HTTP, OTFLinTS, K={ARMS}, d={dim}",
        measured=f"{ratio:.2f} of an echo",
        must_reach=f">= {RATIOS[dim]:g} of an echo",
        verdict=verdict(ratio >= RATIOS[dim]),
        detail=f"the median of {BLOCKS} pairs of blocks of {SECONDS:g} s, one after the other; {CONNECTIONS} "
        f"connections. The fastest block: {best['decisions']:,.0f} a second, the echo's {best['echo']:,.0f}, ratio "
        f"{best['decisions'] / best['echo']:.2f}. The echo is a route of the same server that reads a body as "
        f"a decision does and sends it back",
    )


def _tail(loads: dict[str, list[Load]], dim: int) -> Row:
    p99 = {side: median(load.quantile(0.99) for load in blocks) for side, blocks in loads.items()}
    typical = {side: median(load.quantile(0.5) for load in blocks) for side, blocks in loads.items()}
    ratio = p99["decisions"] / p99["echo"]
    return Row(
        work=f"their 99th percentile, d={dim}",
        measured=f"{ratio:.2f} times the echo's",
        must_reach=f"<= {TAIL:g} times the echo's",
        verdict=verdict(ratio <= TAIL),
        detail=f"{p99['decisions'] * 1e3:.1f} ms and {p99['echo'] * 1e3:.1f} ms; "
        f"medians {typical['decisions'] * 1e3:.1f} ms and {typical['echo'] * 1e3:.1f} ms; the median block of each",
    )


def _bytes(store_path: Path, decisions: int, dim: int) -> Row:
    """Measure the file after a clean stop, which merges the write-ahead log into it."""
    each, limit = store_path.stat().st_size / decisions, 1.6 * (8 * dim + 64)
    return Row(
        work=f"bytes on disk a decision, d={dim}",
        measured=f"{each:.0f} bytes",
        must_reach=f"<= {limit:.0f} bytes",
        verdict=verdict(each <= limit),
        detail=f"the store after {decisions:,} decisions and a clean stop, its snapshot included"
        + (", and their conversions" if dim == min(RATIOS) else ""),
    )


def measure_conversions(port: int, generator: ProcessPoolExecutor, bandit: str, ids: list[str], *, on: str = "") -> Row:
    Random(0).shuffle(ids)  # noqa: S311
    parts = [ids[start : start + BATCH] for start in range(0, len(ids) - BATCH + 1, BATCH)]
    path = f"/v1/bandits/{bandit}/conversions"
    requests = [request(path, json.dumps([{"decision_id": i} for i in part]).encode()) for part in parts]
    load = generator.submit(run, port, requests, connections=8, seconds=60, once=True).result()
    judged = [verdict_ for body in load.bodies for verdict_ in json.loads(body)["verdicts"]]
    assert set(judged) == {"accepted"}, set(judged)
    rate = len(judged) / load.seconds
    return Row(
        work=f"durable conversions in batches of {BATCH:,}{on}",
        measured=f"{rate:,.0f} a second",
        must_reach=f">= {BATCH_RATE:,} a second",
        verdict=verdict(rate >= BATCH_RATE),
        detail=f"{len(judged):,} conversions of as many decisions, shuffled, 8 connections, {load.seconds:.2f} s",
    )


def _restarts() -> Row:
    """Measure the time to the first decision after a clean stop or a kill, with many decisions pending."""
    seconds = {}
    for kind, decide in (("committed together", decide_together), ("each a commit of its own", _decide_one_by_one)):
        with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            path = Path(folder) / "a.db"
            with Store.open(path) as store:
                store.create("b", BanditSpec(dim=5, window="7d"))
                store.registry.get("b").policy.state.prepare(PENDING[-1])  # as a server has it in the background
            for pending in PENDING:
                with Store.open(path) as store:
                    decide(store, pending - store.stats("b").rounds)
                seconds[f"{pending:,} {kind}"] = _restart(path)
            seconds[f"a server, from its command on, {kind}"] = _restart_server(path)
            killed = get_context("spawn").Process(
                target=_decide_until_killed, args=(path, decide, PENDING[-1] // 4 - 1000)
            )
            killed.start()
            killed.join()
            seconds[f"killed before the next snapshot, {kind}"] = _restart(path)
    with TemporaryDirectory() as folder:
        nothing = _restart_server(Path(folder) / "a.db")
    worst = max(taken for what, taken in seconds.items() if "server" not in what)
    return Row(
        work=f"restart with {PENDING[-1]:,} decisions pending",
        measured=f"{worst:.2f} s",
        must_reach=f"< {RESTART:g} s",
        verdict=verdict(worst < RESTART),
        detail="opening the store and a durable decision, every decision with ids, a twentieth of them converted: "
        + ", ".join(f"{what} {taken:.2f} s" for what, taken in seconds.items())
        + f"; with an empty store {nothing:.2f} s",
    )


def _restart(path: Path) -> float:
    start = time.perf_counter()
    with Store.open(path) as store:
        decide_together(store, 1)
        return time.perf_counter() - start


def _restart_server(path: Path) -> float:
    start = time.perf_counter()
    with run_echo_server(path):
        return time.perf_counter() - start


def _decide_until_killed(path: Path, decide: Callable[[Store, int], None], count: int) -> None:
    store = Store.open(path)
    decide(store, count)
    os.kill(os.getpid(), signal.SIGKILL)


def decide_together(store: Store, count: int) -> None:
    for commit in _commits(store, count):
        latest = commit
    store.wait(latest)


def _decide_one_by_one(store: Store, count: int) -> None:
    """Decide and wait for each commit, as one thread of `lc.open` does."""
    for commit in _commits(store, count):
        store.wait(commit)


def _commits(store: Store, count: int) -> Iterator[Ticket]:
    actions, ids = make_action_sets(5, 1)[0], [f"offer {i}" for i in range(ARMS)]
    for i in range(count):
        answer, commit = store.decide("b", actions, ids)
        yield commit
        if i % CONVERTED == 0:
            yield store.convert("b", [Conversion(answer.decision_id)])[1]
