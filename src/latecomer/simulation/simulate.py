"""Many runs, on all cores or many machines, with the same result to the last bit."""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from functools import partial
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
        """Play runs 0 … runs − 1, a few ahead of what was taken, so that memory stays bounded."""
        with ThreadPoolExecutor(self.jobs) as pool:
            waiting: dict[Future[Regrets], int] = {}
            upcoming = iter(range(runs))
            try:
                while True:
                    for run in upcoming:
                        waiting[pool.submit(play, run)] = run
                        if len(waiting) >= 2 * self.jobs:
                            break
                    if not waiting:
                        return
                    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                        yield waiting.pop(future), future.result()
            finally:
                for future in waiting:
                    future.cancel()


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
    done: dict[int, Regrets] = {}
    collect = one_thread(_collect)
    collect(engine.map(play, runs), runs, done, progress=progress)
    finished = sorted(done)
    if not finished:
        raise KeyboardInterrupt
    return Result({name: np.stack([done[run][name] for run in finished]) for name in templates}, runs_requested=runs)


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


def _collect(source: Played, runs: int, done: dict[int, Regrets], *, progress: bool | None) -> None:
    """Take what comes, until all is there or Ctrl-C."""
    with suppress(KeyboardInterrupt), closing(source), show_progress("runs", runs, progress=progress) as advance:
        for run, regrets in source:
            done[run] = regrets
            advance()


def _check_template(name: str, policy: LinearPolicy, world: World) -> LinearPolicy:
    if not isinstance(policy, LinearPolicy):
        raise InputError(f"policies[{name!r}] must be a Latecomer policy, such as OTFLinUCB(...); got {policy!r}")
    if policy.dim != world.dim:
        raise InputError(f"policies[{name!r}] must have the world's dim, {world.dim}; got {policy.dim}")
    if not isinstance(policy.window, int):
        raise InputError(f"policies[{name!r}] must have its window in rounds, as the world has; got {policy.window!r}")
    return policy.fresh(0)  # what it has played stays here: only its parameters matter, and travel
