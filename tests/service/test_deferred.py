"""Deferred decisions in a store: live, after a restart and a kill, in a replay, by request ids, and over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fake_clocks import SECOND, FakeClocks, state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit_spec import BanditSpec, RewardSpec
from latecomer.service.messages import Activation, Conversion, DecisionAnswer, Revocation, StageReport, Verdict
from latecomer.service.store import Store
from latecomer.service.tools.export import export
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

OFFERS = np.eye(2)
IDS = ["red", "blue"]
SPEC = BanditSpec(dim=2, window="10s", grace="5s", activation_timeout="4s")


class Shop:
    """A store with a bandit, and a machine whose time a test sets."""

    def __init__(self, path: Path, spec: BanditSpec = SPEC) -> None:
        self.path, self.machine = path, FakeClocks()
        self.store = self.open()
        self.store.create("shop", spec)

    def open(self) -> Store:
        return Store.open(self.path, clock=self.machine, snapshot_every=3)

    def restart(self) -> None:
        before = state_of(self.store, "shop")
        self.store.close()
        self.store = self.open()
        assert state_of(self.store, "shop") == before

    def decide(self, **options: Any) -> DecisionAnswer:
        answer, ticket = self.store.decide("shop", OFFERS, IDS, **options)
        self.store.wait(ticket)
        return answer

    def activate(self, *ids: str) -> list[Verdict]:
        verdicts, ticket = self.store.activate("shop", [Activation(id_) for id_ in ids])
        self.store.wait(ticket)
        return list(verdicts)

    def convert(self, decision_id: str) -> Verdict:
        verdicts, ticket = self.store.convert("shop", [Conversion(decision_id)])
        self.store.wait(ticket)
        return verdicts[0]


@pytest.fixture
def shop(path: Path) -> Iterator[Shop]:
    opened = Shop(path)
    yield opened
    opened.store.close()


def test_a_deferred_decision_counts_once_it_is_activated(shop: Shop) -> None:
    first, plain = shop.decide(deferred=True), shop.decide()
    assert (first.round, plain.round, first.propensity is None) == (-1, 1, False)
    assert shop.convert(first.decision_id) is Verdict.UNKNOWN
    forged = f"w1-{'0' * 24}"
    verdicts = shop.activate(first.decision_id, first.decision_id, plain.decision_id, forged, "nothing")
    assert verdicts == [Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.DUPLICATE, Verdict.UNKNOWN, Verdict.UNKNOWN]
    assert shop.convert(first.decision_id) is Verdict.ACCEPTED
    stats, report = shop.store.stats("shop"), shop.store.bandit_report("shop")
    assert (stats.rounds, stats.deferred) == (2, {"waiting": 0, "activated": 1, "expired": 0})
    assert (report.decisions, report.conversions) == (2, 1)
    assert sum(choice.decisions for choice in report.choices) == 2


def test_what_waits_and_what_was_activated_survive_restarts(shop: Shop) -> None:
    waiting, active, never = (shop.decide(deferred=True) for _ in range(3))
    shop.restart()
    assert shop.activate(active.decision_id) == [Verdict.ACCEPTED]
    shop.restart()
    for _ in range(5):
        shop.decide()
    shop.restart()
    assert shop.activate(waiting.decision_id, active.decision_id) == [Verdict.ACCEPTED, Verdict.DUPLICATE]
    shop.machine.advance(5 * SECOND)
    assert shop.activate(never.decision_id) == [Verdict.LATE]
    assert shop.store.stats("shop").deferred == {"waiting": 0, "activated": 2, "expired": 1}
    shop.restart()
    assert shop.convert(active.decision_id) is Verdict.ACCEPTED
    assert shop.store.stats("shop").rounds == 7
    shop.store.close()
    assert list(verify(shop.path))[-1].startswith("shop: rows")
    shop.store = shop.open()


def test_a_replay_makes_the_same_of_deferred_decisions(shop: Shop) -> None:
    answers = [shop.decide(deferred=True) for _ in range(4)]
    shop.decide()
    assert shop.activate(answers[2].decision_id, answers[0].decision_id) == [Verdict.ACCEPTED] * 2
    shop.convert(answers[2].decision_id)
    stats = replay(shop.store, "shop", "again")
    ours, theirs = (shop.store.registry.bandits[name].policy for name in ("shop", "again"))
    assert stats.deferred == shop.store.stats("shop").deferred
    np.testing.assert_array_equal(ours.V, theirs.V)
    np.testing.assert_array_equal(ours.B, theirs.B)
    assert shop.store.activate("again", [Activation(answers[1].decision_id)])[0] == [Verdict.ACCEPTED]
    assert shop.store.convert("again", [Conversion(answers[0].decision_id)])[0] == [Verdict.ACCEPTED]
    assert replay(shop.store, "shop", "rounds", window=50).conversions["accepted"] == 1


def test_a_request_id_gets_the_same_deferred_decision_again(shop: Shop) -> None:
    first = shop.decide(deferred=True, request_id="x")
    assert shop.decide(deferred=True, request_id="x") == first
    shop.restart()
    assert shop.decide(deferred=True, request_id="x") == first
    assert shop.store.stats("shop").deferred["waiting"] == 1
    with pytest.raises(ConflictError, match="request_id 'x' was used with another body"):
        shop.store.decide("shop", OFFERS / 2, IDS, request_id="x", deferred=True)
    with pytest.raises(ConflictError, match="request_id 'x' was used with another body"):
        shop.store.decide("shop", OFFERS, IDS, request_id="x")
    shop.decide(request_id="y")
    for _ in range(2):  # from memory, and from the file
        with pytest.raises(ConflictError, match="request_id 'y' was used with another body"):
            shop.decide(deferred=True, request_id="y")
        shop.restart()


@pytest.mark.parametrize("others", [False, True])
def test_an_expired_request_is_a_new_one_whatever_else_was_asked(shop: Shop, others: bool) -> None:
    first, again = (shop.decide(deferred=True, request_id=name) for name in "xy")
    shop.machine.advance(4 * SECOND)
    assert shop.decide(deferred=True, request_id="x") == first
    shop.machine.advance(1)
    if others:
        shop.decide(deferred=True)
    second = shop.decide(deferred=True, request_id="x")
    assert second.decision_id != first.decision_id
    assert shop.activate(first.decision_id, second.decision_id) == [Verdict.LATE, Verdict.ACCEPTED]
    assert not again.decision_id.startswith(shop.decide(request_id="y").decision_id)
    shop.restart()
    shop.machine.advance(15 * SECOND)
    if others:
        shop.decide(deferred=True)
    assert shop.decide(deferred=True, request_id="x") == second
    shop.machine.advance(1)
    assert shop.decide(deferred=True, request_id="x") != second, "its window and grace have passed"


def test_an_activated_decision_is_found_for_as_long_as_a_return_counts(path: Path) -> None:
    spec = msgspec.structs.replace(SPEC, reward=RewardSpec(scale=200.0), returns="60s", activation_timeout=None)
    shop = Shop(path, spec)
    plain, deferred = shop.decide(), shop.decide(deferred=True)
    shop.activate(deferred.decision_id)
    ids = (plain.decision_id, deferred.decision_id)
    shop.store.convert("shop", [Conversion(id_, 100.0, conversion_id=id_) for id_ in ids])
    shop.machine.advance(20 * SECOND)
    shop.decide()
    shop.decide(deferred=True)
    shop.restart()
    assert shop.store.convert("shop", [Conversion(id_, 1.0) for id_ in ids])[0] == [Verdict.LATE] * 2
    assert shop.store.report_stages("shop", [StageReport(id_, "click") for id_ in ids])[0] == [Verdict.LATE] * 2
    reports = [Revocation(plain.decision_id), Revocation(deferred.decision_id, conversion_id=deferred.decision_id)]
    assert shop.store.revoke("shop", reports)[0] == [Verdict.ACCEPTED] * 2
    assert shop.store.stats("shop").value == 0.0
    shop.restart()
    shop.store.close()


def test_the_clients_id_is_named_everywhere(shop: Shop) -> None:
    never, deferred = (shop.decide(deferred=True, subject=name) for name in ("ben", "ann"))
    for answer, reason in ((never, "it waits for its activation"), (deferred, "it waits for its activation")):
        with pytest.raises(InputError, match=reason):
            shop.store.explain("shop", answer)
    shop.activate(deferred.decision_id)
    verdicts, ticket = shop.store.convert("shop", [Conversion(subject="ann")])
    shop.store.wait(ticket)
    assert [found.decision_ids for found in verdicts.attributed] == [[deferred.decision_id]]
    shop.restart()
    report = shop.store.explain("shop", deferred)
    assert (report.decision.decision_id, report.decision.fate) == (deferred.decision_id, "converted")
    assert [one.decision_id for one in shop.store.bandit_report("shop").recent] == [deferred.decision_id]
    shop.machine.advance(5 * SECOND)
    plain = shop.decide(deferred=True) and shop.decide()
    with pytest.raises(InputError, match="it was not activated in time"):
        shop.store.explain("shop", never)
    assert replay(shop.store, "shop", "again").conversions["accepted"] == 1
    assert shop.store.explain("again", deferred).decision.decision_id == deferred.decision_id
    shop.store.close()
    for name in ("shop", "again"):
        tables = dict(export(shop.path, name))
        assert tables["decisions"]["decision_id"].to_list() == [deferred.decision_id, plain.decision_id]
        assert tables["reports"]["decision_id"].to_list() == [deferred.decision_id]
    shop.store = shop.open()


def test_a_timeout_of_another_unit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="activation_timeout must be a number of rounds") as caught:
        lc.open(tmp_path / "a.db", dim=2, window=10, activation_timeout="1h")
    assert caught.value.field == "activation_timeout"


def test_over_http_and_by_the_client(tmp_path: Path) -> None:
    rows = np.eye(4)[:2]
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        answer = server.http.put("/v1/bandits/x", json={"dim": 2, "window": "1d", "activation_timeout": 5})
        assert (answer.status_code, error_of(answer)["field"]) == (400, "activation_timeout")
        assert client.create("x", dim=4, window="1d", activation_timeout="1h").activation_timeout == "1h"
        bad = server.http.post("/v1/bandits/x/decisions", json={"actions": rows.tolist(), "deferred": 1})
        assert (bad.status_code, error_of(bad)["field"]) == (400, "deferred")
        bad = server.http.post("/v1/bandits/x/activations", json=[{"decision_id": "w1-0"}, {"decision_id": 7}])
        assert (bad.status_code, error_of(bad)["field"]) == (400, "[1].decision_id")
        deferred = client.decide("x", rows, deferred=True)
        described = client.decide_features("x", {"a": {"n": 0.5}, "b": {"n": 0.1}}, deferred=True)
        assert (deferred.round, described.round) == (-1, -2)
        assert client.convert("x", deferred) is Verdict.UNKNOWN
        assert [client.activate("x", one) for one in (described, deferred, deferred)] == [
            Verdict.ACCEPTED,
            Verdict.ACCEPTED,
            Verdict.DUPLICATE,
        ]
        assert client.convert("x", deferred) is Verdict.ACCEPTED
        assert client.stats("x").deferred == {"waiting": 0, "activated": 2, "expired": 0}


def test_a_request_id_that_is_used_again_stands_for_the_later_decision(tmp_path: Path) -> None:
    """The earlier one was activated, and its window and grace have passed."""
    shop = Shop(tmp_path / "a.db", BanditSpec(dim=2, window="10s", grace="0s", activation_timeout="60s"))
    first = shop.decide(deferred=True, request_id="r")
    assert shop.activate(first.decision_id) == [Verdict.ACCEPTED]
    shop.machine.advance(11 * SECOND)
    second = shop.decide(deferred=True, request_id="r")
    assert second.decision_id != first.decision_id
    for _ in range(2):
        assert shop.decide(deferred=True, request_id="r") == second
        shop.restart()
    shop.store.close()
