"""A long log is evaluated in bounded memory, in a process of its own."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from processes import run_python

PROGRAM = """
import latecomer as lc

log = lc.read_log({folder!r}, decision_id="decision_id", context=["country"])
assert log.decisions == {rows}
policies = {{"best": "19", "uniform": "uniform", "column": "planned"}}
found = lc.evaluate(log, policies, window="7d", estimator=["snips", "dr"])
assert abs(found.table.filter(policy="best", estimator="snips")["value"][0] / 0.029 - 1) < 0.1
status = open("/proc/self/status").read()  # getrusage has the peak of the process that forked this one, too
print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
"""


def write(folder: Path, rows: int) -> None:
    """Ten files, sixty days, twenty items that are chosen uniformly; item k converts at 1 % and k thousandths."""
    for part in range(10):
        rng, size = np.random.default_rng(part), rows // 10
        item, place = rng.integers(0, 20, size), np.arange(size) + part * size
        decided = 1.7e9 + place * (60 * 86_400.0 / rows)
        bought = decided + rng.exponential(86_400.0, size)
        seen = (rng.random(size) < 0.01 + 0.001 * item) & (bought <= 1.7e9 + 60 * 86_400.0)
        columns = {
            "decision_id": place,
            "decided_at": decided,
            "action": item,
            "propensity": np.full(size, 0.05),
            "converted_at": pl.Series(np.where(seen, bought, np.nan)).fill_nan(None),
            "country": rng.choice(["de", "fr", "it"], size),
            "planned": np.full(size, 19),
        }
        pl.DataFrame(columns).write_parquet(folder / f"{part}.parquet")


@pytest.mark.parametrize(
    ("rows", "megabytes"), [(500_000, 800), pytest.param(10_000_000, 1500, marks=pytest.mark.soak)]
)
def test_memory_is_bounded(rows: int, megabytes: int, tmp_path: Path) -> None:
    write(tmp_path, rows)
    assert float(run_python(PROGRAM.format(folder=str(tmp_path), rows=rows), timeout=1200.0)) < megabytes
