"""The compiled loop: a world's rounds through a policy's own kernels, `decide_and_record` and `apply_conversion`."""

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel, vectorised
from latecomer.core.state import UNSTAMPED, Array, Ring, StateArray
from latecomer.policies.base.conversion_kernels import apply_conversion
from latecomer.policies.base.kernels import decide_and_record
from latecomer.simulation.logged_actions import Rows
from latecomer.tiers.tiered_kernel import TieredKernel

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def _vectorised_group_arrivals(delays: Integers) -> tuple[Integers, Integers]:
    horizon = delays.shape[0]
    rounds = np.flatnonzero(delays < horizon - np.arange(horizon))
    arrivals = rounds + delays[rounds]
    starts = np.zeros(horizon + 2, np.int64)
    np.cumsum(np.bincount(arrivals, minlength=horizon + 1), out=starts[1:])
    return starts, rounds[np.argsort(arrivals, kind="stable")]


@vectorised(_vectorised_group_arrivals)
def _group_arrivals(delays: Integers) -> tuple[Integers, Integers]:
    """Rounds by the round in which their conversion would arrive: those of round t are order[starts[t]:starts[t+1]]."""
    horizon = delays.shape[0]
    starts = np.zeros(horizon + 2, np.int64)
    for s in range(horizon):
        if delays[s] < horizon - s:
            starts[s + delays[s] + 2] += 1
    for t in range(horizon + 1):
        starts[t + 1] += starts[t]
    order = np.empty(starts[horizon + 1], np.int64)
    for s in range(horizon):
        if delays[s] < horizon - s:
            slot = starts[s + delays[s] + 1]
            order[slot] = s
            starts[s + delays[s] + 1] += 1
    return starts, order


group_arrivals = TieredKernel(
    _group_arrivals, lambda: (np.ones(1, np.int64),), label="the order of arrivals", worthwhile=1_000_000
)


@kernel
def run_block(
    states: StateArray,
    ring: Ring,
    actions: Array,
    means: Array,
    offers: Rows,
    draws: Array,
    first: int,
    uniforms: Array,
    starts: Integers,
    order: Integers,
    converts: Flags,
    regret: Array,
) -> None:
    """Rounds first, first + 1, … of a run: decide, then credit what arrives; `regret` is cumulative.

    Round first + i offers the rows offers[i] of `actions`, whose mean rewards are `means`.
    """
    count, dim = offers.shape[1], states[0].B.shape[0]  # a constant of the state's type: copying is unrolled
    offered, scores = np.empty((count, dim)), np.empty(count)
    total = regret[first - 1] if first > 0 else 0.0
    for i in range(offers.shape[0]):
        t = first + i
        best = means[offers[i, 0]]
        for k in range(count):
            row = offers[i, k]
            for j in range(dim):
                offered[k, j] = actions[row, j]
            best = max(best, means[row])
        index = decide_and_record(states[0], ring, offered, UNSTAMPED, draws[i], scores)
        mean = means[offers[i, index]]
        total += best - mean
        regret[t] = total
        converts[t] = uniforms[t] < mean
        for j in range(starts[t], starts[t + 1]):
            if converts[order[j]]:
                apply_conversion(states, ring, order[j] + 1, 1.0, UNSTAMPED, UNSTAMPED)


@kernel
def run_dependent_block(
    states: StateArray,
    ring: Ring,
    actions: Array,
    means: Array,
    offers: Rows,
    draws: Array,
    first: int,
    uniforms: Array,
    delays: Integers,
    factors: Array,
    heads: Integers,
    links: Integers,
    converts: Flags,
    regret: Array,
) -> None:
    """Play rounds as `run_block` does, where action a's delay is its factor times that of the round.

    What arrives in round t is a list that begins with heads[t] − 1 and goes on with links, 0 at its end.
    """
    count, dim, horizon = offers.shape[1], states[0].B.shape[0], heads.shape[0]
    offered, scores = np.empty((count, dim)), np.empty(count)
    total = regret[first - 1] if first > 0 else 0.0
    for i in range(offers.shape[0]):
        t = first + i
        best = means[offers[i, 0]]
        for k in range(count):
            row = offers[i, k]
            for j in range(dim):
                offered[k, j] = actions[row, j]
            best = max(best, means[row])
        index = decide_and_record(states[0], ring, offered, UNSTAMPED, draws[i], scores)
        row = offers[i, index]
        total += best - means[row]
        regret[t] = total
        converts[t] = uniforms[t] < means[row]
        delay = int(min(delays[t] * factors[row], float(horizon)))  # rounded down
        if converts[t] and t + delay < horizon:
            links[t] = heads[t + delay]
            heads[t + delay] = t + 1
        arrived = heads[t]
        while arrived > 0:
            apply_conversion(states, ring, arrived, 1.0, UNSTAMPED, UNSTAMPED)
            arrived = links[arrived - 1]


@kernel
def run_ragged_block(
    states: StateArray,
    ring: Ring,
    actions: Array,
    means: Array,
    offers: Rows,
    draws: Array,
    first: int,
    uniforms: Array,
    starts: Integers,
    order: Integers,
    converts: Flags,
    regret: Array,
) -> None:
    """Play rounds as `run_block` does, with sets of any size: a smaller one ends with −1."""
    for i in range(offers.shape[0]):
        count = offers.shape[1]
        while offers[i, count - 1] < 0:
            count -= 1
        run_block(
            states, ring, actions, means, offers[i : i + 1, :count], draws[i : i + 1], first + i,
            uniforms, starts, order, converts, regret,
        )  # fmt: skip
