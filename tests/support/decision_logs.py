"""Logs of decisions to read and to evaluate."""

from typing import Any

import numpy as np
import polars as pl

import latecomer as lc

START = 1_700_000_000


def tidy(offers: list[Any], **columns: Any) -> pl.DataFrame:
    """Return a table as the service exports it, with a row for each offer."""
    rows = len(offers)
    usual = {
        "decision_id": [f"d{i}" for i in range(rows)],
        "decided_at": [START + i for i in range(rows)],
        "context": [{"hour": i} for i in range(rows)],
        "actions": offers,
        "chosen": [0] * rows,
        "propensity": [0.5] * rows,
        "converted_at": [START + i + 5 if i % 2 else None for i in range(rows)],
        "value": [1.0 if i % 2 else None for i in range(rows)],
        "revoked": [False] * rows,
        "control": [i == 0 for i in range(rows)],
    }
    return pl.DataFrame(usual | columns, strict=False)


DAY = 86_400.0
CHANCES, RATES = np.array([0.7, 0.2, 0.1]), np.array([0.016, 0.02, 0.03])


def make_log(rows: int, *, seed: int = 0, slow_item: float = 1.0) -> pl.DataFrame:
    """Return a log of thirty days with a choice among three items, and conversions after a day on average.

    Conversions of "fr" are 1.5 times as frequent as the item's rate, of "de" 0.8 times; those of the item "c" take
    `slow_item` times as long.
    """
    rng = np.random.default_rng(seed)
    item, country = rng.choice(3, rows, p=CHANCES), rng.choice(["de", "fr"], rows)
    decided = START + np.arange(rows) * (30 * DAY / rows)
    sold = rng.random(rows) < RATES[item] * np.where(country == "fr", 1.5, 0.8)
    bought = decided + rng.exponential(DAY, rows) * np.where(item == 2, slow_item, 1.0)
    seen = sold & (bought <= decided.max())
    return pl.DataFrame(
        {
            "ts": decided,
            "item": np.array(list("abc"))[item],
            "p": CHANCES[item],
            "bought": pl.Series(np.where(seen, bought, np.nan)).fill_nan(None),
            "country": country,
        }
    )


def read(source: Any, **options: Any) -> lc.DecisionLog:
    """Read such a log."""
    names = {"decided_at": "ts", "action": "item", "propensity": "p", "converted_at": "bought", "context": ["country"]}
    return lc.read_log(source, **(names | options))
