"""Reports and the page on PostgreSQL: every replica has the numbers of the log, whoever made the decisions."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from replicas import run_cli, run_replicas
from seeded_shop import OFFERS, RATES, draw_visitor, make_spec

from latecomer.service.bandit_report import BanditReport
from latecomer.service.tools.export import export

ROUNDS = 60


def read(answer: Any) -> BanditReport:
    return msgspec.json.decode(answer.content, type=BanditReport)


def test_report_page_and_explanation_on_every_replica(database: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    actions = [{"id": offer, "features": {"offer": offer}} for offer in OFFERS]
    with run_replicas(database, tmp_path, 2) as replicas:
        spec = msgspec.to_builtins(make_spec(window=20))
        assert replicas[0].http.put("/v1/bandits/offers", json=spec).status_code == 201
        answers, visitors = [], []
        for number in range(ROUNDS):
            replica = replicas[number % 2]
            visitors.append(draw_visitor(rng))
            body = {"context": visitors[-1], "actions": actions}
            answers.append(replica.http.post("/v1/bandits/offers/decisions", json=body).json())
            if rng.random() < 3 * RATES[str(visitors[-1]["visitor"])][answers[-1]["index"]]:
                conversion = {"decision_id": answers[-1]["decision_id"], "value": 0.5}
                replicas[(number + 1) % 2].http.post("/v1/bandits/offers/conversions", json=conversion)
        reports = [read(replica.http.get("/v1/bandits/offers/report")) for replica in replicas]
        pages = [replica.http.get("/page/bandits/offers").text for replica in replicas]
        query = {"decision_id": answers[-1]["decision_id"]}
        why = [replica.http.get("/v1/bandits/offers/explanation", params=query).json() for replica in replicas]
        run_cli("report", database, "--bandit", "offers", "--out", tmp_path / "r.json")
    frames = [frame for kind, frame in export(database, "offers") if kind == "decisions"]
    rows = [row for frame in frames for row in frame.to_dicts()]
    written = msgspec.json.decode((tmp_path / "r.json").read_bytes(), type=BanditReport)
    converted = [row for row in rows if row["converted_at"] is not None]
    for report in (*reports, written):
        assert (report.decisions, report.conversions, report.value) == (ROUNDS, len(converted), 0.5 * len(converted))
        assert sum(period.controls for period in report.periods) == sum(row["control"] for row in rows)
        assert {choice.id: choice.decisions for choice in report.choices} == Counter(row["action_id"] for row in rows)
        levels = {level.level: level.decisions for level in report.segments[0].levels}
        assert levels == Counter(visitor["visitor"] for visitor in visitors)
        assert report.lift is not None
        assert report.lift.decisions + report.lift.control_decisions == ROUNDS - report.open_decisions
        assert [found.decision_id for found in report.recent] == [row["decision_id"] for row in rows[:-16:-1]]
        fates = {found.round: found.fate == "converted" for found in report.recent}
        assert fates == {row["round"]: row["converted_at"] is not None for row in rows[-15:]}
    for report, page in zip(reports, pages, strict=True):
        assert report.service is not None
        assert report.service.replicas is not None
        assert report.service.replicas >= 2
        assert answers[-1]["decision_id"] in page
        assert report.rates.note in page
    assert why[0] == why[1]
    assert [action["is_chosen"] for action in why[0]["actions"]].index(True) == answers[-1]["index"]
    assert why[0]["context"] == visitors[-1]
    assert why[0]["decision"]["propensity"] == answers[-1]["propensity"]
