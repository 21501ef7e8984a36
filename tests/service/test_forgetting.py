"""A bandit that forgets: the same after a restart, and in a replay; a wrong half-life is refused by its name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
SPEC = BanditSpec(dim=2, window="7d", parameters={"half_life": "20d", "seed": 1})


def play(store: Store, clocks: FakeClocks, rounds: int) -> None:
    for i in range(rounds):
        answer, ticket = store.decide("shop", ROWS)
        if i % 2:
            clocks.advance(DAY)
            ticket = store.convert("shop", [Conversion(answer.decision_id)])[1]
        clocks.advance(2 * DAY)
        store.wait(ticket)


def weigh(store: Store) -> Any:
    policy = store.read_bandit("shop").policy
    return policy.V, policy.B, policy.theta_hat


def test_a_restart_forgets_as_a_bandit_that_went_on(tmp_path: Path) -> None:
    found = []
    for restarts in (False, True):
        clocks, where = FakeClocks(), tmp_path / f"{restarts}.db"
        store = Store.open(where, clock=clocks, snapshot_every=7)
        store.create("shop", SPEC)
        for _ in range(4):
            play(store, clocks, 10)
            if restarts:
                store.close()
                store = Store.open(where, clock=clocks, snapshot_every=7)
        found.append(weigh(store))
        store.close()
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.trace(found[0][0]) - 2 < 20  # Σ w_s of 40 rounds over 100 days: every action has norm 1


def test_a_replay_takes_another_half_life(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks, retention="forever") as store:
        store.create("shop", SPEC)
        play(store, clocks, 30)
        replay(store, "shop", "same", window="7d")
        same, shop = store.read_bandit("same").policy, store.read_bandit("shop").policy
        np.testing.assert_array_equal(same.V, shop.V)
        np.testing.assert_array_equal(same.B, shop.B)
        replay(store, "shop", "longer", parameters={**shop_parameters(store), "half_life": "200d"})
        assert np.trace(store.read_bandit("longer").policy.V) > np.trace(shop.V)


def shop_parameters(store: Store) -> dict[str, Any]:
    return dict(store.info("shop").parameters)


def test_a_wrong_half_life_is_an_error_of_the_parameters(path: Path) -> None:
    for wrong in (30, "soon", "0s"):
        with pytest.raises(InputError, match="half_life") as found:
            lc.open(path, dim=2, window="7d", parameters={"half_life": wrong})
        assert found.value.field == "parameters"
    assert not path.exists()
