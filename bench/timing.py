"""Times that can be compared on a machine whose speed drifts: short blocks of every side in turn, and the fastest.

Whatever else runs on the machine only ever adds to a block, and hits a long block more often than a short one: on a
busy machine medians would flatter the faster side. The fastest of many short blocks hardly moves.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from time import perf_counter

Block = Callable[[], object]

HOW = (
    "blocks of every side in turn (A, B, A, B, …) in one process; a time is the fastest block of its side, "
    "and a ratio that of two such times; processes: the median"
)


class Times:
    """Times in seconds of a unit of work in each block, by side."""

    def __init__(self, blocks: Mapping[str, list[float]]) -> None:
        self.blocks = blocks

    def __getitem__(self, side: str) -> float:
        """The fastest block, in seconds a unit."""
        return min(self.blocks[side])

    def ratio(self, slow: str, fast: str) -> float:
        return self[slow] / self[fast]

    def typical(self, side: str) -> float:
        """The median block, in seconds a unit: for what a user waits for."""
        return median(self.blocks[side])


def interleaved(sides: Mapping[str, tuple[Block, int]], *, repeats: int) -> Times:
    """Run every side's block in turn, `repeats` times; a side is its block and the units of work in it."""
    blocks: dict[str, list[float]] = {side: [] for side in sides}
    with quiet():
        for _ in range(repeats):
            for side, (block, units) in sides.items():
                start = perf_counter()
                block()
                blocks[side].append((perf_counter() - start) / units)
    return Times(blocks)


@contextmanager
def quiet() -> Iterator[None]:
    """No collection of garbage in the middle of a block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def micro(seconds: float) -> str:
    """Format seconds in microseconds, with three digits."""
    value = seconds * 1e6
    return f"{value:.3g} µs" if value < 1000 else f"{value:,.0f} µs"
