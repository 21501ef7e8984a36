"""A process that is killed over and over while four threads decide and report; run by test_kill.py.

Usage: crash_worker.py DATABASE JOURNAL CYCLES SEED. One process loads everything and forks the ones that are killed, so
that a cycle takes as long as opening the store does. A child writes what was acknowledged to a pipe; the journal keeps
those lines. A step whose acknowledgement was lost is taken again, as a client would: the same request, the same report.
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
from latecomer.service.bandit.descriptor import check_policy
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.log_interface import Ticket
from latecomer.service.messages import Activation, Conversion, DecisionAnswer
from latecomer.service.storage.limits import Limits
from latecomer.service.store import Store

WORKERS, DIM, STRIDE = 4, 2, 3
SPEC = BanditSpec(dim=DIM, window="30d", parameters={"seed": 7})

Journal = dict[tuple[str, int], list[str]]


def actions_of(i: int) -> Array:
    """Return the actions of request i."""
    return unit_rows(np.random.default_rng(i), 3, DIM)


def value_of(i: int) -> float | None:
    """Return the value of request i's conversion; None where it has none."""
    return None if i % STRIDE else (i % 7) / 6


def is_deferred(i: int) -> bool:
    """Tell whether request i is for a deferred decision, which is then activated."""
    return i % 4 == 1


def subject_of(i: int) -> str | None:
    """Return the subject of request i, which its conversion names; None where it has none."""
    return f"s{i}" if i % 6 == 0 else None


def conversion_of(i: int, decision_id: str, value: float) -> Conversion:
    """Return the conversion of request i, by its subject where it has one; every other has an id."""
    subject, own = subject_of(i), f"c{i}" if i % 2 else None
    if subject is not None:
        return Conversion(value=value, subject=subject)
    return Conversion(decision_id, value, conversion_id=own)


def journal_of(text: str) -> Journal:
    """Parse what was acknowledged: (kind, request) → the rest of its line."""
    lines = (line.split() for line in text.splitlines())
    return {(kind, int(i)): rest for kind, i, *rest in lines}


def is_done(done: Journal, i: int) -> bool:
    """Tell whether all of request i was acknowledged."""
    is_shown = ("a", i) in done or not is_deferred(i)
    return ("d", i) in done and is_shown and (value_of(i) is None or ("c", i) in done)


def decide(store: Store, i: int) -> tuple[DecisionAnswer, Ticket]:
    """Make the decision of request i, or get its answer again."""
    return store.decide("shop", actions_of(i), request_id=f"r{i}", deferred=is_deferred(i), subject=subject_of(i))


def work(store: Store, done: Journal, i: int, write_end: int) -> None:
    """Do what is left of request i."""
    if ("d", i) not in done:
        answer, ticket = decide(store, i)
        store.wait(ticket)
        os.write(write_end, f"d {i} {answer.index} {answer.round} {answer.decision_id}\n".encode())
        id_ = answer.decision_id
    else:
        id_ = done["d", i][2]
    if is_deferred(i) and ("a", i) not in done:
        (verdict,), ticket = store.activate("shop", [Activation(id_)])
        store.wait(ticket)
        os.write(write_end, f"a {i} {verdict.value}\n".encode())
    value = value_of(i)
    if value is not None and ("c", i) not in done:
        (verdict,), ticket = store.convert("shop", [conversion_of(i, id_, value)])
        store.wait(ticket)
        os.write(write_end, f"c {i} {verdict.value}\n".encode())


def child(database: str, done: Journal, nexts: list[int], write_end: int) -> None:
    """Work until the process is killed; every worker from its next request on."""
    limits = Limits(small_rows=40)  # so that it is killed during compactions
    store = Store.open(database, snapshot_every=150, limits=limits)
    store.create("shop", SPEC)

    def worker(i: int) -> None:
        while True:
            work(store, done, i, write_end)
            i += WORKERS

    threads = [Thread(target=worker, args=(i,), daemon=True) for i in nexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cycle(database: str, done: Journal, nexts: list[int], seconds: float) -> str:
    """Fork a child, let it work for a while, kill it; return its output."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            child(database, done, nexts, write_end)
        finally:
            os._exit(3)
    os.close(write_end)
    deadline, output = None, b""
    while deadline is None or time.monotonic() < deadline:
        ready, _, _ = select.select([read_end], [], [], 0.005)
        if ready:
            chunk = os.read(read_end, 1 << 16)
            if not chunk:
                raise SystemExit("the child ended by itself")
            output += chunk
            deadline = deadline or time.monotonic() + seconds  # the clock runs from its first line
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while chunk := os.read(read_end, 1 << 16):
        output += chunk
    os.close(read_end)
    return output[: output.rfind(b"\n") + 1].decode()


def main() -> None:
    database, journal, cycles, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    if cycles > 100:  # worth machine code, which the children inherit
        for kernel in check_policy("shop", SPEC).state.code.tiered():
            kernel.compile()
    done: Journal = {}
    nexts = list(range(WORKERS))
    with journal.open("w") as file:
        for _ in range(cycles):
            output = cycle(database, done, nexts, chance.uniform(0.0, 0.25))
            file.write(output)
            done |= journal_of(output)
            for number, i in enumerate(nexts):
                nexts[number] = next(j for j in itertools.count(i, WORKERS) if not is_done(done, j))


if __name__ == "__main__":
    main()
