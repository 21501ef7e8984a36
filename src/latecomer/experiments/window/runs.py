"""Every window in the same runs, and more runs until the choice among them is clear."""

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np

from latecomer.core.linalg.blas import one_thread
from latecomer.core.state import Array
from latecomer.experiments.window.choice import Comparison, compare_windows
from latecomer.experiments.window.cost import Setting, advised_policy, choose_scale, make_world
from latecomer.experiments.window.grid import HOUR
from latecomer.experiments.window.source import KnownDelays
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.uniform import Uniform
from latecomer.progress import announce, show_progress
from latecomer.simulation.run import play_run
from latecomer.simulation.simulate import Engine, Regrets, prepare_here
from latecomer.simulation.world import World
from latecomer.tiers.tiered_kernel import Announce

UNIFORM = "uniform play"
_FIRST_LOOK = 10


class PairedRuns:
    """Runs on common random numbers: run i has the same actions, rewards, delays and draws for every window."""

    def __init__(self, known: KnownDelays, setting: Setting, windows: Sequence[float], *, engine: Engine) -> None:
        scaled = choose_scale(known, setting)
        self._names = [f"{window}" for window in windows]
        policies: dict[str, LinearPolicy] = {UNIFORM: Uniform(setting.dim, 0)}
        for name, window in zip(self._names, windows, strict=True):
            policies[name] = advised_policy(setting.dim, math.floor(scaled.rounds_an_hour * window / HOUR))
        self._world, self._policies, self._rounds = make_world(known, setting), policies, scaled.rounds
        self._play = partial(_play, self._world, policies, scaled.rounds, setting.seed)
        self._lost = scaled.each / scaled.pooled  # conversions that one of the simulated ones stands for
        self._engine = engine
        self._done: dict[int, Regrets] = {}

    @property
    def count(self) -> int:
        """Runs that are done."""
        return len(self._done)

    @property
    def costs(self) -> Array:
        """(windows, runs): conversions lost over the horizon."""
        return np.stack([self._column(name) for name in self._names])

    @property
    def uniform(self) -> Array:
        """(runs,): conversions lost by playing at random."""
        return self._column(UNIFORM)

    def prepare(self, announce: Announce | None) -> None:
        """Have machine code for a run, where runs are played here."""
        prepare_here(self._engine, self._world, self._policies, self._rounds, announce)

    def extend(self, runs: int, advance: Callable[[], None] = lambda: None) -> None:
        """Play more, until there are so many; what is done stays, whatever interrupts it."""
        first = self.count
        with closing(self._engine.map(partial(self._play, first), runs - first)) as played:
            for run, regrets in played:
                self._done[first + run] = regrets
                advance()

    def _column(self, name: str) -> Array:
        return np.concatenate([self._done[run][name] for run in sorted(self._done)]) * self._lost


def _play(
    world: World, policies: dict[str, LinearPolicy], rounds: int, seed: int, first: int, run: int
) -> dict[str, Array]:
    """Play a run and return the regret at the horizon alone; a function that pickles, for engines."""
    regrets = play_run(world, policies, horizon=rounds, seed=seed, run=first + run, common_draws=True)
    return {name: regret[-1:].copy() for name, regret in regrets.items()}


@dataclass(frozen=True, eq=False)
class Simulated:
    """The windows compared, and how far the simulation came."""

    comparison: Comparison
    regret: Array
    """Mean over the runs, by window."""
    standard_error: Array
    uniform: float
    """Mean regret of playing at random."""
    runs: int
    most_runs: int
    is_interrupted: bool


def look_schedule(most: int) -> list[int]:
    """Numbers of runs after which to look: 10, 20, 40, … and the most."""
    looks = []
    look = _FIRST_LOOK
    while look < most:
        looks.append(look)
        look *= 2
    return [*looks, most]


@one_thread
def simulate_windows(
    known: KnownDelays, setting: Setting, windows: Sequence[float], *, engine: Engine, progress: bool | None
) -> Simulated:
    """Add runs until the choice is clear, the budget is spent, or Ctrl-C; two runs at least."""
    paired = PairedRuns(known, setting, windows, engine=engine)
    shares = np.array([known.at(window)[0] for window in windows])
    most = choose_scale(known, setting).most_runs
    looks, is_interrupted = look_schedule(most), False
    try:
        paired.prepare(None if progress is False else announce)
        with show_progress("runs, at most", most, progress=progress) as advance:
            for look in looks:
                paired.extend(look, advance)
                if compare_windows(paired.costs, paired.uniform, shares, looks=len(looks)).is_clear:
                    break
    except KeyboardInterrupt:
        is_interrupted = True
        if paired.count < 2:
            raise
    costs = paired.costs
    return Simulated(
        comparison=compare_windows(costs, paired.uniform, shares, looks=len(looks)),
        regret=costs.mean(axis=1),
        standard_error=costs.std(axis=1, ddof=1) / np.sqrt(paired.count),
        uniform=float(paired.uniform.mean()),
        runs=paired.count,
        most_runs=most,
        is_interrupted=is_interrupted,
    )
