"""Advice from a log of which most rows are dirty: it says so before all else."""

from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from latecomer.errors import InputError
from latecomer.experiments.window.advice import advise_window

DAY = 86_400.0
START = 1_700_000_000.0
SMALL: dict[str, Any] = {"dim": 2, "rounds": 2000, "runs": 2, "horizon": timedelta(days=5), "progress": False}


def zeros_for_never(rows: int, converted: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    decided = START + np.sort(rng.uniform(0.0, 10 * DAY, rows))
    seen = np.arange(rows) % (rows // converted) == 0
    return pl.DataFrame(
        {"decided_at": decided, "converted_at": np.where(seen, decided + rng.exponential(3600.0, rows), 0.0)}
    )


def test_error_of_a_missing_rate_says_which_rows_were_skipped() -> None:
    message = (
        "where every row that was used has converted: .*; but 1,800 of 2,000 rows skipped: 1,800 × conversion before "
        r"decision; converted_at is 0\.0 in 1,800 of them, which probably means never: leave those cells empty$"
    )
    with pytest.raises(InputError, match=message):
        advise_window(zeros_for_never(2000, 200), **SMALL)


def test_most_rows_skipped_is_said_first() -> None:
    found = advise_window(zeros_for_never(2000, 200), rate=100, **SMALL)
    assert found.warning == (
        "WARNING: 1,800 of 2,000 rows were skipped, more than half: all that is said rests on the other 200."
    )
    assert found.finding.startswith(f"{found.warning} ")
    assert found.notes[0].startswith("1,800 of 2,000 rows skipped:")
    assert found.to_dict()["warning"] == found.warning
    assert repr(found).startswith(f"WindowAdvice(recommended={found.to_dict()['recommended']!r}, ")
    assert f" after 2 runs, from {found.facts['delays']}, skipped=1800)" in repr(found)
    assert "decisions" not in found.facts
    assert found.facts["decisions_in_horizon"] == 100 * 24 * 5


def test_half_of_the_rows_skipped_is_no_warning() -> None:
    found = advise_window(zeros_for_never(2000, 1000), rate=100, **SMALL)
    assert (found.warning, found.skipped) == ("", {"conversion before decision": 1000})
    assert not found.finding.startswith("WARNING")
