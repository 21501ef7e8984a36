"""Time of a round by window and dimension, the window full.

The width alone is what an exact policy takes more than a buffered one: everything else in their rounds is the same.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from arrivals import Array, binary_sets, dense_sets
from rows import Row, verdict
from timing import Block, Times, interleaved, micro

import latecomer as lc

WINDOWS = (100, 1_000, 10_000)
WIDE_WINDOWS = (*WINDOWS, 1_000_000)
DIMS = (4, 8, 16, 64, 128, 256)
WINDOW_OF_DIMS = 1_000
BLOCK, REPEATS = 50, 100
FLAT = 1.5
LIKE_D = 1.25
"""The exponent of d up to which the width counts as growing like d: leaving one cache for the next costs something."""


def rows() -> Iterator[Row]:
    yield exact_windows()
    yield exact_dims()
    yield buffered_windows()


def exact_windows() -> Row:
    sides = {f"exact {m}": _decide_block(_filled("exact", m)) for m in WINDOWS}
    sides |= {f"buffered {m}": _decide_block(_filled("buffered", m)) for m in WINDOWS}
    times = interleaved({side: (block, BLOCK) for side, block in sides.items()}, repeats=REPEATS)
    steps = [times.ratio(f"exact {more}", f"exact {less}") / (more / less) for less, more in pairwise(WINDOWS)]
    growth = times.ratio(f"exact {WINDOWS[-1]}", f"exact {WINDOWS[0]}")
    widths = ", ".join(f"{m:,}: {_width(times, m)}" for m in WINDOWS)
    return Row(
        work="exact width, m 100 to 10,000, d=5",
        measured=f"x{growth:.1f} for x{WINDOWS[-1] // WINDOWS[0]}",
        must_reach="no faster than m",
        verdict=verdict(max(steps) <= 1.0),
        detail=f"decide, K=10: {_listed(times, 'exact', WINDOWS)}; the width alone {widths}",
    )


def exact_dims() -> Row:
    sides: dict[str, tuple[Block, int]] = {}
    for dim in DIMS:
        sides[f"exact {dim}"] = (_decide_block(_filled("exact", WINDOW_OF_DIMS, dim), dim), BLOCK)
        sides[f"buffered {dim}"] = (_decide_block(_filled("buffered", WINDOW_OF_DIMS, dim), dim), BLOCK)
    times = interleaved(sides, repeats=REPEATS)
    widths = [times[f"exact {dim}"] - times[f"buffered {dim}"] for dim in DIMS]
    exponent = float(np.polyfit(np.log(DIMS), np.log(widths), 1)[0])
    return Row(
        work=f"exact width, d {DIMS[0]} to {DIMS[-1]}, m={WINDOW_OF_DIMS:,}",
        measured=f"like d^{exponent:.2f}",
        must_reach=f"like d, not d²: exponent <= {LIKE_D}",
        verdict=verdict(exponent <= LIKE_D),
        detail="the width alone (exact less buffered) "
        + ", ".join(f"d={dim}: {micro(width)}" for dim, width in zip(DIMS, widths, strict=True))
        + f"; least squares on logarithms; the whole exact round {_listed(times, 'exact', DIMS)}",
    )


def buffered_windows() -> Row:
    sides = {f"buffered {m}": (_decide_block(_filled("buffered", m)), BLOCK) for m in WIDE_WINDOWS}
    times = interleaved(sides, repeats=REPEATS)
    growth = max(times.ratio(f"buffered {m}", f"buffered {WIDE_WINDOWS[0]}") for m in WIDE_WINDOWS)
    return Row(
        work="buffered width, m 100 to 1,000,000, d=5",
        measured=f"x{growth:.2f}",
        must_reach=f"flat, within {FLAT} times",
        verdict=verdict(growth <= FLAT),
        detail=f"decide, K=10, slowest against m=100: {_listed(times, 'buffered', WIDE_WINDOWS)}",
    )


def _width(times: Times, window: int) -> str:
    return micro(times[f"exact {window}"] - times[f"buffered {window}"])


def _listed(times: Times, side: str, sizes: tuple[int, ...]) -> str:
    return ", ".join(f"{size:,}: {micro(times[f'{side} {size}'])}" for size in sizes)


def _sets(count: int, *, actions: int, dim: int) -> Array:
    rng = np.random.default_rng(dim)
    make = binary_sets if dim == 5 else dense_sets
    return make(rng, count, actions=actions, dim=dim)


def _filled(width: Literal["exact", "buffered"], window: int, dim: int = 5) -> Any:
    """A policy whose window is full. One action a set, for it is the window that matters."""
    policy = lc.OTFLinUCB(dim, window, width=width)
    if dim == 5:
        sets = _sets(min(window, 20_000) + 50, actions=1, dim=dim)
        while policy.rounds <= window:
            policy.decide_many(sets)
    else:  # decide is compiled for this dimension anyway, decide_many would be only for this
        for actions in _sets(window + 50, actions=1, dim=dim):
            policy.decide(actions)
    return policy


def _decide_block(policy: Any, dim: int = 5) -> Block:
    sets = list(_sets(BLOCK, actions=10, dim=dim))
    block = partial(_decide_all, policy, sets)
    block()
    return block


def _decide_all(policy: Any, sets: list[Array]) -> None:
    decide = policy.decide
    for actions in sets:
        decide(actions)
