"""Policies against rivals and peers: regret, and the processor time that a round takes."""

from collections.abc import Mapping
from time import process_time

import polars as pl

from latecomer.core.state import Array
from latecomer.experiments.arena.arena import RECOMMENDED, PolicyMaker, choose_policies, run_world, score_table
from latecomer.experiments.arena.peers.table import find_peers
from latecomer.experiments.arena.result_folder import ResultFolder
from latecomer.experiments.arena.rivals.table import RIVALS
from latecomer.experiments.arena.worlds import ArenaWorld
from latecomer.experiments.paper.experiments import RELEASED_TS, RELEASED_UCB, TS, UNIFORM
from latecomer.policies.base.policy import LinearPolicy
from latecomer.simulation.simulate import Engine, simulate

WORLDS = ("B (100, 100)", "basis arms, .2 and .4")
"""One world of contexts, one of fixed arms, where every peer can play."""
OURS = (RECOMMENDED, RELEASED_UCB, RELEASED_TS, TS, "WaitingLinTS", "LogisticLinTS", UNIFORM)
TIMED_ROUNDS = 300
"""Rounds by which a rule outside of compiled code is timed."""


def compare(
    row: ArenaWorld, *, runs: int, slow_runs: int, seed: int, folder: ResultFolder, engine: Engine | None = None
) -> pl.DataFrame:
    """Return the table of scores of a world with a column `microseconds`; rivals and peers have `slow_runs` runs.

    All play on the same random numbers: the slow ones' runs are the first of the others'.
    """
    ours = choose_policies(OURS)
    slow = choose_policies([*RIVALS, *find_peers(fixed_arms=row.kind == "fixed")])
    finals = run_world(row, ours, runs=runs, seed=seed, engine=engine, folder=folder)
    few = ResultFolder(folder.path.with_name("rivals"), runs=slow_runs, seed=seed)
    slow_finals: dict[str, Array] = {}
    for name, make in slow.items():  # one by one, as each is kept when it is done: some take minutes
        slow_finals |= run_world(row, {name: make}, runs=slow_runs, seed=seed, engine=engine, folder=few)
    table = score_table(row, {**slow_finals, **finals})
    times = time_rounds(row, {**ours, **slow}, seed=seed)
    return table.with_columns(
        pl.col("policy").replace_strict(times, default=None, return_dtype=pl.Float64).alias("microseconds")
    )


def time_rounds(row: ArenaWorld, makers: Mapping[str, PolicyMaker], *, seed: int) -> dict[str, float]:
    """Return the processor time of a simulated round of each policy, in µs, the drawing of the world included."""
    times = {}
    for name, make in makers.items():
        template = make(row.world.dim, row.window)
        horizon = row.horizon if isinstance(template, LinearPolicy) else min(row.horizon, TIMED_ROUNDS)
        for _ in range(2):  # the first time compiles and imports
            start = process_time()
            simulate(row.world, {name: template}, horizon=horizon, runs=1, seed=seed, jobs=1, progress=False)
            times[name] = (process_time() - start) / horizon * 1e6
    return times
