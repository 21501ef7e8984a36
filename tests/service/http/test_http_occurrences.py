"""`occurred_at` over HTTP: nonsense and the future are refused, and what lies before its decision is said."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from servers import Server, error_of, run_server

import latecomer as lc
from latecomer.errors import InputError, OccurredBeforeDecisionWarning
from latecomer.service.http.openapi import write_document
from latecomer.service.http.settings import Settings
from latecomer.service.messages import Conversion

ROWS = [[0.6, 0.0], [0.0, 0.8]]
CONVERSIONS = "/v1/bandits/b/conversions"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("occurred") / "a.db") as server:
        server.http.put("/v1/bandits/b", json={"dim": 2, "window": "7d"}).raise_for_status()
        yield server


def decided(server: Server) -> str:
    return str(server.http.post("/v1/bandits/b/decisions", json={"actions": ROWS}).json()["decision_id"])


def stats(server: Server) -> Any:
    return server.http.get("/v1/bandits/b/stats").json()


def test_occurred_at_in_the_future_is_refused_with_its_field(server: Server) -> None:
    first, second = decided(server), decided(server)
    ahead = (datetime.now(UTC) + timedelta(days=1, minutes=5)).isoformat()
    before = stats(server)
    for path in (CONVERSIONS, "/v1/bandits/b/revocations"):
        answer = server.http.post(path, json={"decision_id": first, "occurred_at": ahead})
        assert (answer.status_code, error_of(answer)["field"]) == (400, "occurred_at")
        assert "more than a day ahead of the store's clock" in error_of(answer)["message"]
        batch = [{"decision_id": second}, {"decision_id": first, "occurred_at": ahead}]
        answer = server.http.post(path, json=batch)
        assert (answer.status_code, error_of(answer)["field"]) == (400, "[1].occurred_at")
    assert stats(server) == before
    soon = (datetime.now(UTC) + timedelta(hours=23)).isoformat()
    assert server.http.post(CONVERSIONS, json={"decision_id": first, "occurred_at": soon}).json() == {
        "verdicts": ["accepted"]
    }


@pytest.mark.parametrize("moment", [1_767_614_400, 1_767_614_400_000, "NaT", "", "9999-12-31T23:59:59-05:00"])
def test_occurred_at_that_is_no_time_is_refused(server: Server, moment: object) -> None:
    before = stats(server)
    answer = server.http.post(CONVERSIONS, json={"decision_id": "x", "occurred_at": moment})
    assert (answer.status_code, error_of(answer)["field"]) == (400, "occurred_at")
    if moment != "9999-12-31T23:59:59-05:00":
        assert error_of(answer)["message"].endswith(": write a time as 2026-01-05T12:00:00Z")
    assert stats(server) == before


def test_the_client_accepts_every_type_of_time(server: Server) -> None:
    ids = [decided(server) for _ in range(6)]
    now = datetime.now(UTC)
    dresses: list[Any] = [now, pd.Timestamp(now), np.datetime64(now.replace(tzinfo=None)), now.isoformat()]
    before = stats(server)["conversions"]["accepted"]
    with server.client() as client:
        for decision_id, moment in zip(ids, dresses, strict=False):
            assert client.convert("b", decision_id, occurred_at=moment) is lc.Verdict.ACCEPTED
            assert client.convert_many("b", [Conversion(decision_id, 1.0, moment)]) == [lc.Verdict.DUPLICATE]
        nothing: Any
        for nothing in (pd.NaT, np.datetime64("NaT"), float("nan"), "soon", 1_767_614_400_000):
            with pytest.raises(InputError, match=r"^occurred_at must be a "):
                client.convert("b", ids[4], occurred_at=nothing)
            with pytest.raises(InputError, match=r"^occurred_at of report 0 must be a "):
                client.convert_many("b", [Conversion(ids[4], 1.0, nothing)])
            with pytest.raises(InputError, match=r"^occurred_at must be a "):
                client.revoke("b", ids[4], occurred_at=nothing)
            with client.batch("b") as batch, pytest.raises(InputError, match=r"^occurred_at must be a "):
                batch.convert(ids[4], occurred_at=nothing)
        with pytest.raises(InputError, match=r"^conversions must be latecomer.Conversion records; got {"):
            client.convert_many("b", [{"decision_id": ids[4]}])  # type: ignore[list-item]
        with client.batch("b") as batch:
            batch.convert(ids[5], occurred_at=pd.Timestamp(now))
    assert stats(server)["conversions"]["accepted"] == before + 5


def test_the_schema_describes_warnings() -> None:
    schemas = write_document(Settings())["components"]["schemas"]
    assert schemas["Verdicts"]["required"] == ["verdicts"]
    assert schemas["Verdicts"]["properties"]["warnings"]["items"] == {"$ref": "#/components/schemas/ReportWarning"}
    assert set(schemas["ReportWarning"]["properties"]) == {"index", "code", "message"}


def test_a_time_before_its_decision_is_answered_with_a_warning_and_counted(server: Server) -> None:
    ids = [decided(server) for _ in range(2)]
    before = stats(server)["before_decision"]
    early = {"decision_id": ids[0], "occurred_at": "1970-01-01T00:00:00Z"}
    answer = server.http.post(CONVERSIONS, json=[{"decision_id": ids[1]}, early]).json()
    assert answer["verdicts"] == ["accepted", "accepted"]
    assert [(found["index"], found["code"]) for found in answer["warnings"]] == [(1, "occurred_before_decision")]
    assert stats(server)["before_decision"] == before + 1
    assert (
        f'latecomer_conversions_before_decision_total{{bandit="b"}} {before + 1}.0' in server.http.get("/metrics").text
    )


def test_the_clients_warn_their_callers(server: Server) -> None:
    ids = [decided(server) for _ in range(8)]
    here = Path(__file__).name
    with server.client() as client:
        with pytest.warns(OccurredBeforeDecisionWarning, match="occurred_at lies before the decision") as seen:
            assert client.convert("b", ids[0], occurred_at=0).name == "ACCEPTED"
        assert [Path(warning.filename).name for warning in seen] == [here]
        with pytest.warns(OccurredBeforeDecisionWarning):
            found = client.convert_many("b", [Conversion(ids[1]), Conversion(ids[2], 1.0, datetime(1970, 1, 1))])
        assert [warning.index for warning in found.warnings] == [1]
        batch = client.batch("b")
        with pytest.warns(OccurredBeforeDecisionWarning), batch:
            batch.convert(ids[3], occurred_at=0)
        assert (batch.verdicts, batch.warnings) == ({lc.Verdict.ACCEPTED: 1}, {"occurred_before_decision": 1})

    async def awaited() -> None:
        async with lc.AsyncClient(server.url) as client:
            with pytest.warns(OccurredBeforeDecisionWarning) as seen:
                assert (await client.convert("b", ids[4], occurred_at=0)).name == "ACCEPTED"
            assert [Path(warning.filename).name for warning in seen] == [here]
            with pytest.warns(OccurredBeforeDecisionWarning):
                async with client.batch("b") as batch:
                    await batch.convert(ids[5], occurred_at=0)
            assert batch.warnings == {"occurred_before_decision": 1}

    asyncio.run(awaited())
