"""Many runs, on all cores or many machines, with the same result to the last bit."""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

import numpy as np

from latecomer.core.linalg.blas import one_thread
from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.policies.base.policy import LinearPolicy
from latecomer.simulation.progress import show_progress
from latecomer.simulation.result import Result
from latecomer.simulation.run import play_run, prepare
from latecomer.simulation.world import World
from latecomer.validation import check_integer

Regrets = dict[str, Array]
Played = Generator[tuple[int, Regrets], None, None]


class Engine(Protocol):
    """A place to play runs: it yields (run, its regrets) as they are done, in any order."""

    def map(self, play: Callable[[int], Regrets], runs: int) -> Played:
        """Play runs 0 … runs − 1."""


class ThreadEngine:
    """The cores of this machine; the kernels let go of Python's lock."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = check_integer("jobs", jobs, least=1) if jobs is not None else os.cpu_count() or 1

    def map(self, play: Callable[[int], Regrets], runs: int) -> Played:
        """Play runs 0 … runs − 1, a few ahead of what was taken, so that memory stays bounded.

        Threads take runs from one queue and put their regrets into another: 10 µs a run, where a pool of futures, which
        works under Python's lock too, takes 26 µs.
        """
        upcoming: SimpleQueue[int | None] = SimpleQueue()
        played: SimpleQueue[tuple[int, Regrets | BaseException]] = SimpleQueue()
        threads = [Thread(target=_play_upcoming, args=(play, upcoming, played)) for _ in range(min(self.jobs, runs))]
        ahead = min(2 * self.jobs, runs)
        try:
            for run in range(ahead):
                upcoming.put(run)
            for thread in threads:
                thread.start()
            for taken in range(runs):
                run, regrets = played.get()
                if isinstance(regrets, BaseException):
                    raise regrets
                if taken + ahead < runs:
                    upcoming.put(taken + ahead)
                yield run, regrets
        finally:
            _drain(upcoming)
            for _ in threads:
                upcoming.put(None)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()


def _play_upcoming(
    play: Callable[[int], Regrets],
    upcoming: "SimpleQueue[int | None]",
    played: "SimpleQueue[tuple[int, Regrets | BaseException]]",
) -> None:
    """Play runs until there is None; an error goes where the regrets would."""
    for run in iter(upcoming.get, None):
        try:
            played.put((run, play(run)))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
            played.put((run, error))


def _drain(queue: "SimpleQueue[int | None]") -> None:
    with suppress(Empty):
        while True:
            queue.get_nowait()


def simulate(
    world: World,
    policies: Mapping[str, LinearPolicy],
    *,
    horizon: int,
    runs: int,
    seed: int = 0,
    jobs: int | None = None,
    engine: Engine | None = None,
    progress: bool | None = None,
    common_draws: bool = False,
) -> Result:
    """Play every policy in the same world, `runs` times.

    Common random numbers: in run i every policy meets the same action sets, rewards and delays, and a policy's own
    draws depend on the seed, the run and its name alone (with `common_draws`, not on its name either). The result does
    not depend on `jobs` or on the engine. Ctrl-C leaves what is done: a result with fewer runs, whose `is_complete` is
    False.

    Parameters
    ----------
    world
        θ, actions and delays.
    policies
        Templates by name, with windows in rounds; they are copied, never changed.
    horizon
        T, rounds in a run.
    runs
        Independent runs.
    seed
        Two simulations of one seed are the same.
    jobs
        Threads; all cores by default.
    engine
        In place of threads, e.g. `latecomer.simulation.dask_engine.DaskEngine`.
    progress
        A bar on standard error; by default where that is a terminal.
    common_draws
        Give every policy the same draws of its own, too: for policies of one kind that differ in a parameter, such as
        the window, their differences are then less noisy.

    Examples
    --------
    >>> import latecomer as lc
    >>> world = lc.World(theta=[0.6, 0.6], actions=lc.actions.Binary(3), delays=lc.delays.Geometric(mean=20))
    >>> result = lc.simulate(world, {"ts": lc.OTFLinTS(2, window=50)}, horizon=200, runs=4, seed=1)
    >>> result.regret("ts").shape
    (4, 200)
    """
    horizon, runs, seed = (
        check_integer("horizon", horizon, least=1),
        check_integer("runs", runs, least=1),
        check_integer("seed", seed, least=0),
    )
    if not isinstance(world, World):
        raise InputError(f"world must be a World; got {world!r}")
    if not isinstance(policies, Mapping) or not all(isinstance(name, str) for name in policies):
        raise InputError(f"policies must be a dictionary of policies by name; got {policies!r}")
    templates = {name: _check_template(name, policy, world) for name, policy in policies.items()}
    if not templates:
        raise InputError("policies must hold at least one policy; got none")
    _check_memory(len(templates) * runs * horizon * 8)
    play = partial(_play, world, templates, horizon, seed, common_draws, horizon * runs)
    if engine is None:
        prepare(templates, horizon * runs, None if progress is False else _announce)
        engine = ThreadEngine(jobs)
    regrets = {name: np.empty((runs, horizon)) for name in templates}
    done: set[int] = set()
    collect = one_thread(_collect)
    collect(engine.map(play, runs), regrets, done, progress=progress)
    if not done:
        raise KeyboardInterrupt
    if len(done) < runs:
        regrets = {name: regret[sorted(done)] for name, regret in regrets.items()}
    return Result(regrets, runs_requested=runs)


def _check_memory(needed: int) -> None:
    """Refuse at once what would fail after an hour."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise InputError(
            f"policies × runs × horizon must fit into memory, {there / 1e9:.0f} GB; got {needed / 1e9:,.0f} GB: "
            "choose a shorter horizon, or fewer runs"
        )


def _announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _play(
    world: World,
    templates: Mapping[str, LinearPolicy],
    horizon: int,
    seed: int,
    common_draws: bool,
    rounds: int,
    run: int,
) -> Regrets:
    """Play a run; a function of the run alone, which pickles, for engines."""
    return play_run(world, templates, horizon=horizon, seed=seed, run=run, common_draws=common_draws, rounds=rounds)


def _collect(source: Played, regrets: Regrets, done: set[int], *, progress: bool | None) -> None:
    """Copy what comes into the rows of `regrets`, until all is there or Ctrl-C."""
    runs = len(next(iter(regrets.values())))
    with suppress(KeyboardInterrupt), closing(source), show_progress("runs", runs, progress=progress) as advance:
        for run, played in source:
            for name, regret in played.items():
                regrets[name][run] = regret
            done.add(run)
            advance()


def _check_template(name: str, policy: LinearPolicy, world: World) -> LinearPolicy:
    if not isinstance(policy, LinearPolicy):
        raise InputError(f"policies[{name!r}] must be a Latecomer policy, such as OTFLinUCB(...); got {policy!r}")
    if policy.dim != world.dim:
        raise InputError(f"policies[{name!r}] must have the world's dim, {world.dim}; got {policy.dim}")
    if not isinstance(policy.window, int):
        raise InputError(f"policies[{name!r}] must have its window in rounds, as the world has; got {policy.window!r}")
    return policy.fresh(0)  # what it has played stays here: only its parameters matter, and travel
