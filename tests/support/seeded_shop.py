"""A seeded shop with a control share and late conversions, on a clock of its own, for the page and its report."""

import time
from pathlib import Path

import numpy as np
from fake_clocks import DAY, HOUR, SECOND, FakeClocks

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.store import Store

RATES = {"banner": 0.05, "bundle": 0.11, "coupon": 0.2, "nothing": 0.03}


def open_shop(path: Path, rounds: int = 3000, *, days: int = 6, seed: int = 7, now: int | None = None) -> Store:
    """Play `rounds` decisions over days up to `now` (seconds since 1970); conversions come hours to days later."""
    rng = np.random.default_rng(seed)
    clocks = FakeClocks((int(time.time()) if now is None else now) * SECOND - days * DAY)
    store, name = Store.open(path, clock=clocks), "offers"
    parameters = {"control": {"share": 0.25, "policy": "uniform"}, "seed": seed}
    store.create(name, BanditSpec(dim=4, window="2d", parameters=parameters))
    waiting: list[tuple[int, str]] = []
    step = days * DAY // rounds
    for _ in range(rounds):
        clocks.advance(int(step * rng.uniform(0.5, 1.5)))
        due = [item for item in waiting if item[0] <= clocks.elapsed]
        if due:
            waiting = [item for item in waiting if item[0] > clocks.elapsed]
            store.convert(name, [Conversion(decision) for _, decision in due])
        answer, _ = store.decide(name, np.eye(4), list(RATES))
        if rng.random() < RATES[str(answer.action_id)]:
            waiting.append((clocks.elapsed + int(rng.exponential(12 * HOUR)), answer.decision_id))
    return store
