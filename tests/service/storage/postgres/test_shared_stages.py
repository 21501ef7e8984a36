"""Stages on a database that processes share: what one is told teaches the others' policies, to the same bits."""

import numpy as np

import latecomer as lc
from latecomer.service.tools.replay import open_for_replay, replay
from latecomer.service.tools.verify import verify

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
TAUGHT = {"stages": ["click"], "stage_prior": 0.5}


def test_processes_are_taught_by_the_stages_that_others_report(database: str) -> None:
    with lc.open(database, dim=2, window=20, policy="LinUCB", parameters=TAUGHT) as first, lc.open(database) as second:
        shops = (first, second)
        for visit in range(24):
            answer = shops[visit % 2].decide(ROWS)
            if visit % 2:
                assert shops[visit % 3 % 2].stage(answer, "click") == "accepted"
                assert shops[visit % 5 % 2].convert(answer) == "accepted"
        waiting = first.decide(ROWS)
        before = second.stats().theta_hat
        assert second.stage(waiting, "click") == "accepted"
        taught = first.stats()
        assert taught.theta_hat != before
        assert taught.stages["click"].surrogate == second.stats().stages["click"].surrogate
        assert taught.theta_hat == second.stats().theta_hat
        for visit in range(21):  # its window closes, in decisions of both
            shops[visit % 2].decide(ROWS)
        closed = [shop.stats() for shop in shops]
        assert closed[0] == closed[1]
    with lc.open(database) as again:
        assert again.stats() == closed[0]
    assert any(line.startswith("default: rows 1") for line in verify(database))
    with open_for_replay(database) as store:
        replayed = replay(store, "default", "again")
        assert (replayed.theta_hat, replayed.stages) == (closed[0].theta_hat, closed[0].stages)
