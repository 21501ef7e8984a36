"""SplitMix64 inside kernels, for algorithms that cannot say in advance how many random numbers a decision takes."""

import math
from typing import Any

import numpy as np

from latecomer.core.jit import kernel, vectorised
from latecomer.core.state import State

_BITS = 2**64 - 1


def _mix(seed: int) -> tuple[int, float]:
    z = seed = (int(seed) + 0x9E3779B97F4A7C15) & _BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _BITS
    z = z ^ (z >> 31)
    return seed, (float(z >> 12) + 0.5) / 4503599627370496.0


@vectorised(_mix)
def mix(seed: int) -> tuple[int, float]:
    """Return the generator's next state, and a number in (0, 1) made of it."""
    z: Any = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)
    after = z
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return after, (float(z >> np.uint64(12)) + 0.5) / 4503599627370496.0  # 2^52: one bit more would round up to 1


@kernel
def reseed(state: State, normal: float) -> None:
    """Seed the generator by the bits of a normal number from the policy's generator."""
    bits = np.empty(1)
    bits[0] = normal
    state.seed = bits.view(np.uint64)[0]


@kernel
def uniform(state: State) -> float:
    """Draw a uniform number in (0, 1)."""
    state.seed, number = mix(state.seed)
    return number


@kernel
def normal(state: State) -> float:
    """Draw a standard normal number, after Box and Muller."""
    return math.sqrt(-2.0 * math.log(uniform(state))) * math.cos(2.0 * math.pi * uniform(state))


@kernel
def gamma(state: State, shape: float) -> float:
    """Draw from Gamma(shape, 1), after Marsaglia and Tsang; a shape below 1 is raised by one and scaled back."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(state) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x)
        if v > 0.0 and math.log(uniform(state)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v
