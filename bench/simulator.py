"""The simulator: a round against NumPy's and C's, the exact width, two cores, Figure 1 and the whole report."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from threading import Thread

import numpy as np
from arrivals import Array
from baselines import NumpyLinUCB
from c_round import Simulate, compile_c_round
from rows import INFORMATION, Row, verdict
from timing import Block, interleaved, micro

import latecomer as lc
from latecomer.experiments.paper import experiments as paper
from latecomer.policies.base.policy import LinearPolicy
from latecomer.simulation.simulate import simulate

DIM, WINDOW, HORIZON = 5, 500, 1024
NUMPY_ROUNDS, REPEATS = 300, 40


def rows() -> Iterator[Row]:
    yield from _rounds()
    yield _c_round()
    yield from _beyond()
    yield from _two_cores()
    yield _figure_1()
    yield from _reproduce()


def _world() -> lc.World:
    return lc.World(theta=paper.make_theta(), actions=lc.actions.Binary(10), delays=lc.delays.Geometric(mean=100))


def _simulate(policy: LinearPolicy, horizon: int) -> None:
    simulate(_world(), {"policy": policy}, horizon=horizon, runs=1, jobs=1, progress=False)


def _rounds() -> Iterator[Row]:
    """Whole rounds, drawing the world included, on both sides; one policy, so that nothing is shared out."""
    exact, buffered = lc.OTFLinUCB(DIM, WINDOW), lc.OTFLinUCB(DIM, WINDOW, width="buffered")
    long = 20 * HORIZON
    sides: dict[str, tuple[Block, int]] = {
        "NumPy": (_numpy_rounds, NUMPY_ROUNDS),
        "buffered": (partial(_simulate, buffered, long), long),
        "exact": (partial(_simulate, exact, long), long),
        "world": (partial(_draw, long), long),
    }
    for block, _ in sides.values():
        block()
    times = interleaved(sides, repeats=REPEATS)
    kernel = times["buffered"] - times["world"]
    ratio = times.ratio("NumPy", "buffered")
    yield Row(
        work=f"simulated round, d={DIM}, K=10, buffered, one core",
        measured=f"{ratio:.0f} times faster",
        must_reach=">= 80 times faster than the NumPy round",
        verdict=verdict(ratio >= 80),
        detail=f"{times['buffered'] * 1e9:.0f} ns a round, drawing the world ({times['world'] * 1e9:.0f} ns) included; "
        f"the policy alone {kernel * 1e9:.0f} ns; NumPy {micro(times['NumPy'])}",
    )
    widths = (times["exact"] - times["world"]) / kernel
    yield Row(
        work=f"exact width, m={WINDOW}, against the buffered round",
        measured=f"x{widths:.1f}",
        must_reach="<= 6 times",
        verdict=verdict(widths <= 6),
        detail=f"without the world: exact {widths * kernel * 1e9:.0f} ns, buffered {kernel * 1e9:.0f} ns",
    )


def _c_round() -> Row:
    """Stand beside C that does the same and no more; both draw their world."""
    work = f"simulated round, d={DIM}, K=10, m={WINDOW}, buffered, against C"
    in_c = compile_c_round(paper.make_theta())
    if in_c is None:
        return Row(work=work, measured="skipped: no C compiler", must_reach="<= 1.58 times")
    policy = lc.OTFLinUCB(DIM, WINDOW, width="buffered")
    runs, horizon, long = 200, 3000, 20 * HORIZON
    play = partial(simulate, _world(), {"policy": policy}, progress=False)
    ours = play(horizon=horizon, runs=runs, seed=1).final("policy")
    theirs = np.array([in_c(horizon, seed) for seed in range(runs)])
    difference = (ours.mean() - theirs.mean()) / np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / runs)
    if not abs(difference) <= 4.0:
        raise AssertionError(f"regrets differ by {difference:.1f} standard errors: the programs do not do the same")
    sides: dict[str, tuple[Block, int]] = {
        "C": (lambda: [in_c(long, seed) for seed in range(4)], 4 * long),
        "ours": (partial(play, horizon=long, runs=4, jobs=1), 4 * long),
    }
    times = interleaved(sides, repeats=2 * REPEATS)
    ratio = times.ratio("ours", "C")
    return Row(
        work=work,
        measured=f"x{ratio:.2f}",
        must_reach="<= 1.58 times",
        verdict=verdict(ratio <= 1.58),
        detail=f"{times['ours'] * 1e9:.0f} ns and {times['C'] * 1e9:.0f} ns; mean regret after {horizon} rounds "
        f"{ours.mean():.1f} and {theirs.mean():.1f}, {abs(difference):.1f} standard errors apart",
    )


def _beyond() -> Iterator[Row]:
    """The policies beyond the paper, in the same world."""
    policies: dict[str, LinearPolicy] = {
        "recommended": lc.recommended(DIM, WINDOW),
        "OTFLinUCB, tight": lc.OTFLinUCB(DIM, WINDOW, width="tight"),
        "OTFLinUCB, variance": lc.OTFLinUCB(DIM, WINDOW, width="variance"),
        "recommended, guarded": lc.recommended(DIM, WINDOW, guard=4.0),
        "WaitingLinUCB": lc.WaitingLinUCB(DIM, WINDOW),
        "WaitingLinTS": lc.WaitingLinTS(DIM, WINDOW),
        "MaturedLinUCB": lc.MaturedLinUCB(DIM, WINDOW),
        "ImputedLinTS": lc.ImputedLinTS(DIM, WINDOW),
        "LogisticLinTS": lc.LogisticLinTS(DIM, WINDOW),
    }
    sides = {name: (partial(_simulate, policy, 4 * HORIZON), 4 * HORIZON) for name, policy in policies.items()}
    for block, _ in sides.values():
        block()
    times = interleaved(sides, repeats=10)
    yield Row(
        work=f"simulated round of recommended, d={DIM}, K=10, m={WINDOW}",
        measured=micro(times["recommended"]),
        must_reach="<= 10 µs on one core",
        verdict=verdict(times["recommended"] <= 1e-5),
        detail="; ".join(f"{name} {micro(times[name])}" for name in policies),
    )
    yield Row(
        work=f"simulated round of OTFLinUCB, variance, d={DIM}, K=10, m={WINDOW}",
        measured=micro(times["OTFLinUCB, variance"]),
        must_reach="<= 8 µs on one core",
        verdict=verdict(times["OTFLinUCB, variance"] <= 8e-6),
        detail="no sum over the window",
    )


def _draw(horizon: int) -> None:
    from latecomer.simulation.run import Episode
    from latecomer.simulation.world import BLOCK

    episode = Episode(_world(), horizon, seed=0, run=0)
    for first in range(0, horizon, BLOCK):
        episode.block(first)


def _numpy_rounds() -> None:
    """The round by hand: draw ten actions, choose, update, and deliver what arrives."""
    rng = np.random.default_rng(0)
    policy = NumpyLinUCB(DIM, WINDOW)
    theta: Array = paper.make_theta()
    due: dict[int, list[int]] = {}
    regret = 0.0
    for t in range(1, NUMPY_ROUNDS + 1):
        actions = rng.integers(0, 2, (10, DIM)).astype(float)
        actions[~actions.any(axis=1)] = 1.0
        actions /= np.linalg.norm(actions, axis=1, keepdims=True)
        means = actions @ theta
        index = policy.decide(actions).index
        regret += means.max() - means[index]
        if rng.random() < means[index]:
            due.setdefault(t + int(rng.geometric(0.01)), []).append(t)
        for round in due.pop(t, ()):
            policy.convert(round)


def _two_cores() -> Iterator[Row]:
    experiment = paper.make_figure_1("B")[500, 100]
    buffered: dict[str, LinearPolicy] = {"policy": lc.OTFLinUCB(DIM, WINDOW, width="buffered")}
    yield _two_cores_row("buffered", _world(), buffered, horizon=20 * HORIZON, must_reach=1.85)
    yield _two_cores_row("Figure 1's second panel", experiment.world, experiment.policies, horizon=3000, must_reach=1.8)


def _two_cores_row(
    what: str, world: lc.World, policies: Mapping[str, LinearPolicy], *, horizon: int, must_reach: float
) -> Row:
    """Say what two cores give, and what they give to C, in blocks between ours: on a busy machine less than twice."""
    runs = 24

    def play(jobs: int) -> None:
        simulate(world, policies, horizon=horizon, runs=runs, jobs=jobs, progress=False)

    play(2)
    sides: dict[str, tuple[Block, int]] = {"one": (partial(play, 1), runs), "two": (partial(play, 2), runs)}
    in_c = compile_c_round(paper.make_theta())
    if in_c is not None:
        sides |= {f"C, {jobs}": (partial(_play_in_c, in_c, runs, jobs), runs) for jobs in (1, 2)}
    times = interleaved(sides, repeats=12)
    ratio = times.ratio("one", "two")
    machine = f"; C {times.ratio('C, 1', 'C, 2'):.2f} times" if in_c is not None else ""
    return Row(
        work=f"two cores against one, {what}",
        measured=f"{ratio:.2f} times faster",
        must_reach=f">= {must_reach:g} times",
        verdict=verdict(ratio >= must_reach) if (os.cpu_count() or 1) >= 2 else INFORMATION,
        detail=f"a run of {horizon} rounds, policies: {len(policies)}; {micro(times['one'])} and {micro(times['two'])}"
        + machine,
    )


def _play_in_c(in_c: Simulate, runs: int, jobs: int) -> None:
    """Play runs in C in so many threads: a call of C leaves Python's lock alone."""

    def play() -> None:
        for seed in range(runs // jobs):
            in_c(20 * HORIZON, seed)

    threads = [Thread(target=play) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _figure_1() -> Row:
    started = time.perf_counter()
    for law in paper.LAWS:
        for experiment in paper.make_figure_1(law).values():
            simulate(experiment.world, experiment.policies, horizon=experiment.horizon, runs=100, progress=False)
    seconds = time.perf_counter() - started
    return Row(
        work="Figure 1 whole, 100 runs, warm",
        measured=f"{seconds:.1f} s",
        must_reach="<= 10 s",
        verdict=verdict(seconds <= 10),
        detail="six panels, six policies each, all cores",
    )


def _reproduce() -> Iterator[Row]:
    """Run fresh processes: the first with no machine code on disk, the second with it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, limit in (("first run ever, compile included", 150.0), ("warm", 60.0)):
            seconds, peak = _timed_reproduce(folder)
            yield Row(
                work=f"latecomer reproduce whole, {name}",
                measured=f"{seconds:.0f} s",
                must_reach=f"<= {limit:g} s",
                verdict=verdict(seconds <= limit),
                detail=f"peak memory {peak:.2f} GB (must be < 1.5 GB: {verdict(peak < 1.5)})",
            )


_CHILD = """
import resource, sys
from latecomer.cli.main import app
try:
    app(["reproduce", "--out", sys.argv[1]])
except SystemExit as end:
    assert not end.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _timed_reproduce(folder: str) -> tuple[float, float]:
    environment = {**os.environ, "LATECOMER_CACHE_DIR": f"{folder}/code"}
    command = [sys.executable, "-c", _CHILD, f"{folder}/report"]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
    return time.perf_counter() - started, int(done.stdout.split()[-1]) / 1e6
