"""A plain decision in a store, by bandits that differ in what they declare and do not use: none may be slower.

Each side has a store of its own on disk, and its decisions are plain: rows of numbers, no id, no subject. Blocks are
played in turn; the ratio is the median of those of two blocks of one turn. "The same again" shows how far it is noise.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from rows import Row, verdict
from timing import Times, micro, quiet

from latecomer.service.bandit_spec import BanditSpec, RewardSpec
from latecomer.service.store import Store

DIM, ARMS, BLOCK, REPEATS, WARM_UP = 5, 10, 40, 200, 10
MOST = 1.1
"""Times a plain decision of a bandit that declares nothing; that of another such one was 0.92 to 1.06 in seven runs."""
POLICY = "OTFLinTS"
PLAIN: dict[str, Any] = {"grace": "0s"}
DECLARED: dict[str, dict[str, Any]] = {
    "the same again": {"grace": "0s"},
    "grace": {"grace": "1d"},
    "amounts and returns": {"grace": "0s", "reward": RewardSpec(scale=200.0), "returns": "30d"},
    "subjects": {"grace": "0s", "attribution": "all"},
    "deferred decisions": {"grace": "0s", "activation_timeout": "1h"},
    "a catalogue": {"grace": "0s"},
    "stages, freezes, rankings": {"grace": "0s"},
}
"""By what a bandit declares, or has in its store, and a plain decision does not use."""


def rows() -> Iterator[Row]:
    sets = np.random.default_rng(0).uniform(-1.0, 1.0, (BLOCK, ARMS, DIM)) / np.sqrt(DIM)
    with TemporaryDirectory() as folder, ExitStack() as opened:
        stores = {
            name: opened.enter_context(_open(Path(folder) / f"{place}.db", name, parts))
            for place, (name, parts) in enumerate([("nothing", PLAIN), *DECLARED.items()])
        }
        times = _play_in_turn(stores, sets)
    plain = times.blocks["nothing"]
    ratios = {
        name: median(own / other for own, other in zip(times.blocks[name], plain, strict=True)) for name in DECLARED
    }
    worst = max(ratios, key=lambda name: ratios[name])
    yield Row(
        work="a plain decision in the store, features declared and unused",
        measured=f"at most x{ratios[worst]:.3f} ({worst})",
        must_reach=f"<= x{MOST:g} of one that declares none",
        verdict=verdict(ratios[worst] <= MOST),
        detail=f"{POLICY}, d={DIM}, K={ARMS}, {micro(times.typical('nothing'))} without any; "
        + "; ".join(f"{name} x{ratio:.3f}" for name, ratio in ratios.items()),
    )


def _play_in_turn(stores: dict[str, Store], sets: Any) -> Times:
    """Time a block of each store in turn; its commits end before the next one begins."""
    blocks: dict[str, list[float]] = {name: [] for name in stores}
    names = list(stores)
    with quiet():
        for turn in range(WARM_UP + REPEATS):
            first = turn % len(names)
            for name in [*names[first:], *names[:first]]:  # none is always after the same other
                store = stores[name]
                start = perf_counter()
                for actions in sets:
                    _, ticket = store.decide("shop", actions)
                took = perf_counter() - start
                store.wait(ticket)
                if turn >= WARM_UP:
                    blocks[name].append(took / len(sets))
    return Times(blocks)


def _open(path: Path, name: str, parts: dict[str, Any]) -> Store:
    store = Store.open(path)
    store.create("shop", BanditSpec(dim=DIM, window="7d", policy=POLICY, **parts))
    if name == "a catalogue":
        store.put_actions("shop", {str(place): row for place, row in enumerate(np.eye(DIM))})
    if name == "stages, freezes, rankings":
        store.decide("shop", np.eye(DIM), k=2)
        store.freeze("shop", True)
        store.freeze("shop", False)
    return store


if __name__ == "__main__":
    os.environ["LATECOMER_COMPILE"] = "now"  # machine code from the first call
    for row in rows():
        print(row)
