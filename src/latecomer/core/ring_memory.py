"""The memory of a ring: it grows and shrinks with the number of rounds held.

A large ring is the beginning of address space that is its own and has room for more: it grows there without a copy,
which would stop a server for a tenth of a second.
"""

import mmap

import numpy as np
import numpy.typing as npt

from latecomer.core.ring import spanned_blocks
from latecomer.core.state import ROUNDS_PER_BLOCK, Ring, StateArray, new_ring

_LARGE, _RESERVED = 1 << 22, 4
"""Bytes from which a ring has address space to grow in, and how many times its size."""


def resize(cell: StateArray, ring: Ring, blocks: int) -> Ring:
    """Return a ring of `blocks` blocks with the same rounds: the ring made longer, or a copy."""
    longer = _lengthen(cell, ring, blocks) if blocks > len(ring) else None
    return move(cell, ring, _reserve(ring, blocks)) if longer is None else longer


def move(cell: StateArray, ring: Ring, other: Ring) -> Ring:
    """Copy the rounds into an empty ring, the oldest in its first block; move the state's head."""
    first, spanned = _place_held(cell, ring)
    to_end = min(spanned, len(ring) - first)
    old, new = _as_bytes(ring), _as_bytes(other)  # field by field it takes NumPy twice as long
    new[:to_end] = old[first : first + to_end]
    new[to_end:spanned] = old[: spanned - to_end]
    cell["head"] = (cell["kept"][0] - 1) % ROUNDS_PER_BLOCK + cell["oldest"][0] - cell["kept"][0]
    return other


def _place_held(cell: StateArray, ring: Ring) -> tuple[int, int]:
    """Return the block of the oldest round held, and the number of blocks from there on that hold a round."""
    closed, count = int(cell["oldest"][0] - cell["kept"][0]), int(cell["rounds"][0] - cell["kept"][0] + 1)
    start = (int(cell["head"][0]) - closed) % max(1, len(ring) * ROUNDS_PER_BLOCK)
    return start // ROUNDS_PER_BLOCK, spanned_blocks(start, count)


def _lengthen(cell: StateArray, ring: Ring, blocks: int) -> Ring | None:
    """Make a ring longer in place; None where there is no memory behind it, or its rounds go on at its first block."""
    first, spanned = _place_held(cell, ring)
    memory = ring.base
    if first + spanned > len(ring) or not isinstance(memory, np.ndarray) or memory.dtype != np.uint8:
        return None
    start, size = ring.ctypes.data - memory.ctypes.data, blocks * ring.dtype.itemsize
    return memory[start : start + size].view(ring.dtype) if start + size <= len(memory) else None


def _reserve(ring: Ring, blocks: int) -> Ring:
    """Make an empty ring, with address space for more where it is large.

    Memory that has not been written is zero, and the system has no page for it. It is private, so that a process that
    is forked has its own.
    """
    size = blocks * ring.dtype.itemsize
    if size < _LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return new_ring(ring.dtype, blocks)
    try:
        space = mmap.mmap(-1, _RESERVED * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        return new_ring(ring.dtype, blocks)
    return np.frombuffer(space, np.uint8)[:size].view(ring.dtype)


def _as_bytes(ring: Ring) -> npt.NDArray[np.uint8]:
    """View a ring as bytes, a row for each block."""
    return ring.view(np.uint8).reshape(len(ring), ring.dtype.itemsize)
