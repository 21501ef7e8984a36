"""The page: what its counts cost a decision, and how long it takes to load with many decisions and bandits."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
from load import request, run
from rows import Row, verdict
from timing import micro, quiet

from latecomer.service.bandit.monitor.grid import DAY, Grid
from latecomer.service.bandit.monitor.monitor import Monitor
from latecomer.service.bandit.tally.columns import Column
from latecomer.service.bandit.tally.tally import MOST_NOTES, Tally
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import ImportBatch, ImportedConversions
from latecomer.service.store import Store

SHARE = 0.02
SECONDS = 8.0
IDS = [f"offer-{number}" for number in range(10)]
DECISIONS, BANDITS, BATCH = 1_000_000, 50, 10_000
LOAD = 1.0
WATCHED = 20
MEMORY = Path("/dev/shm")  # noqa: S108


def rows() -> Iterator[Row]:
    yield _counting()
    yield _loading()


@contextmanager
def _server(store_path: Path) -> Iterator[tuple[int, int]]:
    """Run a server; give its port and its process."""
    command = [sys.executable, str(Path(__file__).with_name("echo.py")), str(store_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        try:
            yield json.loads(process.stderr.readline())["port"], process.pid
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _make_bodies() -> dict[str, list[dict[str, Any]]]:
    """Return requests with rows of numbers, and with features by name."""
    rng = np.random.default_rng(0)
    vectors = rng.random((50, len(IDS), 5)) / 3
    plain = [{"actions": actions.tolist(), "ids": IDS} for actions in vectors]
    offers = [{"id": label, "features": {"offer": label}} for label in IDS]
    named = [{"context": context, "actions": offers} for context in _make_contexts(50)]
    return {"rows": plain, "features": named}


def _make_contexts(count: int) -> list[dict[str, Any]]:
    rng = Random(0)  # noqa: S311
    countries, pages = ["de", "fr", "it", "es"], [f"page-{number}" for number in range(30)]
    return [
        {
            "country": rng.choice(countries),
            "page": rng.choice(pages),
            "age": rng.randint(18, 80),
            "new": rng.random() < 0.5,
        }
        for _ in range(count)
    ]


def _counting() -> Row:
    """Compare the processor time of the counts with that of a whole decision in a server."""
    details, shares = [], []
    with TemporaryDirectory() as folder, _server(Path(folder) / "a.db") as (port, pid):
        http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)
        for kind, bodies in _make_bodies().items():
            dim = 5 if kind == "rows" else 16
            http.put(
                f"/v1/bandits/{kind}", json={"dim": dim, "window": "7d", "features": {"age": {"scale": 80}}}
            ).raise_for_status()
            sent = [request(f"/v1/bandits/{kind}/decisions", json.dumps(body).encode()) for body in bodies]
            run(port, sent, connections=16, seconds=2.0)
            before, rounds = _processor_seconds(pid), http.get(f"/v1/bandits/{kind}/stats").json()["rounds"]
            run(port, sent, connections=16, seconds=SECONDS)
            made = http.get(f"/v1/bandits/{kind}/stats").json()["rounds"] - rounds
            whole = (_processor_seconds(pid) - before) / made
            counts = _time_counts(with_contexts=kind == "features")
            shares.append(counts / whole)
            details.append(f"{kind}: {micro(counts)} of {micro(whole)} a decision")
    return Row(
        work="the counts of the page and of alarms, in a decision's processor time",
        measured=f"{max(shares):.1%} of it",
        must_reach=f"< {SHARE:.0%}",
        verdict=verdict(max(shares) < SHARE),
        detail=f"K = {len(IDS)}, ids, the default policy; the server's processor time over {SECONDS:g} s of decisions, "
        f"and the least of 20 blocks of notes with their counting; features: four in the context; {'; '.join(details)}",
    )


def _time_counts(*, with_contexts: bool) -> float:
    """Return the processor time of one decision's notes and counts, for the page and for alarms, in seconds."""
    rng = np.random.default_rng(1)
    count = 8 * MOST_NOTES
    signed, labels = rng.uniform(0.02, 1.0, count).tolist(), rng.choice(IDS, count).tolist()
    contexts = _make_contexts(count) if with_contexts else [None] * count
    tally, taken, stamp, round_ = Tally(1), [], 1_700_000_000_000_000, 0
    monitor, summary = Monitor(Grid(7 * DAY, in_rounds=False), 5, 0), np.full(7, 1000, np.int16)
    for _ in range(20):
        with quiet():
            begin = time.thread_time()
            for propensity, label, context in zip(signed, labels, contexts, strict=True):
                stamp, round_ = stamp + 1000, round_ + 1
                monitor.note_decision(stamp, round_, summary)
                tally.note_decision(stamp, propensity, label, context)
                if tally.is_full:
                    tally.count_events()
                    monitor.count_notes(tally.find_slots, tally.names)
                    tally.close_rounds(1)
            taken.append((time.thread_time() - begin) / count)
    assert tally.buckets.counts[:, Column.DECISIONS].sum() >= 20 * count - MOST_NOTES
    return min(taken)


