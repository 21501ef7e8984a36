"""Champion and challenger on PostgreSQL: processes that share a database fold the same rounds in both policies."""

from pathlib import Path

import numpy as np

import latecomer as lc
from latecomer.service.tools.copy_store import copy_store
from latecomer.service.tools.replay import open_for_replay, replay
from latecomer.service.tools.verify import verify

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])


def test_processes_share_a_contest(database: str, tmp_path: Path) -> None:
    challenger = {"policy": "LinUCB", "share": 0.5}
    with (
        lc.open(database, name="shop", dim=2, window=10, challenger=challenger) as first,
        lc.open(database, name="shop") as second,
    ):
        for t in range(40):
            answer = (first, second)[t % 2].decide(ROWS)
            if t % 3 == 0:
                assert (second, first)[t % 2].convert(answer) is lc.Verdict.ACCEPTED
        found = first.stats()
        assert found.contest is not None
        assert second.stats() == found
        assert found.contest.decisions + found.contest.other_decisions == 40 - 11  # open for eleven rounds
    assert any(line.startswith("shop: rows 1") for line in verify(database))
    copy_store(database, tmp_path / "copy.db")
    with lc.open(tmp_path / "copy.db", name="shop") as copied:
        assert copied.stats().contest == found.contest
    with open_for_replay(database) as store:
        promoted = replay(store, "shop", "promoted", promote=True)
        assert (promoted.rounds, promoted.contest) == (40, None)
