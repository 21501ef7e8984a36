"""d = 512, K = 1000: a decision against the two BLAS calls that it cannot avoid, A·V⁻¹ and one rank-one update."""

from collections.abc import Iterator

import numpy as np
from arrivals import Array, dense_sets
from rows import Row, verdict
from scipy.linalg import blas
from threadpoolctl import threadpool_limits
from timing import Block, interleaved, micro

import latecomer as lc

DIM, ACTIONS, WINDOW = 512, 1000, 100
BLOCK, REPEATS = 2, 60
FACTOR = 1.3


def rows() -> Iterator[Row]:
    with threadpool_limits(1):
        yield _row()


def _row() -> Row:
    actions = dense_sets(np.random.default_rng(0), 1, actions=ACTIONS, dim=DIM)[0]
    exact, buffered = lc.OTFLinUCB(DIM, WINDOW), lc.OTFLinUCB(DIM, WINDOW, width="buffered")
    for policy in (exact, buffered):
        for _ in range(WINDOW + 1):
            policy.decide(actions[:1])
    products, updates = _products(actions), _updates(actions[0])
    sides: dict[str, Block] = {
        "exact": lambda: exact.decide(actions),
        "buffered": lambda: buffered.decide(actions),
        **products,
        **updates,
    }
    times = interleaved({side: (_repeated(call), BLOCK) for side, call in sides.items()}, repeats=REPEATS)
    product, update = min(products, key=times.__getitem__), min(updates, key=times.__getitem__)
    bound = times[product] + times[update]
    ratio = times["exact"] / bound
    others = ", ".join(
        f"{name} {micro(times[name])}" for name in (*products, *updates) if name not in (product, update)
    )
    return Row(
        work=f"decide at d={DIM}, K={ACTIONS}",
        measured=f"{ratio:.2f} times BLAS",
        must_reach=f"<= {FACTOR} times A·V⁻¹ + update",
        verdict=verdict(ratio <= FACTOR),
        detail=f"exact, m={WINDOW}: {micro(times['exact'])}, buffered {micro(times['buffered'])}; {product} "
        f"{micro(times[product])} + {update} {micro(times[update])} = {micro(bound)}, BLAS at one thread "
        f"(slower, so not counted: {others})",
    )


def _repeated(call: Block) -> Block:
    """More than once in a block, so that no side pays for the cache that the one before it has left."""
    return lambda: [call() for _ in range(BLOCK)]


def _products(A: Array) -> dict[str, Block]:
    """A·V⁻¹ into room that is there already. V⁻¹ is symmetric, so a C-ordered A can stay as it is."""
    V_inv = np.asfortranarray(np.eye(DIM) + 0.01)
    out, out_f = np.empty((ACTIONS, DIM)), np.empty((ACTIONS, DIM), order="F")
    A_f = np.asfortranarray(A)
    return {
        "dgemm (C-order)": lambda: blas.dgemm(1.0, V_inv, A.T, c=out.T, overwrite_c=1),
        "dgemm (F-order)": lambda: blas.dgemm(1.0, A_f, V_inv, c=out_f, overwrite_c=1),
    }


def _updates(a: Array) -> dict[str, Block]:
    """V += aaᵀ in place; a symmetric update writes one triangle, which is all that is needed."""
    V = np.asfortranarray(np.eye(DIM))
    return {
        "dger": lambda: blas.dger(1e-9, a, a, a=V, overwrite_a=1),
        "dsyr": lambda: blas.dsyr(1e-9, a, a=V, overwrite_a=1),
    }
