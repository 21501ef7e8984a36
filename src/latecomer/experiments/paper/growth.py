"""Theorems 2 and 3 beside measured regret, as T grows: the two bandits of the lower bound, with the gap of each T."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from latecomer.core.state import Array
from latecomer.delays import Geometric
from latecomer.policies.otf_lin_ucb import OTFLinUCB
from latecomer.simulation.actions import Fixed, Uniform
from latecomer.simulation.simulate import Engine, prepare_here, simulate
from latecomer.simulation.world import World
from latecomer.theory.bounds import gap, lower_bound, upper_bound, vacuous_until

DIM, WINDOW, MEAN_DELAY = 2, 5, 2
"""Two arms, a short window: the setting in which the upper bound says anything at a horizon that can be simulated."""


@dataclass(frozen=True, eq=False)
class Growth:
    """Regret by horizon: the worse of the two bandits, and the two bounds."""

    table: pl.DataFrame
    """horizon, gap; the worse bandit's mean regret and the worst run; the same with varying contexts; the bounds"""
    tau: float
    vacuous_until: int


def measure_growth(horizons: list[int], *, runs: int, seed: int, engine: Engine | None = None) -> Growth:
    """Play, for every T, both of Theorem 3's bandits, whose gap is tuned to that T."""
    delays = Geometric(mean=MEAN_DELAY)
    tau = float(delays.cdf(WINDOW))
    varying = World(theta=np.full(DIM, 1 / np.sqrt(DIM)), actions=Uniform(10), delays=delays)
    contexts = _simulate_regret(varying, max(horizons), runs, seed, engine)
    rows = []
    for horizon in horizons:
        delta = gap(horizon, arms=DIM, tau=tau)
        regrets = []
        for theta in ([0.5 + delta, 0.5], [0.5 + delta, 0.5 + 2 * delta]):
            world = World(theta=theta, actions=Fixed(np.eye(DIM)), delays=delays)
            regrets.append(_simulate_regret(world, horizon, runs, seed, engine)[:, -1])
        worse = max(regrets, key=np.mean)
        rows.append(
            {
                "horizon": horizon,
                "gap": delta,
                "regret": float(worse.mean()),
                "standard_error": float(worse.std(ddof=1) / np.sqrt(len(worse))),
                "worst_run": float(max(regret.max() for regret in regrets)),
                "contexts": float(contexts[:, horizon - 1].mean()),
                "contexts_worst_run": float(contexts[:, horizon - 1].max()),
                "theorem_2": upper_bound(horizon, dim=DIM, window=WINDOW, tau=tau),
                "theorem_3": lower_bound(horizon, arms=DIM, tau=tau),
            }
        )
    return Growth(pl.DataFrame(rows), tau, vacuous_until(dim=DIM, window=WINDOW, tau=tau))


def _simulate_regret(world: World, horizon: int, runs: int, seed: int, engine: Engine | None) -> Array:
    policies = {"ucb": OTFLinUCB(DIM, WINDOW)}
    prepare_here(engine, world, policies, horizon * runs)
    result = simulate(world, policies, horizon=horizon, runs=runs, seed=seed, engine=engine, progress=False)
    if not result.is_complete:
        raise KeyboardInterrupt
    return result.regret("ucb")
