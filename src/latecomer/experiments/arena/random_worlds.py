"""Random worlds: a stated family, so that no constant can be fitted to rows (in words: docs/explanation/arena.md)."""

from math import exp, log

import numpy as np

from latecomer import delays
from latecomer.core.state import Array
from latecomer.experiments.arena.worlds import ArenaWorld
from latecomer.simulation import actions
from latecomer.simulation.world import World

DIMS = (2, 3, 5, 8, 16)
COUNTS = (2, 5, 10, 20, 50)
HORIZONS = (1500, 3000, 6000)
ACTIONS = ("binary", "uniform", "sphere", "unit vectors", "random fixed", "rotating")
THETAS = ("spread", "sparse", "one large")
DELAYS = ("geometric", "lognormal", "pareto", "mixture")
LEAST_CONVERSIONS = 100.0
"""Conversions that uniform play must expect to see: a world that shows fewer teaches nobody, and is drawn again."""


def draw_worlds(count: int, *, seed: int) -> list[ArenaWorld]:
    """Draw worlds 0 … count − 1 of a seed; each depends on the seed and its number alone."""
    return [draw_world(seed, number) for number in range(count)]


def draw_world(seed: int, number: int) -> ArenaWorld:
    """Draw one world of the family."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    while True:
        world, name = _draw_world(rng)
        scale = _draw_between(rng, 3.0, 1000.0)
        law, delay_name = _draw_delays(rng, scale)
        world = World(
            theta=world.theta, actions=world.actions, delays=law, reward=world.reward, intercept=world.intercept
        )
        window = max(1, round(scale * _draw_between(rng, 0.1, 30.0)))
        horizon = int(rng.choice(HORIZONS))
        means = world.block(np.random.default_rng(0), 512).means
        if horizon * means.mean() * float(law.cdf(min(window, horizon // 2))) >= LEAST_CONVERSIONS:
            kind = "fixed" if isinstance(world.actions, actions.UnitVectors | actions.RandomFixed) else "contexts"
            text = f"random {number:03d}: {name}, {delay_name}, m = {window}, T = {horizon}"
            return ArenaWorld(text, kind, world, horizon, window)


def _draw_between(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform, rounded to three digits."""
    return float(f"{exp(rng.uniform(log(low), log(high))):.3g}")


def _draw_world(rng: np.random.Generator) -> tuple[World, str]:
    """Draw rewards and actions; delays come later."""
    dim, count = int(rng.choice(DIMS)), int(rng.choice(COUNTS))
    kind = str(rng.choice(ACTIONS))
    law = _make_actions(kind, count, arm_seed=int(rng.integers(2**31)))
    count = dim if kind == "unit vectors" else count
    if rng.random() < 0.2:
        base, strength = _draw_between(rng, 0.01, 0.3), _draw_between(rng, 1.0, 4.0)
        theta = strength * rng.standard_normal(dim)
        made = World(
            theta=theta, actions=law, delays=delays.Fixed(0), reward="logistic", intercept=log(base / (1.0 - base))
        )
        return made, f"d = {dim}, K = {count}, {kind}, logistic about {base:g}"
    rate, form = _draw_between(rng, 0.01, 0.95), str(rng.choice(THETAS))
    theta = _draw_theta(rng, form, dim)
    theta *= rate / (theta.max() if kind == "unit vectors" else np.linalg.norm(theta))
    made = World(theta=theta, actions=law, delays=delays.Fixed(0))
    return made, f"d = {dim}, K = {count}, {kind}, {form} up to {rate:g}"


def _make_actions(kind: str, count: int, *, arm_seed: int) -> actions.ActionLaw:
    made: dict[str, actions.ActionLaw] = {
        "binary": actions.Binary(count),
        "uniform": actions.Uniform(count),
        "sphere": actions.Sphere(count),
        "unit vectors": actions.UnitVectors(),
        "random fixed": actions.RandomFixed(count, arm_seed),
        "rotating": actions.Rotating(4 * count, count, 200, arm_seed),
    }
    return made[kind]


def _draw_theta(rng: np.random.Generator, form: str, dim: int) -> Array:
    """Draw θ ≥ 0 of any length: all features matter, about a quarter of them (one at least), or one ten times more."""
    if form == "spread":
        return rng.random(dim) + 0.01
    one = np.arange(dim) == rng.integers(dim)
    if form == "sparse":
        return np.where(one | (rng.random(dim) < 0.25), 0.5 + 0.5 * rng.random(dim), 0.0)
    return np.where(one, 1.0, 0.1)


def _draw_delays(rng: np.random.Generator, scale: float) -> tuple[delays.DelayLaw, str]:
    """Draw a law about a scale in rounds: a mean, a median, or the shorter of two means."""
    kind = str(rng.choice(DELAYS))
    if kind == "geometric":
        return delays.Geometric(mean=scale), f"geometric {scale:g}"
    if kind == "lognormal":
        sigma = float(rng.choice([0.5, 1.5, 2.5]))
        return delays.LogNormal(scale, sigma), f"log-normal {scale:g}, σ = {sigma:g}"
    if kind == "pareto":
        shape = float(rng.choice([0.5, 1.0, 2.0]))
        shortest = float(f"{scale / 2.0 ** (1.0 / shape):.3g}")
        return delays.Pareto(shape, max(shortest, 0.01)), f"Pareto {scale:g}, shape {shape:g}"
    return (
        delays.Mixture([delays.Geometric(mean=scale), delays.Geometric(mean=10.0 * scale)], [0.7, 0.3]),
        f"geometric {scale:g} and {10 * scale:g}",
    )
