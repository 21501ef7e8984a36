"""Generators for runs: one for each purpose, seeded as NumPy's `SeedSequence` would, many runs at once.

A generator for one purpose in one run is that of SeedSequence(seed, spawn_key=(run, *purpose)): what others draw, or
whether they are there, does not touch it. NumPy takes 15 µs to make one, under Python's lock. Of that, 12 µs are for
mixing the words of the seed, which is done here for many runs in as many operations on arrays as one run takes.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import PCG64, Generator
from numpy.random.bit_generator import ISeedSequence

ACTIONS, REWARDS, DELAYS, POLICY, STAGES = range(5)

Purpose = tuple[int, ...]
Words = npt.NDArray[np.uint32]
"""One word of each run's entropy."""
Mixed = npt.NDArray[np.uint64]
"""(runs, 4): what seeds PCG64."""

_RUNS = 256
"""Runs whose seeds are mixed at once."""
_POOL, _STATE = 4, 8
"""32-bit words of SeedSequence's pool, and those that PCG64 asks for."""
_MASK, _SHIFT = 2**32 - 1, np.uint32(16)


def policy_purpose(name: str) -> Purpose:
    """Return the purpose of a policy's own draws, by its name."""
    return POLICY, zlib.crc32(name.encode())


def make_generators(seed: int, run: int, purposes: Sequence[Purpose]) -> list[Generator]:
    """Make the generators of one run, one for each purpose."""
    batch, place = divmod(run, _RUNS)
    mixed = (_MixedSeed(words[place]) for words in _mix_batch(seed, batch, tuple(purposes)))
    return [Generator(PCG64(words)) for words in mixed]  # type: ignore[arg-type] # NumPy takes any ISeedSequence


class _MixedSeed:
    """The words of a seed, already mixed, as PCG64 takes them."""

    def __init__(self, words: Mixed) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Mixed:  # noqa: ARG002 - NumPy's
        """Return the words."""
        return self._words


ISeedSequence.register(_MixedSeed)


@lru_cache(maxsize=32)
def _mix_batch(seed: int, batch: int, purposes: tuple[Purpose, ...]) -> list[Mixed]:
    """Mix SeedSequence(seed, spawn_key=(run, *purpose)) for `_RUNS` runs; a list by purpose."""
    keys = [[word for number in purpose for word in _split(number)] for purpose in purposes]
    mixed = {
        length: _mix_keys(seed, batch, [key for key in keys if len(key) == length]) for length in {*map(len, keys)}
    }
    return [next(mixed[len(key)]) for key in keys]


def _mix_keys(seed: int, batch: int, keys: list[list[int]]) -> Iterator[Mixed]:
    """Yield what `_mix_batch` returns, for purposes of as many words, all in one go."""
    low, *high = _split(batch * _RUNS)
    start = _split(seed)
    start += [0] * (_POOL - len(start))  # a seed and a spawn key are not to be taken for a longer seed
    words = [np.full((len(keys), _RUNS), word, np.uint32) for word in (*start, 0, *high)]
    words[len(start)] += np.arange(low, low + _RUNS, dtype=np.uint32)
    words += [np.repeat(np.array(column, np.uint32)[:, None], _RUNS, axis=1) for column in zip(*keys, strict=True)]
    return iter(_spread(_gather(words)))


def _split(number: int) -> list[int]:
    """Split a number into 32-bit words, the lowest first, at least one."""
    words = [number & _MASK]
    while number := number >> 32:
        words.append(number & _MASK)
    return words


def _gather(words: Sequence[Words]) -> list[Words]:
    """Mix words of entropy into a pool, after O'Neill's seed_seq_fe, as SeedSequence does."""
    hash_word = _hashes(0x43B0D7E5, 0x931E8875)
    pool = [hash_word(word) for word in words[:_POOL]]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = _mix(pool[target], hash_word(pool[source]))
    for word in words[_POOL:]:
        for target in range(_POOL):
            pool[target] = _mix(pool[target], hash_word(word))
    return pool


def _spread(pool: Sequence[Words]) -> Mixed:
    """Make the words of a generator's state of a pool."""
    hash_word = _hashes(0x8B51F9DD, 0x58F38DED)
    state = np.stack([hash_word(pool[i % _POOL]) for i in range(_STATE)], axis=-1)
    return state.astype("<u4").view("<u8").astype(np.uint64)


def _hashes(start: int, factor: int) -> Callable[[Words], Words]:
    """Return a hash of words whose constant changes with every call."""
    constant = start

    def hash_word(word: Words) -> Words:
        nonlocal constant
        word = word ^ np.uint32(constant)
        constant = constant * factor & _MASK
        word = word * np.uint32(constant)
        return word ^ word >> _SHIFT

    return hash_word


def _mix(x: Words, y: Words) -> Words:
    mixed: Words = x * np.uint32(0xCA01F9DD) - y * np.uint32(0x4973F715)
    return mixed ^ mixed >> _SHIFT
