"""Deferred decisions on PostgreSQL: one process defers, another activates, a third hears of the conversion."""

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import ConflictError
from latecomer.service.tools.replay import open_for_replay, replay


def test_processes_share_deferred_decisions(database: str) -> None:
    with lc.open(database, name="shop", dim=2, window="1d") as first:
        answer, other = (first.decide(np.eye(2), deferred=True, request_id=id_) for id_ in "ab")
        with lc.open(database, name="shop") as second:
            assert second.decide(np.eye(2), deferred=True, request_id="a") == answer
            second.decide(np.eye(2), request_id="plain")
            with pytest.raises(ConflictError, match="request_id 'plain' was used with another body"):
                first.decide(np.eye(2), deferred=True, request_id="plain")
            assert second.activate(answer) is lc.Verdict.ACCEPTED
        assert first.activate(answer) is lc.Verdict.DUPLICATE
        with lc.open(database, name="shop") as third:
            assert third.convert(answer) is lc.Verdict.ACCEPTED
            assert third.convert(other) is lc.Verdict.UNKNOWN
            assert third.stats().deferred == {"waiting": 1, "activated": 1, "expired": 0}
            assert third.stats().theta_hat == first.stats().theta_hat
        with lc.open(database, name="shop") as fourth:
            assert fourth.freeze() is lc.Verdict.ACCEPTED
        assert first.freeze() is lc.Verdict.DUPLICATE
        learnt = first._store.read_bandit("shop").policy.V
        assert first.convert(first.decide(np.eye(2))) is lc.Verdict.ACCEPTED
        assert first.stats().frozen
        np.testing.assert_array_equal(first._store.read_bandit("shop").policy.V, learnt)
    with open_for_replay(database) as store:
        assert replay(store, "shop", "again").deferred["waiting"] == 1
