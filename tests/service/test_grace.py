"""Conversions that are reported in their grace, in a store: live, after a restart, in a replay and over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import DAY, HOUR, SECOND, FakeClocks, state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation, Verdict
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify
from latecomer.timestamps import to_datetime

OFFERS = np.eye(2)
WEEK = BanditSpec(dim=2, window="7d", grace="1d")


class Shop:
    """A store with a bandit, and a machine whose time a test sets."""

    def __init__(self, path: Path, spec: BanditSpec = WEEK) -> None:
        self.path, self.machine = path, FakeClocks()
        self.store = self.open()
        self.store.create("shop", spec)

    def open(self) -> Store:
        return Store.open(self.path, clock=self.machine, snapshot_every=3, retention="5s")

    def restart(self) -> None:
        self.store.close()
        self.store = self.open()

    def decide(self) -> str:
        answer, ticket = self.store.decide("shop", OFFERS)
        self.store.wait(ticket)
        return answer.decision_id

    def convert(self, decision_id: str, *, ago: int | None = None, value: float = 1.0) -> Verdict:
        """Report a conversion of so many microseconds ago."""
        occurred = None if ago is None else to_datetime(self.machine.wall() - ago)
        verdicts, ticket = self.store.convert("shop", [Conversion(decision_id, value, occurred)])
        self.store.wait(ticket)
        return verdicts[0]

    def revoke(self, decision_id: str) -> Verdict:
        verdicts, ticket = self.store.revoke("shop", [Revocation(decision_id)])
        self.store.wait(ticket)
        return verdicts[0]


@pytest.fixture
def shop(path: Path) -> Iterator[Shop]:
    opened = Shop(path)
    yield opened
    opened.store.close()


def test_last_nights_orders_are_credited_the_next_morning(shop: Shop) -> None:
    first, second = shop.decide(), shop.decide()
    shop.machine.advance(7 * DAY + 8 * HOUR)
    shop.decide()  # both windows have closed
    before = shop.store.registry.bandits["shop"].policy.B
    assert shop.store.stats("shop").pending == 1
    assert shop.convert(first, ago=9 * HOUR, value=0.5) is Verdict.ACCEPTED
    assert shop.convert(first, ago=9 * HOUR) is Verdict.DUPLICATE
    assert shop.convert(second) is Verdict.LATE, "it occurred now, outside of its window"
    assert shop.convert(second, ago=7 * HOUR) is Verdict.LATE
    assert np.abs(shop.store.registry.bandits["shop"].policy.B - before).sum() == 0.5
    assert shop.store.stats("shop").pending == 1
    report = shop.store.bandit_report("shop")
    assert (report.conversions, report.rates.closed) == (1, 0.5)


def test_a_report_after_the_grace_is_late_though_no_decision_came_between(shop: Shop) -> None:
    first = shop.decide()
    shop.machine.advance(8 * DAY)
    assert shop.convert(first, ago=9 * DAY) is Verdict.ACCEPTED, "before its decision: accepted, without a delay"
    second = shop.decide()
    shop.machine.advance(8 * DAY + SECOND)
    assert shop.convert(second, ago=8 * DAY) is Verdict.LATE


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_restart_keeps_what_is_in_its_grace(shop: Shop, is_killed: bool, tmp_path: Path) -> None:
    ids = [shop.decide() for _ in range(5)]
    shop.convert(ids[1], ago=0)
    shop.machine.advance(7 * DAY + HOUR)
    ids += [shop.decide() for _ in range(7)]  # snapshots are taken, and what is not needed is pruned
    shop.convert(ids[2], ago=2 * HOUR)
    before = state_of(shop.store, "shop")
    if is_killed:
        for suffix in ("", "-wal"):
            copy = tmp_path / f"killed.db{suffix}"
            copy.write_bytes(Path(f"{shop.path}{suffix}").read_bytes())
        shop.store.close()
        shop.path = tmp_path / "killed.db"
        shop.store = shop.open()
    else:
        shop.restart()
    assert state_of(shop.store, "shop") == before
    assert shop.convert(ids[0], ago=2 * HOUR) is Verdict.ACCEPTED
    assert shop.convert(ids[2], ago=2 * HOUR) is Verdict.DUPLICATE
    assert shop.revoke(ids[1]) is Verdict.ACCEPTED
    state = state_of(shop.store, "shop")
    shop.restart()
    assert state_of(shop.store, "shop") == state
    shop.store.close()
    assert list(verify(shop.path))[-1].startswith("shop: rows")
    shop.store = shop.open()


def test_a_replay_judges_by_its_own_window_and_grace(shop: Shop) -> None:
    ids = [shop.decide() for _ in range(4)]
    shop.machine.advance(7 * DAY + 12 * HOUR)
    shop.decide()
    assert shop.convert(ids[0], ago=DAY) is Verdict.ACCEPTED
    assert shop.convert(ids[1], ago=0) is Verdict.LATE
    shop.machine.advance(2 * DAY)
    shop.decide()
    assert shop.convert(ids[2], ago=3 * DAY) is Verdict.LATE
    counts = {
        "same": replay(shop.store, "shop", "same"),
        "none": replay(shop.store, "shop", "none", grace="0s"),
        "long": replay(shop.store, "shop", "long", grace="10d"),
        "wide": replay(shop.store, "shop", "wide", window="30d"),
        "rounds": replay(shop.store, "shop", "rounds", window=50),
    }
    accepted = {name: stats.conversions["accepted"] for name, stats in counts.items()}
    assert accepted == {"same": 1, "none": 0, "long": 2, "wide": 3, "rounds": 3}
    assert [shop.store.info(name).grace for name in counts] == ["1d", "0s", "10d", "1d", None]
    np.testing.assert_array_equal(
        shop.store.registry.bandits["same"].policy.B, shop.store.registry.bandits["shop"].policy.B
    )


def test_the_default_grace_is_a_day_and_no_other_than_it(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", dim=2, window="7d") as bandit:
        store: Any = bandit._store
        assert store.info("default").grace == "1d"
        store.create("default", BanditSpec(dim=2, window="168h", grace="24h"))
        with pytest.raises(ConflictError, match="grace is '1d', not '2d'"):
            store.create("default", BanditSpec(dim=2, window="7d", grace="2d"))
    with lc.open(tmp_path / "a.db", dim=2, window="7d", grace=timedelta(days=1)) as bandit:
        assert bandit.decide(OFFERS).round == 1
    with lc.open(tmp_path / "b.db", dim=2, window=100) as bandit:
        assert bandit._store.info("default").grace is None


@pytest.mark.parametrize(
    ("window", "grace", "message"),
    [
        (100, "1d", "grace is for windows in time, and this window is 100 rounds; got '1d': leave it out"),
        ("7d", "soon", "grace must be a whole number and one of s, m, min, h, d, w, such as 1d; got 'soon'"),
        ("7d", timedelta(days=-1), "grace must not be negative"),
        ("7d", timedelta(seconds=0.5), "grace must be whole seconds"),
    ],
)
def test_a_grace_that_is_none_is_refused(tmp_path: Path, window: Any, grace: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        lc.open(tmp_path / "a.db", dim=2, window=window, grace=grace)
    assert caught.value.field == "grace"
    assert not (tmp_path / "a.db").exists()


def test_over_http_and_by_the_client(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        answer = server.http.put("/v1/bandits/x", json={"dim": 2, "window": 5, "grace": "1d"})
        assert (answer.status_code, error_of(answer)["field"]) == (400, "grace")
        answer = server.http.put("/v1/bandits/x", json={"dim": 2, "window": "5d", "grace": "1 day"})
        assert (answer.status_code, error_of(answer)["field"]) == (400, "grace")
        assert client.create("x", dim=2, window="1s", grace="12h").grace == "12h"
        decision = client.decide("x", OFFERS)
        moment = datetime.now(UTC)
        while datetime.now(UTC) < moment + timedelta(seconds=1.1):
            client.decide("x", OFFERS)
        tokyo = moment.astimezone(timezone(timedelta(hours=9)))
        assert client.convert("x", decision) is Verdict.LATE
        assert client.convert("x", decision, occurred_at=tokyo) is Verdict.ACCEPTED
