"""The report over HTTP: numbers of the log, scopes, both clients, and the schema."""

import asyncio
from pathlib import Path

import httpx
import numpy as np
import pytest
from servers import run_server

import latecomer as lc
from latecomer.errors import UnknownBanditError
from latecomer.service.bandit_report import BanditReport
from latecomer.service.http.keys import KeyFile


def test_report_over_http_and_after_a_restart(tmp_path: Path) -> None:
    parameters = {"control": {"share": 0.3, "policy": "uniform"}}
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        client.create("b", dim=2, window=50, parameters=parameters)
        answers = [client.decide("b", np.eye(2), ids=["left", "right"]) for _ in range(120)]
        for answer in answers[::4]:
            client.convert("b", answer)
        report = client.report("b")
        raw = server.http.get("/v1/bandits/b/report").json()
        schema = server.http.get("/schema").json()["paths"]["/v1/bandits/{name}/report"]["get"]
        with pytest.raises(UnknownBanditError):
            client.report("none")
    accepted = report.conversion_verdicts["accepted"]
    assert (report.name, report.decisions, report.conversions) == ("b", 120, accepted)
    assert accepted == len([answer for answer in answers[::4] if answer.round > 120 - 50])
    assert {choice.id for choice in report.choices} == {"left", "right"}
    assert sum(period.decisions for period in report.periods) == raw["decisions"] == 120
    assert sum(period.controls for period in report.periods) == sum(answer.is_control for answer in answers)
    assert report.lift is not None
    assert report.lift.decisions + report.lift.control_decisions == 120 - report.open_decisions
    assert schema["operationId"] == "getReport"
    with run_server(tmp_path / "a.db") as server:

        async def read() -> BanditReport:
            async with lc.AsyncClient(server.url) as client:
                return await client.report("b")

        again = asyncio.run(read())
    assert (again.periods, again.choices, again.lift) == (report.periods, report.choices, report.lift)


def test_report_takes_a_key_of_scope_read_for_that_bandit(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "a.db.keys")
    admin, other = keys.add(scopes=["admin", "read"])[0], keys.add(scopes=["read"], bandits=["c"])[0]
    with run_server(tmp_path / "a.db") as server:
        with server.client(key=admin) as client:
            client.create("b", dim=2, window=50)
            assert client.report("b").decisions == 0
        for key, status in ((other, 403), ("wrong", 401)):
            answer = httpx.get(f"{server.url}/v1/bandits/b/report", headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == status
