"""A folder of files on a real Dask cluster gives what one process gives."""

from pathlib import Path

from decision_logs import make_log, read
from polars.testing import assert_frame_equal
from schedulers import Machines

import latecomer as lc
from latecomer.simulation.dask_engine import DaskEngine


def test_a_cluster_gives_the_same_to_the_last_bit(tmp_path: Path) -> None:
    table = make_log(1500)
    (tmp_path / "log").mkdir()
    for number in range(3):
        table[number * 500 : (number + 1) * 500].write_parquet(tmp_path / "log" / f"{number}.parquet")
    policies = {"best": "c", "rule": lambda context, items: 2 if context["country"] == "fr" else 1}
    here = lc.evaluate(read(tmp_path / "log"), policies, window="2d", estimator=["snips", "dr"])
    with Machines(tmp_path) as machines:
        machines.work()
        machines.work()
        engine = DaskEngine(machines.address)
        log = read(tmp_path / "log", engine=engine)
        there = lc.evaluate(log, policies, window="2d", estimator=["snips", "dr"], engine=engine)
    assert (log.decisions, log.items) == (1500, ("a", "b", "c"))
    assert_frame_equal(there.details, here.details, check_exact=True)
    assert there.warnings == here.warnings
