"""SplitMix64 inside kernels, for algorithms that cannot say in advance how many random numbers a decision takes."""

import math
from typing import Any

import numpy as np

from latecomer.core.jit import kernel, vectorised
from latecomer.core.state import Array, State

_BITS = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(seed: int) -> tuple[int, float]:
    z = seed = (int(seed) + _GOLDEN) & _BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _BITS
    z = z ^ (z >> 31)
    return seed, (float(z >> 12) + 0.5) / 4503599627370496.0


@kernel
def _finalise(z: Any) -> Any:
    """Return 52 mixed bits of a state, or of an array of states."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) >> np.uint64(12)


@vectorised(_mix)
def mix(seed: int) -> tuple[int, float]:
    """Return the generator's next state, and a number in (0, 1) made of it."""
    after: Any = np.uint64(seed) + np.uint64(_GOLDEN)
    return after, (float(_finalise(after)) + 0.5) / 4503599627370496.0  # 2^52: one bit more would round up to 1


@kernel
def seed_from(number: float) -> Any:
    """Return the bits of a number from the policy's generator, as a seed."""
    bits = np.empty(1)
    bits[0] = number
    return bits.view(np.uint64)[0]


@kernel
def reseed(state: State, normal: float) -> None:
    """Seed the state's generator by the bits of a normal number from the policy's generator."""
    state.seed = seed_from(normal)


def _fill_normals(seed: int, out: Array) -> int:
    normals: list[float] = []
    while len(normals) < out.size:
        missing = (out.size + 1 - len(normals)) // 2
        states = np.uint64(seed) + np.uint64(_GOLDEN) * np.arange(1, 2 * missing + 1, dtype=np.uint64)
        numbers = 2.0 * ((_finalise(states).astype(np.float64) + 0.5) / 4503599627370496.0) - 1.0
        x, y = numbers[::2], numbers[1::2]
        squares = x * x + y * y
        inside = squares < 1.0
        logs = np.array([math.log(square) for square in squares[inside].tolist()])
        radii = np.sqrt(-2.0 * logs / squares[inside])
        normals += np.column_stack((radii * x[inside], radii * y[inside])).reshape(-1).tolist()
        seed = int(states[-1])
    out.reshape(-1)[:] = normals[: out.size]
    return seed


@vectorised(_fill_normals)
def fill_normals(seed: int, out: Array) -> int:
    """Fill a matrix with normal numbers, two of each point of the unit disc (Marsaglia); return the next seed."""
    columns, radius, y = out.shape[1], 0.0, 0.0
    for i in range(out.shape[0] * columns):
        if i % 2 == 0:
            x, square = 0.0, 1.0
            while square >= 1.0:
                seed, first = mix(seed)
                seed, second = mix(seed)
                x, y = 2.0 * first - 1.0, 2.0 * second - 1.0
                square = x * x + y * y
            radius = math.sqrt(-2.0 * math.log(square) / square)
            out[i // columns, i % columns] = radius * x
        else:
            out[i // columns, i % columns] = radius * y
    return seed


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
