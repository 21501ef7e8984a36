"""The arena: every policy in every world, on the same random numbers.

A world is a table in `worlds.toml`; a policy is a line of `POLICIES`. The table of scores compares the regret at the
horizon: its mean, and its 95th percentile, for a policy that is ruinous in one run of twenty is not good.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl

from latecomer.core.state import Array
from latecomer.delays import Fixed
from latecomer.errors import InputError
from latecomer.experiments.experiment_file import parse_world, read_toml
from latecomer.experiments.paper.experiments import RELEASED_TS, RELEASED_UCB, TS, UCB, UCB_BUFFERED, UNIFORM
from latecomer.experiments.paper.released_code import ReleasedTS, ReleasedUCB
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.matured_lin_ts import MaturedLinTS
from latecomer.policies.otf_lin_ts import OTFLinTS
from latecomer.policies.otf_lin_ucb import OTFLinUCB
from latecomer.policies.recommended import recommended
from latecomer.policies.registry import POLICIES as POLICY_MODULES
from latecomer.policies.registry import policy_class
from latecomer.policies.uniform import Uniform
from latecomer.simulation.result import Result
from latecomer.simulation.simulate import Engine, simulate
from latecomer.simulation.world import World
from latecomer.validation import check_choice, check_integer

KINDS = ("paper", "fixed", "contexts")
RECOMMENDED, UNDELAYED = "recommended", "without delay"

PUBLISHED: Mapping[str, Callable[[int, int], LinearPolicy]] = {
    UCB: OTFLinUCB,
    UCB_BUFFERED: partial(OTFLinUCB, width="buffered"),
    TS: OTFLinTS,
    RELEASED_UCB: ReleasedUCB,
    RELEASED_TS: ReleasedTS,
    f"{RELEASED_TS}, σ0 = 1": partial(ReleasedTS, sigma=1.0),
}
"""The paper's policies, as stated and as released: the best of them in a world is what others are measured against."""

POLICIES: Mapping[str, Callable[[int, int], LinearPolicy]] = {
    RECOMMENDED: recommended,
    **PUBLISHED,
    "OTFLinUCB, tight": partial(OTFLinUCB, width="tight"),
    "MaturedLinTS, c = 0.5": partial(MaturedLinTS, exploration=0.5),
    **{name: policy_class(name) for name in POLICY_MODULES if name not in ("OTFLinUCB", "OTFLinTS", "Uniform")},
    UNIFORM: Uniform,
}
"""Policies by name, made from the dimension and the window; all of the registry are here, some under a longer name."""


@dataclass(frozen=True)
class ArenaWorld:
    """A world of the arena."""

    name: str
    kind: str
    world: World
    horizon: int
    window: int


def load_worlds() -> dict[str, ArenaWorld]:
    """Load every world, by name, in the order of the file."""
    text = files("latecomer.experiments.arena").joinpath("worlds.toml").read_text(encoding="utf-8")
    return {name: _parse_row(name, dict(table)) for name, table in read_toml(text, "worlds.toml").items()}


def _parse_row(name: str, table: dict[str, object]) -> ArenaWorld:
    try:
        kind = check_choice("kind", table.pop("kind"), KINDS)
        horizon, window = (check_integer(key, table.pop(key), least=1) for key in ("horizon", "window"))
        return ArenaWorld(name, kind, parse_world(table), horizon, window)
    except KeyError as error:
        raise InputError(f"the arena's world {name!r} needs {error.args[0]}") from None


def run_world(
    row: ArenaWorld,
    policies: Mapping[str, Callable[[int, int], LinearPolicy]],
    *,
    runs: int,
    seed: int,
    engine: Engine | None = None,
) -> dict[str, Array]:
    """Return the regret at the horizon by policy and run, also of a policy that gets every reward without delay."""
    templates = {name: make(row.world.dim, row.window) for name, make in policies.items()}
    played = _simulate_to_the_end(row.world, templates, horizon=row.horizon, runs=runs, seed=seed, engine=engine)
    at_once = World(
        theta=row.world.theta,
        actions=row.world.actions,
        delays=Fixed(0),
        reward=row.world.reward,
        intercept=row.world.intercept,
    )
    learner = {UNDELAYED: MaturedLinTS(row.world.dim, 0)}
    undelayed = _simulate_to_the_end(at_once, learner, horizon=row.horizon, runs=runs, seed=seed, engine=engine)
    return {**{name: played.final(name) for name in templates}, UNDELAYED: undelayed.final(UNDELAYED)}


def _simulate_to_the_end(world: World, policies: Mapping[str, LinearPolicy], **how: Any) -> Result:
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
            "to_undelayed": [_ratio(means[name], means[UNDELAYED]) for name in finals],
        }
    )


def run_arena(
    *, worlds: list[str], policies: list[str], runs: int, seed: int, engine: Engine | None = None
) -> Iterator[tuple[ArenaWorld, pl.DataFrame]]:
    """Run world after world; yield each with its table of scores."""
    every = load_worlds()
    for name in worlds:
        check_choice("world", name, tuple(every))
    for name in policies:
        check_choice("policy", name, tuple(POLICIES))
    for name in worlds:
        row = every[name]
        finals = run_world(row, {each: POLICIES[each] for each in policies}, runs=runs, seed=seed, engine=engine)
        yield row, score_table(row, finals)
