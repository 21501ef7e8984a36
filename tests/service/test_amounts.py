"""Amounts of conversions in a store: large ones, sums to double precision, and what an export says of them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from servers import error_of, run_server

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.messages import Revocation
from latecomer.service.tools.export import export

OFFERS = np.eye(2)


def test_amounts_of_a_large_scale_are_taken_over_http_and_from_a_batch(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        client.create("x", dim=2, window="1d", reward={"scale": 5e9, "unit": "IDR"})
        answer = client.decide("x", OFFERS)
        assert client.convert("x", answer, value=2e9, conversion_id="p") == "accepted"
        with client.batch("x") as batch:
            batch.convert(answer, value=1.5e9, conversion_id="q")
            with pytest.raises(InputError, match="at most 1e15"):
                batch.convert(answer, value=2e15, conversion_id="r")
        assert client.stats("x").value == pytest.approx(3.5e9)
        bad = server.http.post("/v1/bandits/x/conversions", json={"decision_id": "x", "value": 2e15})
        assert (bad.status_code, error_of(bad)["field"]) == (400, "value")


@pytest.mark.parametrize(
    ("scale", "amounts"),
    [(200.0, [60.0, 150.0]), (1e9, [10_000.0] * 20), (1e12, [1.0]), (250.0, [0.1] * 30), (1e12, [0.01, 3e11])],
)
def test_stats_have_the_amounts_to_double_precision(path: Path, scale: float, amounts: list[float]) -> None:
    reward = {"scale": scale, "unit": "EUR"}
    with lc.open(path, dim=2, window="1d", policy="Uniform", reward=reward) as bandit:
        for number, amount in enumerate(amounts):
            bandit.convert(bandit.decide(OFFERS), value=amount, conversion_id=str(number))
        assert bandit.stats().value == pytest.approx(math.fsum(amounts), rel=1e-15, abs=0)
        bandit.decide(OFFERS)


@pytest.mark.parametrize("reward", ["binary", {"scale": 100, "unit": "EUR"}])
def test_an_export_has_what_was_revoked_as_a_whole(path: Path, reward: Any) -> None:
    """By the decision alone, in a row of its own and in one with other returns; plain conversions are among them."""
    ids: list[str | None] = ["1", None, "2", None, "3", "4"]
    with lc.open(path, name="shop", dim=2, window="1d", policy="Uniform", reward=reward) as bandit:
        answers = [bandit.decide(OFFERS) for _ in ids]
        for answer, id_ in zip(answers, ids, strict=True):
            bandit.convert(answer, value=1.0, conversion_id=id_)
        bandit.revoke(answers[0])
        bandit.revoke(answers[1])
        store, reports = bandit._store, [Revocation(answers[3].decision_id), Revocation(answers[4].decision_id)]
        store.wait(store.revoke("shop", [*reports, Revocation(answers[5].decision_id, conversion_id="4")])[1])
        fates = [bandit.explain(answer).decision for answer in answers]
    table = next(frame for kind, frame in export(path, "shop") if kind == "decisions")
    assert table["revoked"].to_list() == [True, True, False, True, True, True]
    assert table["value"].to_list() == [1.0] * 6
    assert [fate.fate == "revoked" for fate in fates] == table["revoked"].to_list()
    assert table["converted_at"].to_list() == [fate.converted_at for fate in fates]
