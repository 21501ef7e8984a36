"""A small log of decisions with their offers, as a service exports it."""

from datetime import UTC, datetime

import numpy as np
import polars as pl

START = datetime(2026, 1, 5, tzinfo=UTC).timestamp()


def make_table(rows: int, seed: int = 0, dim: int = 3) -> pl.DataFrame:
    """Draw a log: offers of one to four actions, whole seconds, some conversions too late."""
    rng = np.random.default_rng(seed)
    decided = START + np.cumsum(1.0 + np.floor(rng.exponential(60.0, rows)))
    offers = [rng.random((int(rng.integers(1, 5)), dim)).astype(np.float32) / 2 for _ in range(rows)]
    delays = np.where(rng.random(rows) < 0.3, np.floor(rng.exponential(4000.0, rows)), np.nan)
    return pl.DataFrame(
        {
            "decided_at": decided,
            "actions": [offer.tolist() for offer in offers],
            "chosen": [int(rng.integers(len(offer))) for offer in offers],
            "propensity": [1.0 / len(offer) for offer in offers],
            "converted_at": pl.Series(decided + delays).fill_nan(None),
            "value": rng.random(rows),
        }
    )
