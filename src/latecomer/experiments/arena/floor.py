"""The floor: two learners that know what no policy can know, with the constants of `recommended`.

The learner without delay gets every reward at once: what it has less is the price of the delay. The learner that knows
the delay law weighs open rounds by the true F(age)/F(m): what it has less is the price of estimating it.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from latecomer.core.maturity import weigh_by_curve
from latecomer.core.state import Array, Integers, Ring, State
from latecomer.delays import DelayLaw, Fixed
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.matured_lin_ts import MaturedLinTS
from latecomer.policies.recommended import constants, recommended
from latecomer.simulation.world import World

UNDELAYED, KNOWN = "without delay", "knowing the delays"


def advance_time(state: State, ring: Ring, now: int) -> None:
    """Weigh every round by its true maturity at `now`."""
    weigh_by_curve(state, ring, now)


class KnownDelayLinTS(MaturedLinTS):
    """`MaturedLinTS` with the true delay law in place of its estimate, at the same 32 bin edges, for simulations.

    Where the law changes within a run, it is the law after the change; where delays depend on the action, it is the
    world's law without the action's factor, and knows no better than an estimate.

    Parameters
    ----------
    law
        The world's delay law.
    """

    algorithm = replace(MaturedLinTS.algorithm, name="KnownDelayLinTS", advance_time=advance_time)

    def __init__(self, dim: int, window: int, law: DelayLaw, **parameters: float) -> None:
        super().__init__(dim, window, **parameters)  # type: ignore[arg-type] # numbers, by name
        self.state.record["curve"][0] = true_curve(law, self.state.record["edges"][0], window)


def true_curve(law: DelayLaw, edges: Integers, window: int) -> Array:
    """Return P(D < edge | D ≤ window); 1 where nothing arrives within the window."""
    within = float(law.cdf(window))
    shares = np.asarray(law.cdf(edges - 1.0), np.float64)
    return np.minimum(shares / within, 1.0) if within > 0.0 else np.ones(len(edges))


def make_floor(world: World, window: int) -> Mapping[str, tuple[World, LinearPolicy]]:
    """Return both learners, by name, each with the world that it plays in."""
    at_once = World(
        theta=world.theta if world.schedule is None else world.schedule.given,
        actions=world.actions,
        delays=Fixed(0),
        reward=world.reward,
        intercept=world.intercept,
        change="jump" if world.schedule is None else world.schedule.change,
    )
    return {
        KNOWN: (world, KnownDelayLinTS(world.dim, window, world.delays, **constants(world.dim))),
        UNDELAYED: (at_once, recommended(world.dim, 0)),
    }
