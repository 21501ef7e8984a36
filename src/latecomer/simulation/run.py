"""One run: every policy meets the same action sets, rewards and delays."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.delays import NEVER, DelayLaw, draw
from latecomer.delays.distribution import is_sequential
from latecomer.policies.base.policy import LinearPolicy
from latecomer.simulation.kernel import group_arrivals
from latecomer.simulation.player import Template, prepare, start
from latecomer.simulation.seeding import ACTIONS, DELAYS, POLICY, REWARDS, STAGES, make_generators, policy_purpose
from latecomer.simulation.stages import StageDraws, draw_stage
from latecomer.simulation.trace import Trace, Traces
from latecomer.simulation.world import BLOCK, Block, World

STRETCH = 2**16
"""Offers that are drawn at once from a list of actions: between stretches, a thread asks for Python's lock."""


class Episode:
    """The random numbers of one run, drawn block by block, so that a longer horizon has the same beginning."""

    def __init__(self, world: World, horizon: int, *, seed: int, run: int) -> None:
        self.world, self.horizon = world, horizon
        rewards, delays, self._actions = make_generators(seed, run, ((REWARDS,), (DELAYS,), (ACTIONS,)))
        self.uniforms: Array = rewards.random(horizon)
        self.delays = _draw_delays(world.delays, delays, horizon)
        self.uniforms[self.delays == NEVER] = math.inf  # then nothing converts
        self.stages: StageDraws | None = None
        if world.stage is not None:
            self.stages = draw_stage(world.stage, make_generators(seed, run, ((STAGES,),))[0], horizon)

    def block(self, first: int, rounds: int = BLOCK) -> Block:
        """Rounds first, first + 1, …; blocks come in order."""
        block = self.world.block(self._actions, rounds, first)
        return replace(block, offers=block.offers[: self.horizon - first])

    def stretches(self) -> Iterator[tuple[int, Block]]:
        """Yield all rounds in order: the first round of a stretch, and the stretch, which is one block or several.

        Offers of a list are the same, however many rounds are drawn at once.
        """
        count = self.world.listed_count
        rounds = BLOCK if count is None else min(self.horizon, max(1, STRETCH // count))
        for first in range(0, self.horizon, rounds):
            yield first, self.block(first, rounds)


def _draw_delays(law: DelayLaw, rng: np.random.Generator, horizon: int) -> Integers:
    """Draw the delays of a run; by blocks where a longer draw could begin otherwise."""
    if is_sequential(law):
        return draw(law, rng, horizon)
    return np.concatenate([draw(law, rng, BLOCK, first) for first in range(0, horizon, BLOCK)])[:horizon]


def trace_run(
    world: World,
    policies: Mapping[str, Template],
    *,
    horizon: int,
    seed: int,
    run: int,
    common_draws: bool = False,
    rounds: int = 0,
    traces: dict[str, Trace] | None = None,
) -> dict[str, Trace]:
    """Play one run, and return every policy's trace, or fill in `traces`; with `common_draws` all use the same draws.

    `rounds` is how many are to come in all runs together: enough of them are worth machine code.
    """
    prepare(world, policies, max(horizon, rounds))
    traces = Traces(list(policies), 1, horizon).of_run(0) if traces is None else traces
    episode = Episode(world, horizon, seed=seed, run=run)
    arrivals = group_arrivals(episode.delays)
    generators = make_generators(seed, run, [(POLICY,) if common_draws else policy_purpose(name) for name in policies])
    players = {
        name: start(template, generator, world, horizon, episode.stages)
        for (name, template), generator in zip(policies.items(), generators, strict=True)
    }
    for first, block in episode.stretches():
        for name, player in players.items():
            player.play(
                block,
                first,
                uniforms=episode.uniforms,
                delays=episode.delays,
                arrivals=arrivals,
                regret=traces[name].regret,
            )
    for name, player in players.items():
        traces[name].converted[:] = np.packbits(player.converts)
    return traces


def play_run(
    world: World,
    policies: Mapping[str, LinearPolicy],
    *,
    horizon: int,
    seed: int,
    run: int,
    common_draws: bool = False,
) -> dict[str, Array]:
    """Return the cumulative pseudo-regret of every policy in one run, as `trace_run` plays it."""
    traces = trace_run(world, policies, horizon=horizon, seed=seed, run=run, common_draws=common_draws)
    return {name: trace.regret for name, trace in traces.items()}
