"""Theorem 1, measured: ‖θ̂_t − τ_mθ‖_{V_t} against α_t = 2f_{t,δ} + W_t, in every round of every run."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel
from latecomer.core.linalg.products import multiply
from latecomer.core.ridge_statistics import estimate
from latecomer.core.state import Array, Ring, StateArray
from latecomer.core.width import pending_width_at
from latecomer.policies.base.algorithm import width
from latecomer.policies.otf_lin_ucb import OTFLinUCB
from latecomer.progress import announce
from latecomer.simulation.kernel import group_arrivals, run_block
from latecomer.simulation.logged_actions import Rows
from latecomer.simulation.run import Episode
from latecomer.simulation.simulate import Engine, ThreadEngine
from latecomer.simulation.world import BLOCK, World
from latecomer.tiers.tiered_kernel import TieredKernel

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Coverage:
    """deviation/radius by run and round; above 1 the confidence set does not cover."""

    ratios: Array
    delta: float

    @property
    def floor(self) -> float:
        """1 − 2δ, what Theorem 1 promises."""
        return 1.0 - 2.0 * self.delta

    @property
    def by_round(self) -> Array:
        """The share of runs in which every round up to t was covered."""
        return np.asarray((np.maximum.accumulate(self.ratios, axis=1) <= 1.0).mean(axis=0))


@kernel
def _ratio(states: StateArray, ring: Ring, target: Array, error: Array, product: Array) -> float:
    """‖θ̂ − target‖_V / α as of the next round."""
    state = states[0]
    estimate(state)
    for i in range(target.shape[0]):
        error[i] = state.theta_hat[i] - target[i]
    multiply(state.V, error, product)
    total = 0.0
    for i in range(target.shape[0]):
        total += error[i] * product[i]
    return float(math.sqrt(total) / width(state, pending_width_at(state, ring, state.rounds + 1)))


@kernel
def _watch(
    states: StateArray,
    ring: Ring,
    actions: Array,
    means: Array,
    offers: Rows,
    first: int,
    uniforms: Array,
    starts: Integers,
    order: Integers,
    converts: Flags,
    regret: Array,
    target: Array,
    ratios: Array,
) -> None:
    """Run the simulator's loop, and measure before every round."""
    error, product = np.empty(target.shape[0]), np.empty(target.shape[0])
    draws = np.empty((1, 0))
    for i in range(offers.shape[0]):
        ratios[first + i] = _ratio(states, ring, target, error, product)
        run_block(
            states, ring, actions, means, offers[i : i + 1], draws, first + i,
            uniforms, starts, order, converts, regret,
        )  # fmt: skip


def _find_watch(policy: OTFLinUCB) -> TieredKernel:
    counts, numbers, flags = np.ones(1, np.int64), np.ones(1), np.ones(1, np.bool_)
    return policy.state.code.kernel(
        _watch, np.ones((1, policy.dim)), numbers, np.ones((1, 1), np.int32), 0, numbers, counts, counts, flags,
        numbers, numbers, numbers,
    )  # fmt: skip


def _watch_run(world: World, policy: OTFLinUCB, tau: float, horizon: int, seed: int, run: int) -> dict[str, Array]:
    episode = Episode(world, horizon, seed=seed, run=run)
    starts, order = group_arrivals(episode.delays)
    state = policy.fresh().state
    state.fit(min(horizon, state.span + 1 + BLOCK))
    watch = _find_watch(policy).prepare(horizon)
    ratios, regret, converts = np.empty(horizon), np.empty(horizon), np.zeros(horizon, np.bool_)
    for first in range(0, horizon, BLOCK):
        block = episode.block(first)
        watch(
            state.record, state.ring, block.actions, block.action_means, block.offers, first,
            episode.uniforms, starts, order, converts, regret, tau * world.theta, ratios,
        )  # fmt: skip
    return {"ratios": ratios}


def measure_coverage(
    world: World, policy: OTFLinUCB, *, horizon: int, runs: int, seed: int, engine: Engine | None = None
) -> Coverage:
    """Play OTFLinUCB, and compare its deviation with its radius before every round."""
    tau = float(world.delays.cdf(policy.window))
    play = partial(_watch_run, world, policy, tau, horizon, seed)
    if engine is None or isinstance(engine, ThreadEngine):
        _find_watch(policy).prepare(horizon, announce)
    done = dict((engine or ThreadEngine()).map(play, runs))
    return Coverage(np.stack([done[run]["ratios"] for run in sorted(done)]), float(policy.parameters["delta"]))
