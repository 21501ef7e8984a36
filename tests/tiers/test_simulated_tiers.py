"""Both tiers of the simulator's loop do the same to the last bit."""

from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make

import latecomer as lc
from latecomer.experiments.paper.released_code import ReleasedTS, ReleasedUCB
from latecomer.simulation.kernel import group_arrivals, run_block
from latecomer.simulation.player import PolicyPlayer, find_block_kernel
from latecomer.simulation.run import Episode
from latecomer.tiers.interpreter import interpret

DIM, WINDOW = 5, 20
WORLD = lc.World(theta=np.full(DIM, 0.3), actions=lc.actions.Uniform(6), delays=lc.delays.Geometric(mean=15))
RELEASED: dict[str, Any] = {"ReleasedUCB": ReleasedUCB, "ReleasedTS": ReleasedTS}
DIFFERENT = ("OTFLinUCB-exact", "MaturedLinTS")
"""The loops that other tests compile; the soak has every policy's."""


@pytest.mark.parametrize(
    "name",
    [
        *DIFFERENT,
        *(pytest.param(name, marks=pytest.mark.soak) for name in (*EVERY_POLICY, *RELEASED) if name not in DIFFERENT),
    ],
)
def test_both_tiers_of_a_run_agree_to_the_last_bit(name: str) -> None:
    """The regret, what converts, and the state at the end."""
    template = RELEASED[name](DIM, WINDOW) if name in RELEASED else make(name, DIM, WINDOW)
    horizon = 300
    episode = Episode(WORLD, horizon, seed=5, run=0)
    ((first, block),) = episode.stretches()
    ends = []
    for loop in (partial(interpret, run_block), find_block_kernel(template, WORLD).compile()):
        player = PolicyPlayer(template, np.random.default_rng(3), cast(Any, loop), horizon)
        regret = np.zeros(horizon)
        player.play(
            block,
            first,
            uniforms=episode.uniforms,
            delays=episode.delays,
            arrivals=group_arrivals(episode.delays),
            regret=regret,
        )
        ends.append({"regret": regret, "converts": player.converts, **player._state.arrays()})
    plain, compiled = ends
    assert plain["converts"].any()
    assert plain.keys() == compiled.keys()
    for field in plain:
        np.testing.assert_array_equal(plain[field], compiled[field], err_msg=field)
