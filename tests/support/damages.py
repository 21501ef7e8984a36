"""Damage to the bytes of a file: its end is missing, some bytes are others, or a block is zeros."""

from collections.abc import Callable

import numpy as np

Damage = Callable[[np.random.Generator, bytearray, int], bytearray]


def cut(generator: np.random.Generator, data: bytearray, tail: int) -> bytearray:
    """The file ends anywhere in its tail."""
    return data[: len(data) - int(generator.integers(1, min(len(data), tail) + 1))]


def flip(generator: np.random.Generator, data: bytearray, tail: int) -> bytearray:
    """One to eight bytes of its tail are others."""
    for _ in range(generator.integers(1, 9)):
        data[len(data) - int(generator.integers(1, min(len(data), tail) + 1))] ^= int(generator.integers(1, 256))
    return data


def blank(generator: np.random.Generator, data: bytearray, tail: int) -> bytearray:
    """A block of its tail is zeros, as after a write that never happened."""
    at = len(data) - int(generator.integers(1, min(len(data), tail) + 1))
    data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    return data
