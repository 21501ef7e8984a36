"""Replicas on PostgreSQL against the server on a file, and against PostgreSQL's own rate of commits."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter

import httpx
from load import Load, merged, request, run
from rows import Row, verdict
from service import ARMS, MEMORY, decide_together, make_action_sets, measure_conversions

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from postgres_server import PostgresServer, cluster_folder, find_programs, run_postgres

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.replicated_store import ReplicatedStore
from latecomer.service.storage.postgres.connection import PostgresConnection
from latecomer.service.storage.postgres.schema import initialise
from latecomer.service.store import Store
from latecomer.service.tools.copy_store import copy_store

CONNECTIONS, BLOCKS, SECONDS, DIM = 64, 20, 0.5, 5
ONE, TWO, CATCH_UP = 0.6, 1.0, 5.0
EVENTS = 1_000_000
BANDITS = ("a", "b", "c", "d")
SPEC = {"dim": DIM, "window": "7d", "policy": "OTFLinTS", "log_offers": False}
FILE = "a file"


def rows() -> Iterator[Row]:
    with (
        cluster_folder(in_memory=False) as folder,
        run_postgres(folder / "main") as cluster,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as generator,
    ):
        yield from _decisions(cluster, generator)
        yield _catch_up(cluster)


@contextmanager
def _server(store: str | Path) -> Iterator[int]:
    """Run a server; give its port."""
    command = [sys.executable, str(Path(__file__).with_name("echo.py")), str(store)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        try:
            port = next(entry["port"] for line in process.stderr if (entry := json.loads(line))["event"] == "serving")
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                while http.get("/readyz").status_code != 200:
                    pass
                for name in BANDITS:
                    http.put(f"/v1/bandits/{name}", json=SPEC).raise_for_status()
            yield port
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _decisions(cluster: PostgresServer, generator: ProcessPoolExecutor) -> Iterator[Row]:
    bodies = [json.dumps({"actions": rows.tolist()}).encode() for rows in make_action_sets(DIM, 48)]
    requests = {
        count: [request(f"/v1/bandits/{BANDITS[i % count]}/decisions", body) for i, body in enumerate(bodies)]
        for count in (1, len(BANDITS))
    }
    sides: dict[tuple[str, int], list[int]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = stack.enter_context(_server(folder / "a.db"))
        database = cluster.create_database()
        initialise(database)
        replicas = [stack.enter_context(_server(database)) for _ in range(3)]
        for bandits in requests:
            sides[FILE, bandits] = [file]
            sides |= {(f"{count} replica{'s' * (count > 1)}", bandits): replicas[:count] for count in (1, 2, 3)}
        loads: dict[tuple[str, int], list[Load]] = {side: [] for side in sides}
        commits = []
        for block in range(BLOCKS + 1):
            for side, ports in sides.items():
                done = generator.submit(
                    run, ports, requests[side[1]], connections=CONNECTIONS, seconds=SECONDS
                ).result()
                if block:  # the first warms up
                    loads[side].append(done)
            if block % 4 == 0:
                commits.append(_commit_rate(cluster))
        detail = _describe(loads, commits)
        yield _compare("decisions of one replica on PostgreSQL", loads, ("1 replica", FILE), ONE, detail)
        yield _compare("decisions of two replicas on one bandit", loads, ("2 replicas", "1 replica"), TWO, "")
        ids = [json.loads(body)["decision_id"] for body in merged(loads["1 replica", 1])]
        yield measure_conversions(replicas[0], generator, BANDITS[0], ids, on=", one replica on PostgreSQL")


def _compare(work: str, loads: dict[tuple[str, int], list[Load]], of: tuple[str, str], least: float, more: str) -> Row:
    one, other = (loads[side, 1] for side in of)
    ratio = median(mine.rate / theirs.rate for mine, theirs in zip(one, other, strict=True))
    against = "the server's on a file" if of[1] == FILE else "one replica's"
    return Row(
        work=f"durable {work}, OTFLinTS, K={ARMS}, d={DIM}",
        measured=f"{ratio:.2f} of {against}",
        must_reach=f">= {least:g}",
        verdict=verdict(ratio >= least),
        detail=more,
    )


def _describe(loads: dict[tuple[str, int], list[Load]], commits: list[float]) -> str:
    lines = [
        f"{side}, {bandits} bandit{'s' * (bandits > 1)}: {median(load.rate for load in done):,.0f} a second, "
        f"p50 {median(load.quantile(0.5) for load in done) * 1e3:.1f} ms, "
        f"p99 {median(load.quantile(0.99) for load in done) * 1e3:.1f} ms"
        for (side, bandits), done in loads.items()
    ]
    return (
        f"medians of {BLOCKS} blocks of {SECONDS:g} s, one after the other, {CONNECTIONS} connections; servers, "
        f"PostgreSQL and the load share the machine's {os.cpu_count()} cores, so that more replicas do not add any. "
        f"{'; '.join(lines)}. PostgreSQL alone commits a row of 2 "
        f"kB {median(commits):,.0f} times a second in one session (pgbench)"
    )


def _commit_rate(cluster: PostgresServer) -> float:
    """Measure the simplest commit with pgbench: one session, a row of 2 kB."""
    cluster.execute("CREATE TABLE IF NOT EXISTS commits (id bigserial PRIMARY KEY, data bytea)")
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write("INSERT INTO commits (data) VALUES (decode(repeat('ab', 2000), 'hex'));\n")
        script.flush()
        Path(script.name).chmod(0o644)
        command = [str(find_programs() / "pgbench"), "-n", "-f", script.name, "-T", "1", "-c", "1", cluster.url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return next(float(line.split("=")[1].split()[0]) for line in said.splitlines() if line.startswith("tps"))


def _catch_up(cluster: PostgresServer) -> Row:
    """Measure how long a new replica takes to have a bandit of very many events, all of them open."""
    address = cluster.create_database()
    initialise(address)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "a.db"
        with Store.open(path) as store:
            store.create("b", BanditSpec(**{**SPEC, "window": "7d"}))  # type: ignore[arg-type]
            decide_together(store, EVENTS)
        copy_store(path, address)
    seconds = {"from a snapshot and the rows of open decisions": _open(address)}
    with closing(PostgresConnection(address)) as connection:
        connection.execute("DELETE FROM snapshot")
    seconds["from the first row"] = _open(address)
    worst = max(seconds.values())
    return Row(
        work=f"a new replica catches up with {EVENTS:,} events",
        measured=f"{worst:.2f} s",
        must_reach=f"< {CATCH_UP:g} s",
        verdict=verdict(worst < CATCH_UP),
        detail=", ".join(f"{how} {taken:.2f} s" for how, taken in seconds.items()),
    )


def _open(address: str) -> float:
    async def measure() -> float:
        began = perf_counter()
        store = await ReplicatedStore.open(address)
        taken = perf_counter() - began
        assert (await store.stats("b")).rounds == EVENTS
        await store.close()
        return taken

    return asyncio.run(measure())
