"""The paper's experiments as data: worlds, policies, horizons; and its worlds with our own policy in them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from latecomer.delays import Criteo, DelayLaw, Geometric
from latecomer.experiments.paper.released_code import ReleasedTS, ReleasedUCB
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.otf_lin_ts import OTFLinTS
from latecomer.policies.otf_lin_ucb import OTFLinUCB
from latecomer.policies.recommended import recommended
from latecomer.policies.uniform import Uniform
from latecomer.simulation import actions
from latecomer.simulation.world import World

DIM, ARMS = 5, 10
HORIZON, HEAVY_HORIZON, HEAVY_WINDOW = 3000, 10_000, 2000
PANELS = ((100, 100), (500, 100), (100, 500))
"""(m, μ) of Figure 1."""

LAWS: dict[str, tuple[str, actions.ActionLaw]] = {
    "B": ("{0,1}^d, normalised, as the text says", actions.Binary(ARMS)),
    "U": ("[0,1]^d, normalised, as the released code does", actions.Uniform(ARMS)),
}

UNIFORM = "uniform play"
UCB, UCB_BUFFERED, TS = "OTFLinUCB, as stated", "OTFLinUCB, buffered", "OTFLinTS, as stated"
RELEASED_UCB, RELEASED_TS = "OTFLinUCB, as released", "OTFLinTS, as released"
OURS = "recommended (ours)"
COMPARED = (TS, RELEASED_UCB, RELEASED_TS)
"""The paper's policies that can do better than uniform play at its horizons."""
QUICK = (UCB_BUFFERED, *COMPARED, UNIFORM)
"""All but the exact width, which takes O(m·d) a round."""


@dataclass(frozen=True)
class Experiment:
    """A world and the policies to play in it."""

    world: World
    policies: Mapping[str, LinearPolicy]
    horizon: int


def make_theta() -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """θ = (1/√d, …, 1/√d)."""
    return np.full(DIM, 1.0 / np.sqrt(DIM))


def make_policies(window: int, *, sigma: float = 0.5) -> dict[str, LinearPolicy]:
    """Make the paper's policies, as stated and as released, and uniform play; λ = 1, δ = 0.1."""
    return {
        UCB: OTFLinUCB(DIM, window),
        UCB_BUFFERED: OTFLinUCB(DIM, window, width="buffered"),
        TS: OTFLinTS(DIM, window),
        RELEASED_UCB: ReleasedUCB(DIM, window),
        RELEASED_TS: ReleasedTS(DIM, window, sigma=sigma),
        UNIFORM: Uniform(DIM, window),
    }


def make_figure_1(law: str) -> dict[tuple[int, int], Experiment]:
    """Geometric delays, three pairs of window and mean delay."""
    return {
        (window, mean): Experiment(
            World(theta=make_theta(), actions=LAWS[law][1], delays=Geometric(mean=mean)), make_policies(window), HORIZON
        )
        for window, mean in PANELS
    }


def make_figure_3(law: str, delays: DelayLaw | None = None) -> Experiment:
    """Heavy-tailed delays, 100 seconds a round, m = 2000; the released sampling has σ0 = 1 here."""
    world = World(theta=make_theta(), actions=LAWS[law][1], delays=delays or Criteo())
    return Experiment(world, make_policies(HEAVY_WINDOW, sigma=1.0), HEAVY_HORIZON)


def _select_policies(window: int, *names: str, sigma: float = 0.5) -> dict[str, LinearPolicy]:
    """Return the paper's policies of these names, and ours."""
    every = make_policies(window, sigma=sigma)
    return {**{name: every[name] for name in names}, OURS: recommended(DIM, window)}


def make_window_sweep() -> dict[int, Experiment]:
    """The effect of m at a mean delay of 100."""
    world = World(theta=make_theta(), actions=LAWS["B"][1], delays=Geometric(mean=100))
    return {
        m: Experiment(world, _select_policies(m, *QUICK), HORIZON) for m in (5, 10, 25, 50, 100, 200, 500, 1000, 2000)
    }


def make_delay_sweep() -> dict[int, Experiment]:
    """The effect of the mean delay at m = 100."""
    return {
        mean: Experiment(
            World(theta=make_theta(), actions=LAWS["B"][1], delays=Geometric(mean=mean)),
            _select_policies(100, *QUICK),
            HORIZON,
        )
        for mean in (1, 5, 10, 25, 50, 100, 200, 500, 1000)
    }


def make_beyond(law: str, delays: DelayLaw | None = None) -> list[Experiment]:
    """Return the worlds of Figures 1 and 3 with our policy in them, beside the best of the paper's and uniform play."""
    worlds = [(window, experiment, 0.5) for (window, _), experiment in make_figure_1(law).items()]
    worlds.append((HEAVY_WINDOW, make_figure_3(law, delays), 1.0))
    return [
        Experiment(experiment.world, _select_policies(window, *COMPARED, UNIFORM, sigma=sigma), experiment.horizon)
        for window, experiment, sigma in worlds
    ]
