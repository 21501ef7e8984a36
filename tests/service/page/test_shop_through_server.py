"""A seeded shop through a real server: the report and the page have the numbers of the log, all and of a range."""

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from seeded_shop import OFFERS, RATES, draw_visitor, make_spec
from servers import Server, run_server

from latecomer.service.bandit_report import BanditReport
from latecomer.service.page.texts import format_share, format_value
from latecomer.service.tools.export import export

ROUNDS, WINDOW = 160, 60
OUTAGE = range(70, 95)
PATH = "/v1/bandits/offers"


def play(server: Server) -> list[str]:
    """Serve visitors; conversions come ever later, and not at all during the outage; return the visitors' kinds."""
    rng = np.random.default_rng(3)
    kinds: list[str] = []
    waiting: list[tuple[float, str]] = []
    actions = [{"id": offer, "features": {"offer": offer}} for offer in OFFERS]
    for round_ in range(ROUNDS):
        context = draw_visitor(rng)
        answer = server.http.post(f"{PATH}/decisions", json={"context": context, "actions": actions}).json()
        kinds.append(str(context["visitor"]))
        if rng.random() < 2 * RATES[kinds[-1]][answer["index"]]:
            waiting.append((round_ + rng.exponential(5 + round_ / 10), answer["decision_id"]))
        due = [] if round_ in OUTAGE else [item for item in waiting if item[0] <= round_]
        if due:
            waiting = [item for item in waiting if item not in due]
            reports = [{"decision_id": decision, "value": 0.5} for _, decision in due]
            server.http.post(f"{PATH}/conversions", json=reports).raise_for_status()
    return kinds


def check(report: BanditReport, rows: list[dict[str, Any]], kinds: list[str]) -> None:
    """Compare a report with the rows of the log that it is about, and their visitors."""
    converted = [row for row in rows if row["converted_at"] is not None]
    assert (report.decisions, report.conversions, report.value) == (len(rows), len(converted), 0.5 * len(converted))
    assert report.rates.naive == len(converted) / len(rows)
    assert sum(period.decisions for period in report.periods) == len(rows)
    assert sum(period.arrived for period in report.periods) == len(converted)
    chosen = Counter(row["action_id"] for row in rows)
    bought = Counter(row["action_id"] for row in converted)
    assert {choice.id: (choice.decisions, choice.conversions) for choice in report.choices} == {
        label: (count, bought[label]) for label, count in chosen.items()
    }
    visitors, pairs = report.segments[0], Counter(zip(kinds, (row["action_id"] for row in rows), strict=True))
    assert visitors.feature == "visitor"
    for level in visitors.levels:
        assert level.decisions == kinds.count(str(level.level))
        assert level.choices == {choice.id: pairs[str(level.level), choice.id] for choice in report.choices}
        mine = [row for row, kind in zip(rows, kinds, strict=True) if kind == level.level]
        assert level.conversions == sum(row["converted_at"] is not None for row in mine)
    closed = rows[: len(rows) - report.open_decisions]
    assert report.lift is not None
    for is_control, count, mean in (
        (False, report.lift.decisions, report.lift.mean),
        (True, report.lift.control_decisions, report.lift.control_mean),
    ):
        values = [row["value"] or 0.0 for row in closed if row["control"] == is_control]
        assert (count, mean) == (len(values), np.mean(values) if values else None)
    own = [row["propensity"] for row in rows if not row["control"]]
    assert sum(report.exploration.propensity_counts) == len(own)
    assert report.exploration.propensity_counts == np.histogram(own, np.arange(11) / 10)[0].tolist()


def test_report_and_page_have_the_numbers_of_the_log(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        spec = msgspec.to_builtins(make_spec(window=WINDOW))
        assert server.http.put(PATH, json=spec).status_code == 201
        kinds = play(server)
        data = server.http.get(f"{PATH}/report").content
        page = server.http.get("/page/bandits/offers").text
        rows = [
            row
            for kind, frame in export(tmp_path / "a.db", "offers")
            if kind == "decisions"
            for row in frame.to_dicts()
        ]
        first, last = len(rows) // 4, len(rows) // 2
        between: list[datetime] = [rows[first]["decided_at"], rows[last]["decided_at"]]
        with server.client() as client:
            part = client.report("offers", since=between[0], until=between[1])
            assert client.report("offers", until=rows[0]["decided_at"]).decisions == 0
    report = msgspec.json.decode(data, type=BanditReport)
    check(report, rows, kinds)
    check(part, rows[first:last], kinds[first:last])
    assert (part.since, part.until) == tuple(between)
    assert report.lift is not None
    for text in (
        f"{len(rows):,}",
        format_share(report.rates.matured),
        format_value(report.value, report.unit),
        f"{report.lift.control_decisions:,}",
        report.recent[0].decision_id,
    ):
        assert text in page
    arrived = [period.arrived for period in report.periods]
    assert min(report.periods[0].decisions, max(arrived)) > 0
