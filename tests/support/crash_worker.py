"""A process that is killed over and over while four threads decide and report; run by test_kill.py.

Usage: crash_worker.py DATABASE JOURNAL CYCLES SEED. One process loads everything and forks the ones that are killed, so
that a cycle takes as long as opening the store does. What a child has been told is durable, it writes to a pipe; the
journal keeps those lines. A step whose acknowledgement was lost is taken again, as a client would: the same request,
the same report.
"""

import itertools
import os
import random
import select
import signal
import sys
import time
from pathlib import Path
from threading import Thread

import numpy as np
from fake_clocks import unit_rows

from latecomer.core.state import Array
from latecomer.service.bandit.descriptor import make_policy, resolve_spec, warm_up
from latecomer.service.messages import BanditSpec, Conversion
from latecomer.service.storage.limits import Limits
from latecomer.service.store import Store

WORKERS, DIM, STRIDE = 4, 2, 3
SPEC = BanditSpec(dim=DIM, window="30d", parameters={"seed": 7})

Journal = dict[tuple[str, int], list[str]]


def actions_of(i: int) -> Array:
    """What request i chooses from."""
    return unit_rows(np.random.default_rng(i), 3, DIM)


def value_of(i: int) -> float | None:
    """What request i's conversion is worth, where it has one."""
    return None if i % STRIDE else (i % 7) / 6


def journal_of(text: str) -> Journal:
    """What was acknowledged: (kind, request) → the rest of its line."""
    lines = (line.split() for line in text.splitlines())
    return {(kind, int(i)): rest for kind, i, *rest in lines}


def is_done(done: Journal, i: int) -> bool:
    """Whether all of request i was acknowledged."""
    return ("d", i) in done and (value_of(i) is None or ("c", i) in done)


def work(store: Store, done: Journal, i: int, say: int) -> None:
    """Request i as far as it has not been acknowledged."""
    if ("d", i) not in done:
        answer, ticket = store.decide("shop", actions_of(i), request_id=f"r{i}")
        store.wait(ticket)
        os.write(say, f"d {i} {answer.index} {answer.round} {answer.decision_id}\n".encode())
        id_ = answer.decision_id
    else:
        id_ = done["d", i][2]
    value = value_of(i)
    if value is not None and ("c", i) not in done:
        (verdict,), ticket = store.convert("shop", [Conversion(id_, value)])
        store.wait(ticket)
        os.write(say, f"c {i} {verdict.value}\n".encode())


def child(database: str, done: Journal, nexts: list[int], say: int) -> None:
    """Work until somebody ends it; every worker from its next request on."""
    limits = Limits(small_rows=40)  # so that it is killed during compactions
    store = Store.open(database, snapshot_every=150, limits=limits)
    store.create("shop", SPEC)

    def worker(i: int) -> None:
        while True:
            work(store, done, i, say)
            i += WORKERS

    threads = [Thread(target=worker, args=(i,), daemon=True) for i in nexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cycle(database: str, done: Journal, nexts: list[int], seconds: float) -> str:
    """Fork a child, let it work for a while, kill it; what it said."""
    hear, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(hear)
        try:
            child(database, done, nexts, say)
        finally:
            os._exit(3)
    os.close(say)
    deadline, heard = None, b""
    while deadline is None or time.monotonic() < deadline:
        ready, _, _ = select.select([hear], [], [], 0.005)
        if ready:
            some = os.read(hear, 1 << 16)
            if not some:
                raise SystemExit("the child ended by itself")
            heard += some
            deadline = deadline or time.monotonic() + seconds  # the clock runs from its first word
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while some := os.read(hear, 1 << 16):
        heard += some
    os.close(hear)
    return heard[: heard.rfind(b"\n") + 1].decode()


def main() -> None:
    database, journal, cycles, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    done: Journal = {}
    nexts = list(range(WORKERS))
    warm_up(make_policy(resolve_spec(SPEC), seed=0))  # once, for all the children
    with journal.open("w") as file:
        for _ in range(cycles):
            said = cycle(database, done, nexts, chance.uniform(0.0, 0.25))
            file.write(said)
            done |= journal_of(said)
            for number, i in enumerate(nexts):
                nexts[number] = next(j for j in itertools.count(i, WORKERS) if not is_done(done, j))


if __name__ == "__main__":
    main()
