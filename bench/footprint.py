"""Memory of a pending decision: everything that the policy allocated, over the decisions it holds.

That is what tracemalloc knows of, and a large ring, which is mapped memory: the address space behind it has no pages.
"""

import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
from arrivals import dense_sets
from rows import Row, verdict

import latecomer as lc

MANY = 100_000
PENDING = {5: MANY, 50: 20_000}
"""An exact policy looks at every pending decision in every round: at d = 50, 100,000 of them would take minutes."""
WINDOWS: dict[str, int | timedelta] = {"rounds": 10 * MANY, "time": timedelta(days=30)}
STEP = 500
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows() -> Iterator[Row]:
    for dim, pending in PENDING.items():
        bound = 1.25 * (8 * dim + 40)
        weights = {unit: weight(dim, window, width="exact", pending=pending) for unit, window in WINDOWS.items()}
        worst = max(most for _, most in weights.values())
        measured = ", ".join(f"{at_end:.1f} with a window in {unit}" for unit, (at_end, _) in weights.items())
        buffered, _ = weight(dim, WINDOWS["rounds"], width="buffered", pending=MANY)
        yield Row(
            work=f"memory of a pending decision, exact, d={dim}",
            measured=f"{worst:.1f} bytes",
            must_reach=f"<= 1.25 (8d + 40) = {bound:g} bytes",
            verdict=verdict(worst <= bound),
            detail=f"the most at any moment between {pending // 2:,} and {pending:,} pending; at {pending:,}: "
            f"{measured}; buffered at {MANY:,}: {buffered:.1f}. All that the policy holds",
        )


def weight(
    dim: int, window: int | timedelta, *, width: Literal["exact", "buffered"], pending: int
) -> tuple[float, float]:
    """Bytes a pending decision at the end, and at the worst moment of the second half: a ring that has just grown."""
    sets = list(dense_sets(np.random.default_rng(0), STEP, actions=1, dim=dim))
    lc.OTFLinUCB(dim, window).decide(sets[0])  # compiles; what it loads belongs to no decision
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        policy = lc.OTFLinUCB(dim, window, width=width, clock=lambda: START)
        each: list[float] = []
        while policy.pending < pending:
            for actions in sets:
                policy.decide(actions)
            each.append((tracemalloc.get_traced_memory()[0] - before + _mapped(policy)) / policy.pending)
    finally:
        tracemalloc.stop()
    return each[-1], max(each[len(each) // 2 :])


def _mapped(policy: lc.OTFLinUCB) -> int:
    """Return the bytes of the ring that tracemalloc does not know of."""
    ring = policy.state.ring
    return 0 if ring.base is None or ring.base.flags.owndata else ring.nbytes
