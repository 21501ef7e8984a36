"""Many runs, on all cores or many machines, with the same result to the last bit."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol

from latecomer.core.linalg.blas import one_thread
from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.policies.base.policy import LinearPolicy
from latecomer.progress import announce, show_progress
from latecomer.simulation.own_rule import FreshRule, Rule
from latecomer.simulation.player import Template, check_template, prepare
from latecomer.simulation.result import Result
from latecomer.simulation.run import trace_run
from latecomer.simulation.trace import Trace, Traces
from latecomer.simulation.world import World
from latecomer.tiers.tiered_kernel import Announce
from latecomer.validation import check_integer, check_positive

Regrets = dict[str, Array]
Outcome = dict[str, Any]
"""A run by policy: `Trace`, `Regrets`, or nothing where it has been put into its place."""
Played = Generator[tuple[int, Outcome], None, None]


class Engine(Protocol):
    """A place to play runs: it yields (run, its outcome) as they are done, in any order."""

    def map(self, play: Callable[[int], Outcome], runs: int) -> Played:
        """Play runs 0 … runs − 1."""


class ThreadEngine:
    """The cores of this machine; the kernels let go of Python's lock."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = check_integer("jobs", jobs, least=1) if jobs is not None else os.cpu_count() or 1

    def map(self, play: Callable[[int], Outcome], runs: int) -> Played:
        """Play runs 0 … runs − 1, a few ahead of what was taken, so that memory stays bounded.

        Threads take runs from one queue and put outcomes into another: 10 µs a run, where a pool of futures, which
        works under Python's lock too, takes 26 µs.
        """
        upcoming: SimpleQueue[int | None] = SimpleQueue()
        played: SimpleQueue[tuple[int, Outcome | _Failure]] = SimpleQueue()
        threads = [Thread(target=_play_upcoming, args=(play, upcoming, played)) for _ in range(min(self.jobs, runs))]
        ahead = min(2 * self.jobs, runs)
        try:
            for run in range(ahead):
                upcoming.put(run)
            for thread in threads:
                thread.start()
            for taken in range(runs):
                run, outcome = played.get()
                if isinstance(outcome, _Failure):
                    raise outcome.error
                if taken + ahead < runs:
                    upcoming.put(taken + ahead)
                yield run, outcome
        finally:
            _drain(upcoming)
            for _ in threads:
                upcoming.put(None)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()


@dataclass(frozen=True)
class _Failure:
    """An error, in the place of an outcome."""

    error: BaseException


def _play_upcoming(
    play: Callable[[int], Outcome],
    upcoming: "SimpleQueue[int | None]",
    played: "SimpleQueue[tuple[int, Outcome | _Failure]]",
) -> None:
    """Play runs until there is None."""
    for run in iter(upcoming.get, None):
        try:
            played.put((run, play(run)))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
            played.put((run, _Failure(error)))


def _drain(queue: "SimpleQueue[int | None]") -> None:
    with suppress(Empty):
        while True:
            queue.get_nowait()


def simulate(
    world: World,
    policies: Mapping[str, LinearPolicy | Callable[[], Rule] | FreshRule],
    *,
    horizon: int,
    runs: int,
    seed: int = 0,
    jobs: int | None = None,
    engine: Engine | None = None,
    progress: bool | None = None,
    common_draws: bool = False,
    per_day: float | None = None,
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
        Templates by name, with windows in rounds; they are copied, never changed. A rule of your own takes part too,
        outside of compiled code: give a class or a function without arguments that makes one, or an object with
        `fresh(seed)`. A rule has decide(actions) and convert(round); see `latecomer.simulation.own_rule.Rule`.
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
        A bar on standard error; by default where that is a terminal. With False, nothing is said of compiling either.
    common_draws
        Give every policy the same draws of its own, too: for policies of one kind that differ in a parameter, such as
        the window, their differences are then less noisy.
    per_day
        Decisions a day, for pictures and summaries in days; the simulation itself counts rounds.

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
    rate = None if per_day is None else check_positive("per_day", per_day)
    if not isinstance(world, World):
        raise InputError(f"world must be a World; got {world!r}")
    if not isinstance(policies, Mapping) or not all(isinstance(name, str) for name in policies):
        raise InputError(f"policies must be a dictionary of policies by name; got {policies!r}")
    templates = {name: check_template(name, policy, world) for name, policy in policies.items()}
    if not templates:
        raise InputError("policies must hold at least one policy; got none")
    _check_memory(len(templates) * runs * horizon * 8)
    play = partial(_play, world, templates, horizon, seed, common_draws, horizon * runs)
    traces = Traces(list(templates), runs, horizon)
    done: set[int] = set()
    collect = one_thread(_collect)
    engine = ThreadEngine(jobs) if engine is None else engine
    if isinstance(engine, ThreadEngine):
        prepare_here(engine, world, templates, horizon * runs, None if progress is False else announce)
        collect(engine.map(partial(_fill, traces, play), runs), traces, done, progress=progress)
    else:
        collect(engine.map(play, runs), traces, done, progress=progress)
    if not done:
        raise KeyboardInterrupt
    return Result(traces if len(done) == runs else traces.keep(sorted(done)), runs_requested=runs, per_day=rate)


def prepare_here(
    engine: Engine | None,
    world: World,
    templates: Mapping[str, Template],
    rounds: int,
    announce: Announce | None = announce,
) -> None:
    """Have machine code for so many rounds of each policy, where this process plays them; say what takes a while."""
    if engine is None or isinstance(engine, ThreadEngine):
        prepare(world, templates, rounds, announce)


def _check_memory(needed: int) -> None:
    """Refuse at once what would fail after an hour."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise InputError(
            f"policies × runs × horizon must fit into memory, {there / 1e9:.0f} GB; got {needed / 1e9:,.0f} GB: "
            "choose a shorter horizon, or fewer runs"
        )


def _play(
    world: World,
    templates: Mapping[str, Template],
    horizon: int,
    seed: int,
    common_draws: bool,
    rounds: int,
    run: int,
    traces: dict[str, Trace] | None = None,
) -> dict[str, Trace]:
    """Play a run; a function of the run alone, which pickles, for engines."""
    return trace_run(
        world,
        templates,
        horizon=horizon,
        seed=seed,
        run=run,
        common_draws=common_draws,
        rounds=rounds,
        traces=traces,
    )


def _fill(traces: Traces, play: Callable[[int, dict[str, Trace]], Outcome], run: int) -> Outcome:
    """Play a run into its place. To copy it there from another thread would take Python's lock again and again."""
    play(run, traces.of_run(run))
    return {}


def _collect(source: Played, traces: Traces, done: set[int], *, progress: bool | None) -> None:
    """Wait until all runs are played, or for Ctrl-C; copy those that are not in their place."""
    with suppress(KeyboardInterrupt), closing(source), show_progress("runs", traces.runs, progress=progress) as advance:
        for run, played in source:
            traces.put(run, played)
            done.add(run)
            advance()
