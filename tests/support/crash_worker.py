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
from msgspec import structs

from latecomer.core.state import Array
from latecomer.service.bandit.descriptor import check_policy
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec, RewardSpec
from latecomer.service.log_interface import Ticket
from latecomer.service.messages import Activation, Conversion, DecisionAnswer, StageReport, Verdict
from latecomer.service.storage.limits import Limits
from latecomer.service.store import Store

WORKERS, DIM, STRIDE = 4, 2, 3
SCALE, AGAIN = 2.0, 0.5
"""Of the reward, and what a second purchase is worth."""
LEAST, MOST = 0.2, 0.3
"""The floor of the limited bandit's action a, and the ceiling of its b."""
_LIMITS = {"floor": 0.03, "ceiling": 0.9, "limits": {"a": {"floor": LEAST}, "b": {"ceiling": MOST}}}
_TAUGHT = {"seed": 7, "stages": ["click"], "stage_prior": 1.0}
_PLAIN = BanditSpec(dim=DIM, window="30d", parameters=_TAUGHT, reward=RewardSpec(scale=SCALE, aggregate="sum"))
SPECS = {
    "shop": structs.replace(_PLAIN, challenger=ChallengerSpec(policy="LinUCB", share=0.4)),
    "limited": structs.replace(_PLAIN, parameters={**_TAUGHT, **_LIMITS}),
}
"""By the names of two bandits: one has a challenger, the other limits, which rankings do not take."""
IDS = ["a", "b", "c"]

Journal = dict[tuple[str, int], list[str]]


def bandit_of(i: int) -> str:
    """Return the bandit that request i is for."""
    return "limited" if i % 5 == 4 else "shop"


def actions_of(i: int) -> Array:
    """Return the actions of request i."""
    return unit_rows(np.random.default_rng(i), 3, DIM)


def value_of(i: int) -> float | None:
    """Return the value of request i's conversion; None where it has none."""
    return None if i % STRIDE else (i % 7) / 6


def is_deferred(i: int) -> bool:
    """Tell whether request i is for a deferred decision, which is then activated."""
    return i % 4 == 1


def buys_again(i: int) -> bool:
    """Tell whether request i has a second conversion, with an id of its own."""
    return i % 9 == 0


def has_stage(i: int) -> bool:
    """Tell whether request i reaches a stage, from which the policy learns: most of those that do convert."""
    return i % (2 * STRIDE) == 0 or i % (8 * STRIDE) == 1


def count_ranked(i: int) -> int:
    """Return the actions that request i asks for."""
    return 2 if i % 8 == 3 and bandit_of(i) == "shop" else 1


def excluded_of(i: int) -> list[int] | None:
    """Return the actions that request i leaves out."""
    return [0] if i % 7 == 2 else None


def steps_of(i: int) -> list[str]:
    """Return the kinds of steps that request i takes, in their order."""
    steps = {"d": True, "a": is_deferred(i), "s": has_stage(i), "c": value_of(i) is not None, "e": buys_again(i)}
    return [kind for kind, is_taken in steps.items() if is_taken]


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
    return all((kind, i) in done for kind in steps_of(i))


def decide(store: Store, i: int) -> tuple[DecisionAnswer, Ticket]:
    """Make the decision of request i, or get its answer again."""
    return store.decide(
        bandit_of(i),
        actions_of(i),
        IDS,
        request_id=f"r{i}",
        deferred=is_deferred(i),
        subject=subject_of(i),
        exclude=excluded_of(i),
        k=count_ranked(i),
    )


def report(store: Store, kind: str, i: int, id_: str) -> tuple[Verdict, Ticket]:
    """Take a step of request i after its decision."""
    name = bandit_of(i)
    if kind == "a":
        (verdict,), ticket = store.activate(name, [Activation(id_)])
    elif kind == "s":
        (verdict,), ticket = store.report_stages(name, [StageReport(id_, "click")])
    elif kind == "c":
        (verdict,), ticket = store.convert(name, [conversion_of(i, id_, value_of(i) or 0.0)])
    else:
        (verdict,), ticket = store.convert(name, [Conversion(id_, AGAIN, conversion_id=f"again{i}")])
    return verdict, ticket


def line_of(answer: DecisionAnswer) -> str:
    """Return what the journal keeps of an answer."""
    return f"{answer.index} {answer.round} {answer.decision_id} {answer.is_control} {answer.propensity!r}"


def work(store: Store, done: Journal, i: int, write_end: int) -> None:
    """Do what is left of request i."""
    if ("d", i) not in done:
        answer, ticket = decide(store, i)
        store.wait(ticket)
        os.write(write_end, f"d {i} {line_of(answer)}\n".encode())
        id_ = answer.decision_id
    else:
        id_ = done["d", i][2]
    for kind in steps_of(i)[1:]:
        if (kind, i) not in done:
            verdict, ticket = report(store, kind, i, id_)
            store.wait(ticket)
            os.write(write_end, f"{kind} {i} {verdict.value}\n".encode())


def child(database: str, done: Journal, nexts: list[int], write_end: int) -> None:
    """Work until the process is killed; every worker from its next request on."""
    limits = Limits(small_rows=40)  # so that it is killed during compactions
    store = Store.open(database, snapshot_every=150, limits=limits)
    for name, spec in SPECS.items():
        store.create(name, spec)

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
        for name, spec in SPECS.items():
            for kernel in check_policy(name, spec).state.code.tiered():
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
