"""Amounts, conversion ids and returns on a database that processes share."""

import numpy as np
import pytest

import latecomer as lc


def test_processes_share_baskets(database: str) -> None:
    reward = {"scale": 200, "unit": "EUR", "aggregate": "sum"}
    with lc.open(database, dim=2, window=2, reward=reward, returns=9) as first:
        answer = first.decide(np.eye(2))
        assert first.convert(answer, value=60.0, conversion_id="p") is lc.Verdict.ACCEPTED
        with lc.open(database) as second:
            assert second.convert(answer, value=60.0, conversion_id="p") is lc.Verdict.DUPLICATE
            assert second.convert(answer, value=40.0, conversion_id="q") is lc.Verdict.ACCEPTED
            for _ in range(5):
                second.decide(np.eye(2))  # the window closes
        assert first.stats().value == pytest.approx(100.0)
        assert first.revoke(conversion_id="q") is lc.Verdict.ACCEPTED
        assert first.revoke(answer, conversion_id="q") is lc.Verdict.DUPLICATE
    with lc.open(database) as again:
        assert again.stats().value == pytest.approx(60.0)
        assert again.stats().unit == "EUR"
        with lc.open(database) as other:
            assert other.correct(answer, 80.0) is lc.Verdict.ACCEPTED
            assert other.correct(answer, 80.0) is lc.Verdict.DUPLICATE
        assert again.stats().value == pytest.approx(80.0)
        assert again.revoke(answer) is lc.Verdict.ACCEPTED
