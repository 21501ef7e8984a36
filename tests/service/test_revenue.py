"""Conversions with amounts and ids, and returns, in a store: after restarts, in a replay, exported, over HTTP."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import SECOND, FakeClocks, state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit_spec import BanditSpec, RewardSpec, ValueUnit
from latecomer.service.messages import Conversion, Revocation
from latecomer.service.store import Store
from latecomer.service.tools.export import export
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

OFFERS = np.eye(2)
SPEC: dict[str, Any] = {"dim": 2, "window": "10s", "grace": "3s", "returns": "60s"}
REWARD = RewardSpec(scale=200.0, aggregate="sum", unit="EUR")
SPEC["reward"] = REWARD


class Shop:
    """A store with a bandit, and a machine whose time a test sets."""

    def __init__(self, path: Path, **more: Any) -> None:
        self.path, self.machine = path, FakeClocks()
        self.store = self.open()
        self.store.create("shop", BanditSpec(**{**SPEC, **more}))

    def open(self) -> Store:
        return Store.open(self.path, clock=self.machine, snapshot_every=3, retention="1s")

    def restart(self) -> None:
        before, report = state_of(self.store, "shop"), self.store.bandit_report("shop", None, None)
        self.store.close()
        self.store = self.open()
        again = self.store.bandit_report("shop", None, None)
        assert state_of(self.store, "shop") == before
        assert (again.value, again.choices, again.periods) == (report.value, report.choices, report.periods)

    def decide(self, label: str = "a") -> str:
        answer, ticket = self.store.decide("shop", OFFERS[:1], [label])
        self.store.wait(ticket)
        return answer.decision_id

    def convert(self, decision: str, *amounts: float, prefix: str = "") -> list[str]:
        reports = [Conversion(decision, amount, conversion_id=f"{prefix}{amount:g}") for amount in amounts]
        verdicts, ticket = self.store.convert("shop", reports)
        self.store.wait(ticket)
        return list(verdicts)

    def revoke(self, *revocations: Revocation) -> list[str]:
        verdicts, ticket = self.store.revoke("shop", revocations)
        self.store.wait(ticket)
        return list(verdicts)

    @property
    def B(self) -> float:
        return float(self.store.registry.bandits["shop"].policy.B[0])


@pytest.fixture
def shop(path: Path) -> Iterator[Shop]:
    opened = Shop(path)
    yield opened
    opened.store.close()


def test_a_late_return_corrects_what_was_learnt_and_every_count(shop: Shop) -> None:
    first, second = shop.decide("a"), shop.decide("b")
    assert shop.convert(first, 50, 25, 50) == ["accepted", "accepted", "duplicate"]
    assert shop.convert(second, 100, 150, prefix="b") == ["accepted", "accepted"]
    shop.restart()
    for seconds in (1, 1, 1, 1, 15, 1, 1):  # windows and grace have passed, and the log has been pruned
        shop.machine.advance(seconds * SECOND)
        shop.decide()
    assert shop.convert(first, 75) == ["late"]
    assert shop.revoke(Revocation(first, None, "50"), Revocation(None, None, "b150")) == ["accepted", "accepted"]
    shop.restart()
    assert shop.revoke(Revocation(first, None, "50"), Revocation(first, None, "x")) == ["duplicate", "unknown"]
    assert shop.B == 0.125 + 0.5
    stats, report = shop.store.stats("shop"), shop.store.bandit_report("shop", None, None)
    assert (stats.value, stats.unit, stats.capped) == (125.0, "EUR", 1)
    assert (report.conversions, report.value, report.unit) == (2, 0.625, ValueUnit(name="EUR", scale=200.0))
    assert {choice.id: choice.value for choice in report.choices if choice.value} == {"a": 0.125, "b": 0.5}
    assert shop.revoke(Revocation(second)) == ["accepted"]
    assert shop.store.bandit_report("shop", None, None).conversions == 1
    shop.machine.advance(80 * SECOND)
    assert shop.revoke(Revocation(first, None, "25"), Revocation(None, None, "25")) == ["late", "unknown"]
    shop.restart()
    assert shop.B == 0.125
    shop.store.close()
    assert list(verify(shop.path))[-1].startswith("shop: rows")
    shop.store = shop.open()


def test_a_return_and_a_new_purchase_count_in_their_order_in_a_replay_and_a_report_of_a_time(path: Path) -> None:
    shop = Shop(path, grace="0s")
    first = shop.decide()
    shop.convert(first, 50)
    shop.machine.advance(8 * SECOND)
    assert shop.revoke(Revocation(first)) == ["accepted"]
    assert shop.convert(first, 100) == ["accepted"]
    shop.store.set_retention("forever")
    assert replay(shop.store, "shop", "same").value == 100.0
    shorter = replay(shop.store, "shop", "shorter", window="5s")  # the second purchase is late there
    assert (shorter.value, shorter.conversions["late"], shorter.revocations["accepted"]) == (0.0, 1, 1)
    ours, theirs = (shop.store.registry.bandits[name].policy.B for name in ("shop", "same"))
    np.testing.assert_array_equal(ours, theirs)
    since = shop.store.bandit_report("shop", datetime(1970, 1, 1, tzinfo=UTC), None)
    assert (since.value, since.conversions) == (0.5, 1)
    shop.store.close()
    tables = dict(export(path, "shop"))
    assert tables["decisions"].select("value", "revoked").rows() == [(100.0, False)]
    reports = tables["reports"]
    assert reports["kind"].to_list() == ["conversion", "revocation", "conversion"]
    assert reports["value"].to_list() == [50.0, None, 100.0]
    assert reports["conversion"].is_null().to_list() == [False, True, False]


@pytest.mark.parametrize("reward", ["binary", RewardSpec(scale=4.0)])
def test_a_conversion_id_counts_once_in_a_bandit(path: Path, reward: Any) -> None:
    shop = Shop(path, reward=reward, returns=None, attribution="all")
    shop.store.set_retention("forever")
    names = ("ann", "ben", "cat", "cat")
    ids = [shop.store.decide("shop", OFFERS[:1], subject=name)[0].decision_id for name in names]

    def convert(*reports: tuple[str, str]) -> list[str]:
        """Report conversions, each by its id and by its decision or subject."""
        found = [
            Conversion(None if given in names else given, 1.0, None, given if given in names else None, id_)
            for id_, given in reports
        ]
        return list(shop.store.convert("shop", found)[0])

    batch = convert(("x", ids[0]), ("x", ids[1]), ("y", "ben"), ("y", ids[2]), ("z", "cat"), ("z", ids[0]))
    assert batch == ["accepted", "duplicate"] * 3
    assert convert(("x", "cat")) == ["duplicate"]
    assert shop.store.stats("shop").value == 4.0, "z of both of cat's decisions"
    assert shop.revoke(Revocation(ids[0], conversion_id="x")) == ["accepted"]
    shop.restart()
    assert convert(("x", ids[0]), ("x", ids[1]), ("x", ids[3])) == ["duplicate"] * 3
    stats, again = shop.store.stats("shop"), replay(shop.store, "shop", "again")
    assert (again.value, again.conversions) == (stats.value, stats.conversions)
    assert stats.value == 3.0
    shop.restart()
    shop.store.close()
    assert [line.split(":")[0] for line in verify(path)][-2:] == ["shop", "again"]


def test_an_id_that_was_late_counts_once_in_a_replay_with_a_longer_window(path: Path) -> None:
    shop = Shop(path, grace="0s")
    first = shop.decide()
    shop.machine.advance(11 * SECOND)
    other = shop.decide()
    assert (shop.convert(first, 50), shop.convert(other, 50)) == (["late"], ["accepted"])
    longer = replay(shop.store, "shop", "longer", window="30s")
    assert (longer.conversions["accepted"], longer.conversions["duplicate"], longer.value) == (1, 1, 50.0)
    shop.store.close()


def test_a_binary_bandit_takes_ids_too(path: Path) -> None:
    shop = Shop(path, reward="binary", returns=None)
    first = shop.decide()
    assert shop.convert(first, 0.5, 1.0) == ["accepted", "duplicate"]
    assert shop.revoke(Revocation(None, None, "0.5")) == ["accepted"]
    shop.restart()
    assert (shop.B, shop.convert(first, 1.0)) == (0.0, ["duplicate"])
    shop.store.close()


def test_a_specification_stands_for_its_defaults(path: Path) -> None:
    shop = Shop(path, returns=None)
    info = shop.store.info("shop")
    assert (info.returns, info.unit, info.reward) == ("90d", ValueUnit(name="EUR", scale=200.0), REWARD)
    same = BanditSpec(**{**SPEC, "returns": "2160h"})
    shop.store.create("shop", same)
    with pytest.raises(ConflictError, match="reward is RewardSpec"):
        shop.store.create("shop", BanditSpec(**{**SPEC, "reward": "binary", "returns": "90d"}))
    with pytest.raises(InputError, match="unit must be left out"):
        shop.store.create("b", BanditSpec(dim=2, window=5, reward=REWARD, unit=ValueUnit(name="USD", scale=9)))
    shop.store.create("rounds", BanditSpec(dim=2, window=5, reward=REWARD))
    assert shop.store.info("rounds").returns == 50
    shop.store.close()


@pytest.mark.parametrize(
    ("report", "field", "message"),
    [
        (Conversion("a"), "[1].value", "value of conversion 1 must be given"),
        (Conversion("a", -1.0), "[1].value", "value of conversion 1 must be"),
        (Conversion("a", 1.0, conversion_id=""), "[1].conversion_id", "conversion_id must be a text"),
        (Revocation(), "[1].decision_id", "must name its decision_id or its conversion_id; got neither"),
        (Revocation("a", None, "x" * 201), "[1].conversion_id", "conversion_id must be a text"),
    ],
)
def test_bad_reports_are_refused_and_change_nothing(
    shop: Shop, report: Conversion | Revocation, field: str, message: str
) -> None:
    first = shop.decide()
    before = state_of(shop.store, "shop")
    is_conversion = isinstance(report, Conversion)
    call: Any = shop.store.convert if is_conversion else shop.store.revoke
    with pytest.raises(InputError, match=message) as caught:
        call("shop", [Conversion(first, 5.0) if is_conversion else Revocation(first), report])
    assert caught.value.field == field
    assert state_of(shop.store, "shop") == before


def test_over_http_and_by_the_clients(tmp_path: Path) -> None:
    reward = {"scale": 200, "unit": "EUR", "aggregate": "sum"}
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        for wrong in ({"scale": 0}, "ternary", {"scale": 1, "aggregate": "mean"}):
            bad = server.http.put("/v1/bandits/x", json={"dim": 2, "window": "1d", "reward": wrong})
            assert (bad.status_code, error_of(bad)["field"].split(".")[0]) == (400, "reward")
        bad = server.http.put("/v1/bandits/x", json={"dim": 2, "window": "1d", "returns": 5})
        assert (bad.status_code, error_of(bad)["field"]) == (400, "returns")
        info = client.create("x", dim=2, window="1d", reward=reward, returns="30d")
        assert (info.reward, info.returns) == (REWARD, "30d")
        answer = client.decide("x", OFFERS)
        for path, body, field in (
            ("conversions", {"decision_id": "x"}, "value"),
            ("conversions", {"decision_id": "x", "value": -1}, "value"),
            ("conversions", {"decision_id": "x", "value": 1, "conversion_id": ""}, "conversion_id"),
            ("revocations", {}, "decision_id"),
            ("revocations", {"conversion_id": 5}, "conversion_id"),
        ):
            bad = server.http.post(f"/v1/bandits/x/{path}", json=body)
            assert (bad.status_code, error_of(bad)["field"]) == (400, field)
        assert client.convert("x", answer, value=60, conversion_id="p") == "accepted"
        with client.batch("x") as batch:
            batch.convert(answer, value=40, conversion_id="q")
        assert client.stats("x").value == pytest.approx(100.0)

        async def give_back() -> list[str]:
            async with lc.AsyncClient(server.url) as other:
                await other.convert("x", answer, value=20.0, conversion_id="r")
                return [await other.revoke("x", conversion_id="p"), await other.revoke("x", answer, conversion_id="p")]

        assert asyncio.run(give_back()) == ["accepted", "duplicate"]
        assert client.revoke("x", conversion_id="q") == "accepted"
        assert client.stats("x").value == pytest.approx(20.0)


def test_an_open_bandit_takes_amounts(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", dim=2, window="1d", reward={"scale": 200, "unit": "EUR"}) as bandit:
        answer = bandit.decide(OFFERS)
        assert bandit.convert(answer, value=30.0, conversion_id="p") == "accepted"
        assert bandit.convert(answer, value=50.0, conversion_id="q") == "accepted"
        assert bandit.revoke(conversion_id="p") == "accepted"
        assert bandit.stats().value == pytest.approx(50.0)
        assert bandit.stats().unit == "EUR"
        assert bandit.explain(answer).decision.value == 0.25
