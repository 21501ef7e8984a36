"""Conversions that name a subject, in a store: which decisions get them, after restarts, in a replay, over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import SECOND, FakeClocks, state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Activation, Conversion, Verdict
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

OFFERS = np.eye(2)


class Shop:
    """A store with a bandit, and a machine whose time a test sets."""

    def __init__(self, path: Path, attribution: Any = "last") -> None:
        self.path, self.machine = path, FakeClocks()
        self.store = self.open()
        self.store.create("shop", BanditSpec(dim=2, window="10s", grace="5s", attribution=attribution))

    def open(self) -> Store:
        return Store.open(self.path, clock=self.machine, snapshot_every=3)

    def restart(self) -> None:
        before = state_of(self.store, "shop")
        self.store.close()
        self.store = self.open()
        assert state_of(self.store, "shop") == before

    def decide(self, subject: str | None = None, **options: Any) -> str:
        answer, ticket = self.store.decide("shop", OFFERS, subject=subject, **options)
        self.store.wait(ticket)
        return answer.decision_id

    def convert(self, *conversions: Conversion) -> VerdictList:
        verdicts, ticket = self.store.convert("shop", conversions)
        self.store.wait(ticket)
        return verdicts


@pytest.fixture
def shop(path: Path) -> Iterator[Shop]:
    opened = Shop(path)
    yield opened
    opened.store.close()


@pytest.mark.parametrize(("attribution", "places"), [("last", [2]), ("first", [0]), ("all", [0, 2])])
def test_a_conversion_is_credited_as_the_attribution_says(path: Path, attribution: str, places: list[int]) -> None:
    shop = Shop(path, attribution)
    ids = [shop.decide(subject) for subject in ("ann", "bob", "ann")]
    shop.restart()
    verdicts = shop.convert(Conversion(subject="ann", value=0.5), Conversion(ids[1]), Conversion(subject="zoe"))
    assert verdicts == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.UNKNOWN]
    assert [(found.index, found.decision_ids) for found in verdicts.attributed] == [
        (0, [ids[place] for place in places]),
        (2, []),
    ]
    assert shop.convert(Conversion(subject="ann")) == [Verdict.DUPLICATE]
    assert shop.convert(Conversion(ids[places[0]])) == [Verdict.DUPLICATE]
    assert np.abs(shop.store.registry.bandits["shop"].policy.B).sum() == pytest.approx(1 + 0.5 * len(places))
    shop.restart()
    assert replay(shop.store, "shop", "again").conversions["accepted"] == 1 + len(places)
    np.testing.assert_array_equal(
        *(shop.store.registry.bandits[name].policy.B for name in ("shop", "again"))  # type: ignore[arg-type]
    )
    shop.store.close()
    assert list(verify(path))[-1].startswith("again: rows")


def test_only_decisions_in_whose_window_it_occurred_are_credited(shop: Shop) -> None:
    shop.decide("ann")
    shop.machine.advance(8 * SECOND)
    second = shop.decide("ann")
    shop.machine.advance(8 * SECOND)
    shop.decide()  # the first window has closed, and is in its grace
    assert shop.convert(Conversion(subject="ann")).attributed[0].decision_ids == [second]
    shop.machine.advance(20 * SECOND)
    assert shop.convert(Conversion(subject="ann")) == [Verdict.LATE]
    shop.decide()
    assert shop.convert(Conversion(subject="ann")) == [Verdict.UNKNOWN], "its decisions are forgotten"


def test_the_subject_of_a_deferred_decision_is_known_once_it_is_active(shop: Shop) -> None:
    waiting = shop.decide("ann", deferred=True)
    assert shop.convert(Conversion(subject="ann")) == [Verdict.UNKNOWN]
    shop.restart()
    assert shop.store.activate("shop", [Activation(waiting)])[0] == [Verdict.ACCEPTED]
    shop.restart()
    assert shop.convert(Conversion(subject="ann")) == [Verdict.ACCEPTED]


def test_digests_alone_are_kept(shop: Shop) -> None:
    shop.decide("ann@example.org")
    shop.convert(Conversion(subject="ann@example.org"))
    shop.store.close()
    assert b"ann@example" not in shop.path.read_bytes()
    shop.store = shop.open()


def test_another_subject_is_another_request(shop: Shop) -> None:
    assert shop.decide("ann", request_id="x") == shop.decide("ann", request_id="x")
    with pytest.raises(ConflictError, match="request_id 'x' was used with another body"):
        shop.store.decide("shop", OFFERS, subject="bob", request_id="x")


@pytest.mark.parametrize(
    ("conversion", "field", "message"),
    [
        (Conversion(), "[1].decision_id", "must name its decision_id or its subject; got neither"),
        (Conversion("a", subject="b"), "[1].subject", "must name its decision_id or its subject; got both"),
        (Conversion(subject=""), "[1].subject", "subject must be a text of 1 to 200 characters; got ''"),
        (Conversion(subject="x" * 201), "[1].subject", "subject must be a text of 1 to 200 characters"),
    ],
)
def test_bad_targets_are_refused_and_change_nothing(
    shop: Shop, conversion: Conversion, field: str, message: str
) -> None:
    first = shop.decide("ann")
    before = state_of(shop.store, "shop")
    with pytest.raises(InputError, match=message) as caught:
        shop.store.convert("shop", [Conversion(first), conversion])
    assert caught.value.field == field
    with pytest.raises(InputError, match="subject must be a text"):
        shop.store.decide("shop", OFFERS, subject="")
    assert state_of(shop.store, "shop") == before


def test_over_http_and_by_the_client(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        bad = server.http.put("/v1/bandits/x", json={"dim": 2, "window": "1d", "attribution": "every"})
        assert (bad.status_code, error_of(bad)["field"]) == (400, "attribution")
        assert client.create("x", dim=2, window="1d", attribution="all").attribution == "all"
        answers = [client.decide("x", OFFERS, subject="ann") for _ in range(2)]
        for body, field in (({}, "decision_id"), ({"subject": 5}, "subject"), ({"subject": ""}, "subject")):
            bad = server.http.post("/v1/bandits/x/conversions", json=body)
            assert (bad.status_code, error_of(bad)["field"]) == (400, field)
        bad = server.http.post("/v1/bandits/x/decisions", json={"actions": OFFERS.tolist(), "subject": ""})
        assert (bad.status_code, error_of(bad)["field"]) == (400, "subject")
        found = client.convert_many("x", [Conversion(subject="ann"), Conversion(answers[0].decision_id)])
        assert found == [Verdict.ACCEPTED, Verdict.DUPLICATE]
        assert found.attributed[0].decision_ids == [answer.decision_id for answer in answers]
        assert client.convert("x", subject="zoe") is Verdict.UNKNOWN


def test_an_open_bandit_takes_subjects(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", dim=2, window="1d", attribution="first") as bandit:
        bandit.decide(OFFERS, subject="ann")
        bandit.decide(OFFERS, subject="ann")
        assert bandit.convert(subject="ann") is Verdict.ACCEPTED
        assert bandit.convert(subject="ann") is Verdict.DUPLICATE