def _loading() -> Row:
    """Load the list and the page of a bandit with very many open decisions, as a browser asks for them."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "a.db"
        with Store.open(path) as store:
            _fill(store)
        with _server(path) as (port, pid):
            http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)
            assert http.get("/page/bandits/big").status_code == 200
            seconds = {}
            for name, address in (("the list", "/page/bandits"), ("the bandit", "/page/bandits/big")):
                time.sleep(11.0)  # what is kept is old by then
                begin = time.perf_counter()
                size = len(http.get("/").content) + len(http.get(address).content)
                seconds[name] = time.perf_counter() - begin
            before, begin = _processor_seconds(pid), time.perf_counter()
            while time.perf_counter() - begin < WATCHED:
                http.get("/page/bandits/big")
                time.sleep(1.0)
            watching = (_processor_seconds(pid) - before) / (time.perf_counter() - begin)
    worst = max(seconds.values())
    return Row(
        work=f"the page with {DECISIONS:,} open decisions and {BANDITS} bandits",
        measured=f"{worst:.2f} s to load",
        must_reach=f"< {LOAD:g} s",
        verdict=verdict(worst < LOAD and watching < SHARE),
        detail=", ".join(f"{name} {taken:.2f} s" for name, taken in seconds.items())
        + f"; {size / 1000:.0f} kB; watching it takes {watching:.1%} of a processor (must be < {SHARE:.0%})",
    )


def _fill(store: Store) -> None:
    rng, now = np.random.default_rng(0), time.time()
    for number in range(1, BANDITS):
        store.create(f"b{number}", BanditSpec(dim=5, window="7d"))
        store.decide(f"b{number}", np.eye(5), IDS[:5])
    store.create("big", BanditSpec(dim=5, window="30d"))
    first, before = None, 0
    for begin in range(0, DECISIONS, BATCH):
        times = now - 20 * 86_400 * (1.0 - (begin + np.arange(BATCH)) / DECISIONS)
        actions = rng.random((BATCH, 5)) / 3
        bought = np.flatnonzero(rng.random(BATCH) < 0.05)
        late = times[bought] + rng.exponential(86_400, len(bought))
        kept = late < min(now, times[-1])
        found = ImportedConversions(
            (begin + bought[kept] + 1).tolist(), late[kept].tolist(), np.ones(int(kept.sum())).tolist()
        )
        batch = ImportBatch(
            import_id="log", decided_at=times.tolist(), actions=actions.tolist(), after=before, first_round=first,
            conversions=found,
        )  # fmt: skip
        answer, ticket = store.import_batch("big", batch)
        first, before = answer.first_round, answer.imported
    store.wait(ticket)


if __name__ == "__main__":
    os.environ["LATECOMER_COMPILE"] = "now"
    for row in rows():
        print(row)
