"""A seeded shop with a control share, two segments, delays that drift and an outage, on a clock of its own."""

import time
from pathlib import Path

import numpy as np
from fake_clocks import DAY, HOUR, SECOND, FakeClocks

import latecomer as lc
from latecomer.service.bandit_spec import BanditSpec, ValueUnit
from latecomer.service.features import encode_features
from latecomer.service.messages import Conversion
from latecomer.service.store import Store

OFFERS = ["banner", "bundle", "coupon", "nothing"]
RATES = {"new": [0.05, 0.08, 0.22, 0.03], "returning": [0.04, 0.2, 0.07, 0.06]}
"""By kind of visitor, the share of purchases after each offer."""
AGES = (18, 70)


def make_spec(*, window: int | str = "2d", seed: int = 7, share: float = 0.25) -> BanditSpec:
    """Return the specification of the shop's bandit: declared features, a control share, and a unit."""
    sample = [{"visitor": "new", "age": 20.0}, {"visitor": "returning", "age": 60.0}]
    encoder = lc.Encoder(24, context=["visitor", "age"], actions=["offer"])
    encoder.fit(sample, actions=[{"offer": offer} for offer in OFFERS])
    return BanditSpec(
        dim=encoder.dim,
        window=window,
        parameters={"control": {"share": share, "policy": "uniform"}, "seed": seed},
        encoder=encoder.spec,
        unit=ValueUnit(name="EUR", scale=40.0),
    )


def draw_visitor(rng: np.random.Generator) -> dict[str, str | float]:
    """Draw the context of a decision."""
    return {"visitor": str(rng.choice(list(RATES))), "age": float(rng.integers(*AGES))}


def open_shop(
    path: Path,
    rounds: int = 3000,
    *,
    days: int = 6,
    seed: int = 7,
    now: int | None = None,
) -> Store:
    """Play `rounds` decisions over days up to `now` (seconds since 1970).

    Conversions come hours later, at the end later than at the beginning; on the fourth day their feed is out for half
    a day, and delivers what it has when it is back.
    """
    rng = np.random.default_rng(seed)
    clocks = FakeClocks((int(time.time()) if now is None else now) * SECOND - days * DAY)
    store, name = Store.open(path, clock=clocks), "offers"
    store.create(name, make_spec(seed=seed))
    info, features = store.info(name), [{"offer": offer} for offer in OFFERS]
    waiting: list[tuple[int, str, float]] = []
    step = days * DAY // rounds
    for _ in range(rounds):
        clocks.advance(int(step * rng.uniform(0.5, 1.5)))
        now_ = clocks.elapsed
        is_out = 3 * DAY <= now_ < 3 * DAY + 12 * HOUR
        due = [] if is_out else [item for item in waiting if item[0] <= now_]
        if due:
            waiting = [item for item in waiting if item[0] > now_]
            store.convert(name, [Conversion(decision, value) for _, decision, value in due])
        context = draw_visitor(rng)
        rows = encode_features(info, context, features)
        answer, _ = store.decide(name, rows, OFFERS, described=(context, features))
        if rng.random() < RATES[str(context["visitor"])][answer.index]:
            mean = (6 + 12 * now_ / (days * DAY)) * HOUR
            waiting.append((now_ + int(rng.exponential(mean)), answer.decision_id, float(rng.choice([0.25, 0.5, 1.0]))))
    return store
