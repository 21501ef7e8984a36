"""A folder of files on a real Dask cluster gives what one process gives."""

from pathlib import Path

import pytest
from decision_logs import make_log, read
from polars.testing import assert_frame_equal
from schedulers import Machines

import latecomer as lc
from latecomer.simulation.dask_engine import DaskEngine


@pytest.mark.parametrize("estimator", ["snips", "dr"])
def test_a_cluster_gives_the_same_to_the_last_bit(estimator: str, tmp_path: Path) -> None:
    table = make_log(6000)
    (tmp_path / "log").mkdir()
    for number in range(3):
        table[number * 2000 : (number + 1) * 2000].write_parquet(tmp_path / "log" / f"{number}.parquet")
    policies = {"best": "c", "rule": lambda context, items: 2 if context["country"] == "fr" else 1}
    here = lc.evaluate(read(tmp_path / "log"), policies, window="2d", estimator=estimator)
    with Machines(tmp_path) as machines:
        machines.work()
        machines.work()
        engine = DaskEngine(machines.address)
        log = read(tmp_path / "log", engine=engine)
        there = lc.evaluate(log, policies, window="2d", estimator=estimator, engine=engine)
    assert (log.decisions, log.items) == (6000, ("a", "b", "c"))
    assert_frame_equal(there.details, here.details, check_exact=True)
    assert there.warnings == here.warnings
