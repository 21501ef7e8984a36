"""The cost of a window: by theory, in memory, and the world to simulate it in, at the rate of the traffic."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from latecomer.core.state import ROUNDS_PER_BLOCK, block_dtype
from latecomer.experiments.window.grid import HOUR
from latecomer.experiments.window.source import KnownDelays
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.recommended import recommended
from latecomer.simulation import actions
from latecomer.simulation.world import World
from latecomer.theory.bounds import upper_bound

_ROUNDS_IN_ALL = 4_000_000
_MOST = 0.25


advised_policy: Callable[[int, int], LinearPolicy] = recommended
"""The policy whose windows are compared."""


@dataclass(frozen=True)
class Setting:
    """The service that the window is for, and how long to simulate it."""

    horizon: float
    """The time over which regret is counted, in seconds."""
    dim: int
    arms: int
    rounds: int
    """The largest number of rounds a run."""
    runs: int | None
    """The largest number of runs; None for as many as four million rounds hold, from 20 to 1,000."""
    seed: int

    def decisions(self, rate: float) -> int:
        """T, at so many decisions an hour."""
        return max(1, round(rate * self.horizon / HOUR))


@dataclass(frozen=True)
class Scale:
    """The size of a simulation of the service in a bounded number of rounds.

    Where there are too many decisions, a round stands for several: its one action converts as often as all of them
    would, as long as that is no more than a quarter of the time. What a round teaches is then what they would teach.
    """

    rounds: int
    """Rounds of a run."""
    most_runs: int
    each: float
    """Decisions that a round stands for."""
    pooled: float
    """Decisions that would convert as often as the round's action does."""
    rounds_an_hour: float
    conversion_rate: float
    """The share of rounds that convert."""


def choose_scale(known: KnownDelays, setting: Setting) -> Scale:
    """Choose a simulation as close to the service as `setting.rounds` allow."""
    rounds = min(setting.rounds, setting.decisions(known.rate))
    each = setting.decisions(known.rate) / rounds
    pooled = max(1.0, min(each, _MOST / known.conversion_rate))
    return Scale(
        rounds=rounds,
        most_runs=setting.runs or max(20, min(1000, _ROUNDS_IN_ALL // rounds)),
        each=each,
        pooled=pooled,
        rounds_an_hour=known.rate / each,
        conversion_rate=pooled * known.conversion_rate,
    )


def regret_bound(known: KnownDelays, setting: Setting, window: float) -> float:
    """Compute Theorem 2 with F_M(m) for τ_m: what is unknown, τ_M, is the same factor for every window."""
    share = known.at(window)[0]
    return upper_bound(
        setting.decisions(known.rate), dim=setting.dim, window=math.floor(known.rate * window / HOUR), tau=share
    )


def pending_bytes(known: KnownDelays, setting: Setting, window: float) -> float:
    """Compute the memory for the decisions that may still convert."""
    return known.rate * window / HOUR * block_dtype(setting.dim).itemsize / ROUNDS_PER_BLOCK


def make_world(known: KnownDelays, setting: Setting) -> World:
    """Make a world of normalised contexts in [0, 1]^d; θ ∝ (1, …, d) gives an average action its conversion rate."""
    scaled = choose_scale(known, setting)
    offer = actions.Uniform(setting.arms)
    slope = np.arange(1.0, setting.dim + 1.0)
    average = float(offer.sample(np.random.default_rng(0), 1024, slope).mean(axis=(0, 1)) @ slope)
    theta = slope * min(scaled.conversion_rate / average, 1.0 / float(np.linalg.norm(slope)))
    return World(theta=theta, actions=offer, delays=known.in_rounds(scaled.rounds_an_hour))
