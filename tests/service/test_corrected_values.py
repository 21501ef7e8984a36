"""Corrections of what decisions are credited with, in a store: after restarts, in a replay, exported, over HTTP."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import SECOND, FakeClocks, state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec, RewardSpec
from latecomer.service.messages import Conversion, Correction, Revocation
from latecomer.service.store import Store
from latecomer.service.tools.export import export
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

OFFERS = np.eye(2)
SPEC: dict[str, Any] = {"dim": 2, "window": "10s", "grace": "3s", "returns": "60s"}
SPEC["reward"] = RewardSpec(scale=200.0, unit="EUR")


class Shop:
    """A store with a bandit, and a machine whose time a test sets."""

    def __init__(self, path: Path, **more: Any) -> None:
        self.path, self.machine = path, FakeClocks()
        self.store = self.open()
        self.store.create("shop", BanditSpec(**{**SPEC, **more}))

    def open(self) -> Store:
        return Store.open(self.path, clock=self.machine, snapshot_every=3, retention="forever")

    def restart(self) -> None:
        before = state_of(self.store, "shop")
        self.store.close()
        self.store = self.open()
        assert state_of(self.store, "shop") == before

    def decide(self) -> str:
        answer, ticket = self.store.decide("shop", OFFERS[:1])
        self.store.wait(ticket)
        return answer.decision_id

    def report(self, kind: str, *reports: Any) -> list[str]:
        verdicts, ticket = getattr(self.store, kind)("shop", list(reports))
        self.store.wait(ticket)
        return list(verdicts)


@pytest.mark.parametrize(
    "more",
    [{}, {"reward": "binary", "returns": None}, {"challenger": ChallengerSpec(policy="Uniform", share=0.5)}],
)
def test_a_correction_survives_restarts_and_replays(path: Path, more: dict[str, Any]) -> None:
    """Of a bandit without baskets too; with a challenger, both policies learn of it."""
    shop = Shop(path, **more)
    ids = [shop.decide() for _ in range(4)]
    for decision in ids[:3]:
        shop.report("convert", Conversion(decision, 1.0))
    assert shop.report("correct", Correction(ids[0], 0.5), Correction(ids[1], 1.0)) == ["accepted", "duplicate"]
    assert shop.report("correct", Correction(ids[3], 0.5), Correction("1-00", 0.5)) == ["unknown", "unknown"]
    shop.report("revoke", Revocation(ids[2]))
    assert shop.report("correct", Correction(ids[2], 0.5), Correction(ids[0], 0.5)) == ["duplicate", "duplicate"]
    shop.restart()
    bandit, scale = shop.store.read_bandit("shop"), 1.0 if more.get("reward") == "binary" else 200.0
    for policy in bandit.policies:
        np.testing.assert_allclose(policy.B, [1.5 / scale, 0.0], atol=1e-12)
    stats = shop.store.stats("shop")
    assert (stats.value, stats.conversions["accepted"], stats.revocations["accepted"]) == (1.5, 3, 1)
    shop.machine.advance(12 * SECOND)
    shop.decide()
    assert shop.report("correct", Correction(ids[0], 0.25)) == ["accepted"]  # in the grace, or the time for returns
    shop.restart()
    assert shop.store.stats("shop").value == 1.25
    replay(shop.store, "shop", "again", window="3600s")
    assert shop.store.stats("again").value == 1.25
    whole = shop.store.bandit_report("shop", datetime(2026, 1, 1, tzinfo=UTC), None)
    assert whole.value * scale == pytest.approx(1.25, rel=1e-12)
    assert [each.fate for each in whole.recent][::-1] == ["converted", "converted", "revoked", "closed", "open"]
    shop.store.close()
    assert len(list(verify(path))) > 1
    frames = dict(export(path, "shop"))
    assert frames["decisions"]["value"].to_list() == pytest.approx([0.25, 1.0, 1.0, None, None])
    corrections = frames["reports"].filter(kind="correction")
    assert corrections["value"].to_list() == [0.5, 1.0, 0.5, 0.5, 0.5, 0.25]


def test_a_correction_over_http_and_by_the_clients(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        client.create("x", dim=2, window="1d", reward={"scale": 200, "unit": "EUR"})
        answer = client.decide("x", OFFERS)
        client.convert("x", answer, value=60, conversion_id="p")
        assert client.correct("x", answer, 35.0) == "accepted"
        assert client.correct("x", answer, 35.0) == "duplicate"
        for body, field in (
            ({"decision_id": answer.decision_id}, "value"),
            ({"decision_id": answer.decision_id, "value": -1}, "value"),
            ([{"decision_id": answer.decision_id, "value": 1}, {"decision_id": "x", "value": 2e15}], "[1].value"),
        ):
            bad = server.http.post("/v1/bandits/x/corrections", json=body)
            assert (bad.status_code, error_of(bad).get("field")) == (400, field), bad.text
        assert client.stats("x").value == 35.0

        async def correct() -> str:
            async with lc.AsyncClient(server.url) as other:
                return await other.correct("x", answer, 20.0)

        assert asyncio.run(correct()) == "accepted"
        assert client.stats("x").value == 20.0
        for wrong in (None, "much", float("nan")):
            with pytest.raises(InputError):
                client.correct("x", answer, wrong)  # type: ignore[arg-type]
    with lc.open(tmp_path / "b.db", dim=2, window="1d") as bandit:
        answer = bandit.decide(OFFERS)
        bandit.convert(answer)
        for wrong in (None, 1.5, "much"):
            with pytest.raises(InputError, match="value of correction 0 must be"):
                bandit.correct(answer, wrong)  # type: ignore[arg-type]
        assert bandit.correct(answer, 0.5) == "accepted"
        assert bandit.stats().value == 0.5
