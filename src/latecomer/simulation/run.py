"""One run: every policy meets the same action sets, rewards and delays."""

import zlib
from collections.abc import Mapping

import numpy as np

from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Integers
from latecomer.delays import DelayLaw, draw
from latecomer.delays.distribution import is_sequential
from latecomer.policies.base.policy import LinearPolicy
from latecomer.simulation.kernel import group_arrivals, run_block
from latecomer.simulation.world import BLOCK, Block, World, mean_rewards
from latecomer.tiers.tiered_kernel import Announce, TieredKernel

ACTIONS, REWARDS, DELAYS, POLICY = range(4)


def rng_for(seed: int, run: int, *purpose: int) -> np.random.Generator:
    """A generator for one purpose in one run: what others draw, or whether they are there, does not touch it."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(run, *purpose)))


def policy_rng(seed: int, run: int, name: str) -> np.random.Generator:
    """The generator that a policy of this name draws from."""
    return rng_for(seed, run, POLICY, zlib.crc32(name.encode()))


class Episode:
    """The random numbers of one run, drawn block by block, so that a longer horizon has the same beginning."""

    def __init__(self, world: World, horizon: int, *, seed: int, run: int) -> None:
        self.world, self.horizon = world, horizon
        self.uniforms: Array = rng_for(seed, run, REWARDS).random(horizon)
        self.delays = _draw_delays(world.delays, rng_for(seed, run, DELAYS), horizon)
        self._actions = rng_for(seed, run, ACTIONS)

    def block(self, first: int) -> Block:
        """Rounds first, first + 1, …; blocks come in order."""
        block = self.world.block(self._actions, BLOCK, first)
        return Block(block.actions, block.action_means, block.offers[: self.horizon - first])


def _draw_delays(law: DelayLaw, rng: np.random.Generator, horizon: int) -> Integers:
    """Draw the delays of a run; by blocks where a longer draw could begin otherwise."""
    if is_sequential(law):
        return draw(law, rng, horizon)
    return np.concatenate([draw(law, rng, BLOCK, first) for first in range(0, horizon, BLOCK)])[:horizon]


def find_block_kernel(policy: LinearPolicy) -> TieredKernel:
    """Return the simulator's loop for a policy's kind."""
    counts, numbers, flags = np.ones(1, np.int64), np.ones(1), np.ones(1, np.bool_)
    actions, offers, draws = np.ones((1, policy.dim)), np.ones((1, 1), np.int32), policy.rng.draws(0, policy.dim)
    return policy.state.code.kernel(
        run_block, actions, numbers, offers, draws, 0, numbers, counts, counts, flags, numbers
    )


def prepare(policies: Mapping[str, LinearPolicy], rounds: int, announce: Announce | None = None) -> None:
    """Have machine code for so many rounds of each policy, where that is worth waiting for it."""
    for kernel in (mean_rewards, group_arrivals, *map(find_block_kernel, policies.values())):
        kernel.prepare(rounds, announce)


def play_run(
    world: World,
    policies: Mapping[str, LinearPolicy],
    *,
    horizon: int,
    seed: int,
    run: int,
    common_draws: bool = False,
    rounds: int = 0,
) -> dict[str, Array]:
    """Return the cumulative pseudo-regret of every policy in one run; with `common_draws` all use the same draws.

    `rounds` is how many are to come in all runs together: enough of them are worth machine code.
    """
    prepare(policies, max(horizon, rounds))
    episode = Episode(world, horizon, seed=seed, run=run)
    starts, order = group_arrivals(episode.delays)
    players = {
        name: policy.fresh(rng_for(seed, run, POLICY) if common_draws else policy_rng(seed, run, name))
        for name, policy in policies.items()
    }
    regrets = {name: np.empty(horizon) for name in policies}
    converts = {name: np.zeros(horizon, np.bool_) for name in policies}
    kernels = {name: find_block_kernel(player) for name, player in players.items()}
    for player in players.values():
        player.state.fit(min(horizon, player.span + 2 + ROUNDS_PER_BLOCK))  # then a round closes in every round
    for first in range(0, horizon, BLOCK):
        block = episode.block(first)
        for name, player in players.items():
            kernels[name](
                player.state.record,
                player.state.ring,
                block.actions,
                block.action_means,
                block.offers,
                player.rng.draws(len(block.offers), world.dim),
                first,
                episode.uniforms,
                starts,
                order,
                converts[name],
                regrets[name],
            )
    return regrets
