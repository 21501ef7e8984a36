"""A grace on PostgreSQL: one process decides, another closes the window, a third credits what occurred in time."""

import time
from datetime import UTC, datetime

import numpy as np

import latecomer as lc
from latecomer.service.tools.replay import open_for_replay, replay


def test_processes_share_what_is_in_its_grace(database: str) -> None:
    with lc.open(database, name="shop", dim=2, window="1s", grace="1h") as first:
        answer = first.decide(np.eye(2))
        occurred = datetime.now(UTC)
        with lc.open(database, name="shop") as second:
            time.sleep(1.1)
            second.decide(np.eye(2))
            assert second.stats().pending == 1
        assert first.convert(answer, occurred_at=occurred) is lc.Verdict.ACCEPTED
        with lc.open(database, name="shop") as third:
            assert third.convert(answer, occurred_at=occurred) is lc.Verdict.DUPLICATE
            assert third.revoke(answer) is lc.Verdict.ACCEPTED
            assert third.stats().theta_hat == first.stats().theta_hat
    with open_for_replay(database) as store:
        assert replay(store, "shop", "none", grace="0s").conversions["late"] == 2
