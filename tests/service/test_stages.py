"""Stages of decisions: counted once, after restarts and in a replay, over HTTP and by the clients."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from fake_clocks import SECOND, FakeClocks
from servers import error_of, run_server

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.bandit_spec import BanditSpec, RewardSpec
from latecomer.service.messages import Conversion, Revocation, StageCounts, StageReport
from latecomer.service.store import Store
from latecomer.service.tools.export import export
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

OFFERS = np.eye(2)


def test_stages_are_counted_once_and_survive_restarts_and_replays(path: Path) -> None:
    machine = FakeClocks()
    store = Store.open(path, clock=machine, snapshot_every=2)
    store.create("shop", BanditSpec(dim=2, window="10s", grace="5s"))
    ids = [store.decide("shop", OFFERS)[0].decision_id for _ in range(3)]
    machine.advance(2 * SECOND)
    reports = [(0, "click"), (0, "click"), (0, "cart"), (1, "click"), (2, "cart")]
    verdicts, _ = store.report_stages("shop", [StageReport(ids[place], stage) for place, stage in reports])
    assert verdicts == ["accepted", "duplicate", "accepted", "accepted", "accepted"]
    store.convert("shop", [Conversion(ids[0]), Conversion(ids[2])])
    assert store.report_stages("shop", [StageReport("f-0", "click")])[0] == ["unknown"]
    expected = {"click": StageCounts(2, 1), "cart": StageCounts(2, 2)}
    assert store.stats("shop").stages == expected
    for seconds in (12, 1, 20, 1):  # the windows close, and their grace passes
        machine.advance(seconds * SECOND)
        store.decide("shop", OFFERS)
        store.close()
        store = Store.open(path, clock=machine, snapshot_every=2)
        assert store.stats("shop").stages == expected
    assert store.report_stages("shop", [StageReport(ids[0], "click")])[0] == ["late"]
    assert replay(store, "shop", "again").stages == expected
    assert replay(store, "shop", "none", window="1s", grace="0s").stages == {}
    store.close()
    table = dict(export(path, "again"))["reports"].filter(pl.col("kind") == "stage")
    assert table["stage"].to_list() == ["click", "click", "cart", "click", "cart", "click"]
    assert list(verify(path))[-1].startswith("none: rows")


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("reward", ["binary", RewardSpec(scale=200.0)])
def test_the_counts_follow_from_the_log_whenever_they_are_read(path: Path, is_read: bool, reward: Any) -> None:
    """Purchases are taken back in their window and grace, and after them where there is time for returns."""
    machine = FakeClocks()
    store = Store.open(path, clock=machine, snapshot_every=1000)
    store.create("shop", BanditSpec(dim=2, window="10s", grace="5s", reward=reward, returns=None))
    ids = [store.decide("shop", OFFERS)[0].decision_id for _ in range(5)]
    store.report_stages("shop", [StageReport(id_, "click") for id_ in ids])
    store.convert("shop", [Conversion(id_, 1.0, conversion_id=id_) for id_ in ids[:4]])
    seen: list[int] = []
    verdicts: list[str] = []
    for given_back, seconds in ((0, 12), (1, 12), (2, 1)):
        verdicts += store.revoke("shop", [Revocation(ids[given_back])])[0]
        if is_read:
            seen.append(store.stats("shop").stages["click"].conversions)
        machine.advance(seconds * SECOND)
        store.wait(store.decide("shop", OFFERS)[1])
        if is_read:
            seen.append(store.stats("shop").stages["click"].conversions)
    is_kept = reward == "binary"
    assert verdicts == ["accepted", "accepted", "late" if is_kept else "accepted"]
    assert seen == ([3, 3, 2, 2, 1 + is_kept, 1 + is_kept] if is_read else [])
    expected = {"click": StageCounts(5, 1 + is_kept)}
    copy = shutil.copy(path, path.with_name("crashed.db"))
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    with Store.open(copy, clock=FakeClocks()) as crashed:
        assert crashed.stats("shop").stages == expected
    assert store.stats("shop").stages == expected
    assert replay(store, "shop", "again").stages == expected
    store.close()
    with Store.open(path, clock=machine) as store:
        assert store.stats("shop").stages == expected


def test_decisions_beyond_returns_are_counted_for_good(path: Path) -> None:
    spec = BanditSpec(dim=2, window=1, reward=RewardSpec(scale=2.0), returns=2)
    with Store.open(path, clock=FakeClocks()) as store:
        store.create("shop", spec)
        for round_ in range(9):
            id_ = store.decide("shop", OFFERS)[0].decision_id
            store.report_stages("shop", [StageReport(id_, "click")])
            if round_ % 2 == 0:
                store.convert("shop", [Conversion(id_, 1.0)])
    with Store.open(path, clock=FakeClocks()) as store:
        tally = store.registry.bandits["shop"].tally
        assert tally.credited is not None
        tally.credited._limit = 0
        for _ in range(2):
            assert store.stats("shop").stages == {"click": StageCounts(9, 5)}
        assert len(tally.credited.rounds) == 1, "of rounds 1, 3, 5 and 7 the last alone can be given back"


@pytest.mark.parametrize("stage", ["", "a b", "x" * 33, "é"])
def test_a_bad_stage_is_refused_and_changes_nothing(path: Path, stage: str) -> None:
    with Store.open(path, clock=FakeClocks()) as store:
        store.create("shop", BanditSpec(dim=2, window="10s"))
        chosen = store.decide("shop", OFFERS)[0].decision_id
        with pytest.raises(InputError, match="stage of report 1 must be 1 to 32") as caught:
            store.report_stages("shop", [StageReport(chosen, "click"), StageReport(chosen, stage)])
        assert caught.value.field == "[1].stage"
        with pytest.raises(InputError, match="at most 16 stages"):
            store.report_stages("shop", [StageReport(chosen, f"s{i}") for i in range(17)])
        assert store.stats("shop").stages == {}


def test_over_http_and_by_the_clients(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        client.create("x", dim=2, window="1d")
        answer = client.decide("x", OFFERS)
        bad = server.http.post("/v1/bandits/x/stages", json={"decision_id": "x", "stage": "a b"})
        assert (bad.status_code, error_of(bad)["field"]) == (400, "stage")
        assert client.stage("x", answer, "click") == "accepted"

        async def report() -> str:
            async with lc.AsyncClient(server.url) as other:
                return await other.stage("x", answer, "click")

        assert asyncio.run(report()) == "duplicate"
        assert client.stats("x").stages == {"click": StageCounts(1, 0)}


def test_an_open_bandit_takes_stages(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", dim=2, window=5) as bandit:
        answer = bandit.decide(OFFERS)
        assert bandit.stage(answer, "cart") == "accepted"
        bandit.convert(answer)
        assert bandit.stats().stages == {"cart": StageCounts(1, 1)}
