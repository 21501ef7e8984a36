"""The arena: every policy in every world, on the same random numbers.

A world is a table in `worlds.toml`; a policy is a line of `POLICIES`. The table of scores compares the regret at the
horizon: its mean, and its 95th percentile, for a policy that is ruinous in one run of twenty is not good.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from latecomer.core.state import Array
from latecomer.experiments.arena import worlds
from latecomer.experiments.arena.floor import KNOWN, UNDELAYED, make_floor
from latecomer.experiments.arena.peers.table import PEERS
from latecomer.experiments.arena.result_folder import ResultFolder
from latecomer.experiments.arena.rivals.table import RIVALS
from latecomer.experiments.arena.worlds import ArenaWorld
from latecomer.experiments.paper.experiments import RELEASED_TS, RELEASED_UCB, TS, UCB, UCB_BUFFERED, UNIFORM
from latecomer.experiments.paper.released_code import ReleasedTS, ReleasedUCB
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.greedy import Greedy
from latecomer.policies.matured_lin_ts import MaturedLinTS
from latecomer.policies.otf_lin_ts import OTFLinTS
from latecomer.policies.otf_lin_ucb import OTFLinUCB
from latecomer.policies.recommended import recommended
from latecomer.policies.registry import POLICIES as POLICY_MODULES
from latecomer.policies.registry import policy_class
from latecomer.policies.uniform import Uniform
from latecomer.simulation.own_rule import FreshRule
from latecomer.simulation.result import Result
from latecomer.simulation.simulate import Engine, simulate
from latecomer.simulation.world import World
from latecomer.validation import check_choice

PolicyMaker = Callable[[int, int], LinearPolicy | FreshRule]
"""A function of the dimension and the window."""

RECOMMENDED = "recommended"

PUBLISHED: Mapping[str, PolicyMaker] = {
    UCB: OTFLinUCB,
    UCB_BUFFERED: partial(OTFLinUCB, width="buffered"),
    TS: OTFLinTS,
    RELEASED_UCB: ReleasedUCB,
    RELEASED_TS: ReleasedTS,
    f"{RELEASED_TS}, σ0 = 1": partial(ReleasedTS, sigma=1.0),
}
"""The paper's policies, as stated and as released: the best of them in a world is what others are measured against."""

POLICIES: Mapping[str, PolicyMaker] = {
    RECOMMENDED: recommended,
    **PUBLISHED,
    "recommended, half-life 400": partial(recommended, half_life=400),
    "recommended, half-life 4000": partial(recommended, half_life=4000),
    "recommended, guard 4": partial(recommended, guard=4.0),
    "Greedy, guard 4": partial(Greedy, guard=4.0),
    "OTFLinUCB, tight": partial(OTFLinUCB, width="tight"),
    "OTFLinUCB, variance": partial(OTFLinUCB, width="variance"),
    "MaturedLinTS, c = 0.5": partial(MaturedLinTS, exploration=0.5),
    **{name: policy_class(name) for name in POLICY_MODULES if name not in ("OTFLinUCB", "OTFLinTS", "Uniform")},
    UNIFORM: Uniform,
}
"""Policies by name, made from the dimension and the window; all of the registry are here, some under a longer name."""

STAGED: Mapping[str, PolicyMaker] = {"recommended, by stages": partial(recommended, stages=["click"])}
"""Policies for worlds with a stage, played where they are named."""

RANDOM_POLICIES = (RECOMMENDED, *(name for name in PUBLISHED if name not in (UCB, UCB_BUFFERED)), UNIFORM)
"""Policies that random worlds are played by, unless others are named: without the theorem's widths, which are nowhere
the best published ones."""


def run_world(
    row: ArenaWorld,
    policies: Mapping[str, PolicyMaker],
    *,
    runs: int,
    seed: int,
    engine: Engine | None = None,
    folder: ResultFolder | None = None,
) -> dict[str, Array]:
    """Return the regret at the horizon by policy and run, and that of the two learners of the floor.

    What `folder` has is not played again; what is played is kept there.
    """
    templates: dict[str, tuple[World, LinearPolicy | FreshRule]] = {
        name: (row.world, make(row.world.dim, row.window)) for name, make in policies.items()
    }
    templates |= make_floor(row.world, row.window)
    made = {name: repr(template) for name, (_, template) in templates.items()}
    finals = folder.read(row, made) if folder else {}
    for world in (row.world, templates[UNDELAYED][0]):
        missing = {name: each[1] for name, each in templates.items() if each[0] is world and name not in finals}
        if missing:
            played = _simulate_to_the_end(world, missing, horizon=row.horizon, runs=runs, seed=seed, engine=engine)
            finals |= {name: played.final(name) for name in missing}
    if folder:
        folder.write(row, made, finals)
    return {name: finals[name] for name in templates}


def _simulate_to_the_end(world: World, policies: Mapping[str, LinearPolicy | FreshRule], **how: Any) -> Result:
    """Simulate all runs; raise `KeyboardInterrupt` where Ctrl-C left fewer, which do not compare."""
    result = simulate(world, policies, **how)
    if not result.is_complete:
        raise KeyboardInterrupt
    return result


def _ratio(value: float, reference: float) -> float:
    return value / reference if reference else np.nan


def score_table(row: ArenaWorld, finals: Mapping[str, Array]) -> pl.DataFrame:
    """Return a row for each policy: mean, standard error, 95th percentile, and their ratios to others' regret."""
    means = {name: float(values.mean()) for name, values in finals.items()}
    tails = {name: float(np.quantile(values, 0.95)) for name, values in finals.items()}
    published = [name for name in PUBLISHED if name in finals]
    best = min(published, key=means.__getitem__) if published else None
    return pl.DataFrame(
        {
            "world": [row.name] * len(finals),
            "kind": [row.kind] * len(finals),
            "policy": list(finals),
            "runs": [len(values) for values in finals.values()],
            "mean": list(means.values()),
            "standard_error": [float(values.std(ddof=1) / np.sqrt(len(values))) for values in finals.values()],
            "p95": list(tails.values()),
            "best_published": [best or ""] * len(finals),
            "to_best_published": [_ratio(means[name], means[best]) if best else np.nan for name in finals],
            "p95_to_best_published": [_ratio(tails[name], tails[best]) if best else np.nan for name in finals],
            "to_uniform": [_ratio(means[name], means.get(UNIFORM, 0.0)) for name in finals],
            "to_undelayed": [_ratio(means[name], means.get(UNDELAYED, 0.0)) for name in finals],
            "to_known": [_ratio(means[name], means.get(KNOWN, 0.0)) for name in finals],
        }
    )


def run_arena(
    rows: Iterable[ArenaWorld],
    policies: Mapping[str, PolicyMaker],
    *,
    runs: int,
    seed: int,
    engine: Engine | None = None,
    folder: ResultFolder | None = None,
) -> Iterator[tuple[ArenaWorld, pl.DataFrame]]:
    """Run world after world; yield each with its table of scores."""
    for row in rows:
        yield row, score_table(row, run_world(row, policies, runs=runs, seed=seed, engine=engine, folder=folder))


def choose_worlds(names: Iterable[str]) -> list[ArenaWorld]:
    """Return the worlds of these names."""
    every = worlds.load_worlds()
    return [every[check_choice("world", name, tuple(every))] for name in names]


def choose_policies(names: Iterable[str]) -> dict[str, PolicyMaker]:
    """Return the makers of the policies, rivals and peers of these names."""
    every: dict[str, PolicyMaker] = {**POLICIES, **STAGED, **RIVALS, **PEERS}
    return {name: every[check_choice("policy", name, tuple(every))] for name in names}
