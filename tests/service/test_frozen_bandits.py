"""A frozen bandit: it decides without learning, until it is unfrozen; after a restart and in a replay as before."""

from pathlib import Path

import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks

import latecomer as lc
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])


def play(store: Store, rounds: int) -> None:
    for _ in range(rounds):
        answer, _ = store.decide("shop", ROWS)
        store.wait(store.convert("shop", [Conversion(answer.decision_id)])[1])


def test_a_freeze_outlives_a_restart_and_is_replayed(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks, snapshot_every=3, retention="forever") as store:
        store.create("shop", BanditSpec(dim=2, window="7d", parameters={"seed": 1}))
        play(store, 5)
        learnt = store.read_bandit("shop").policy.V
        store.wait(store.freeze("shop", True)[1])
        play(store, 5)
        late = [store.decide("shop", ROWS)[0].decision_id for _ in range(2)]
        play(store, 4)  # past another snapshot
    with Store.open(path, clock=clocks, snapshot_every=3, retention="forever") as store:
        clocks.advance(DAY)
        assert store.stats("shop").frozen
        play(store, 2)
        heard = store.read_bandit("shop").policy.B
        assert store.convert("shop", [Conversion(id_) for id_ in late])[0] == [lc.Verdict.ACCEPTED] * 2
        np.testing.assert_array_equal(store.read_bandit("shop").policy.V, learnt)
        np.testing.assert_array_equal(store.read_bandit("shop").policy.B, heard)
        assert store.stats("shop").rounds == 18
        store.wait(store.freeze("shop", False)[1])
        play(store, 3)
        replay(store, "shop", "again", window="6d")
        shop, again = (store.read_bandit(name).policy for name in ("shop", "again"))
        np.testing.assert_array_equal(again.V, shop.V)
        np.testing.assert_array_equal(again.B, shop.B)
        assert np.trace(shop.V) == pytest.approx(2 + 8)  # rows of norm 1: five rounds and three


def test_an_open_bandit_freezes(path: Path) -> None:
    with lc.open(path, dim=2, window="7d") as shop:
        assert shop.freeze() is lc.Verdict.ACCEPTED
        assert shop.freeze() is lc.Verdict.DUPLICATE
        assert shop.convert(shop.decide(ROWS)) is lc.Verdict.ACCEPTED
        assert shop.stats().theta_hat == [0.0, 0.0]
        assert shop.unfreeze() is lc.Verdict.ACCEPTED
        assert not shop.stats().frozen
