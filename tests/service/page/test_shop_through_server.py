"""A seeded shop through a real server: the page has the log's numbers, and an outage of the feed raises its alarm."""

import math
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fake_clocks import DAY
from played_clock import PlayedClock
from served_shop import PATH, Course, ServedShop
from servers import Server, run_server, wait_until
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.service.bandit_report import BanditReport
from latecomer.service.page.texts import format_share, format_value
from latecomer.service.tools.export import export

BEGIN = 1_790_000_000_000_000
CELL = 2 * DAY / 1008
STATED = math.log(100 * 7 * DAY / CELL) / 0.45
"""Conversions that are missing when the alarm rings, as docs/reference/alarms.md has it: 29 for a window of 2 days."""

RANDOMISED = {"floor": 0.1, "draws": 8}


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


def see_alarm(server: Server, alarm: dict[str, Any]) -> None:
    """Check that the alarm which rings is on the page, in the metrics and in the exit code of `latecomer check`."""
    said = alarm["sentence"][1:]  # on the page it begins with a capital
    assert wait_until(lambda: said in server.http.get("/page/bandits/offers").text)
    assert 'latecomer_alarm{alarm="conversions_stopped",bandit="offers"} 1.0' in server.http.get("/metrics").text
    checked = CliRunner().invoke(app, ["check", server.url])
    assert (checked.exit_code, said in checked.output) == (3, True)


def play_outage(server: Server, clock: PlayedClock, course: Course) -> ServedShop:
    """Play a course; the alarm rings in the stated time once the feed is down, not before, and ends when it is back."""
    shop, rang_after, missing = ServedShop(server, clock, course), None, 0
    soon = 6 * course.days * DAY / course.rounds + 2 * CELL  # four decisions, and until their cell is complete
    while not shop.is_over:
        shop.play(4)
        alarm = shop.find_alarm()
        if alarm is None:
            assert rang_after is None or not shop.is_out
        elif rang_after is None:
            rang_after, missing = clock.elapsed - int(course.out * DAY), shop.held_back()
            assert shop.is_out
            assert float(re.findall(r"let ([0-9,]+) expect", alarm["sentence"])[0]) < STATED + 8
            see_alarm(server, alarm)
        else:
            assert clock.elapsed < course.back * DAY + soon, "it rings, and the feed is back"
    assert rang_after is not None
    assert abs(missing - STATED) < 3.0 * math.sqrt(STATED)
    before = sum(course.out - 1 <= moment / DAY < course.out for moment in shop.reported)
    assert rang_after < 1.5 * STATED / before * DAY
    return shop


def read_rows(store: Path) -> list[dict[str, Any]]:
    """Return the decisions of the log."""
    frames = [frame for kind, frame in export(store, "offers") if kind == "decisions"]
    return [row for frame in frames for row in frame.to_dicts()]


@pytest.mark.parametrize(
    ("course", "compiling"),
    [
        (
            Course(400, days=4.3, out=2.0, back=4.0, factor=4.5, policy="OTFLinTS", parameters=RANDOMISED),
            "never",
        ),
        pytest.param(Course(5000, days=6.0, out=3.0, back=3.5, factor=1.5), "auto", marks=pytest.mark.soak),
    ],
    ids=["short", "long"],
)
def test_page_has_the_numbers_of_the_log_and_an_outage_rings_and_ends(
    tmp_path: Path, course: Course, compiling: str
) -> None:
    """Compile as a server does, or not at all: "bulk", the mode of other tests, compiles inside a request."""
    clock = PlayedClock(tmp_path / "clock", BEGIN)
    with run_server(tmp_path / "a.db", clock=clock.path, LATECOMER_COMPILE=compiling) as server:
        kinds = play_outage(server, clock, course).kinds
        report = msgspec.json.decode(server.http.get(f"{PATH}/report").content, type=BanditReport)
        rows = read_rows(tmp_path / "a.db")
        shown = f"{len(rows):,}"
        assert wait_until(lambda: f"<b>{shown}</b>" in server.http.get("/page/bandits/offers").text)
        page = server.http.get("/page/bandits/offers").text
        first, last = len(rows) // 4, len(rows) // 2
        between: list[datetime] = [rows[first]["decided_at"], rows[last]["decided_at"]]
        with server.client() as client:
            part = client.report("offers", since=between[0], until=between[1])
            assert client.report("offers", until=rows[0]["decided_at"]).decisions == 0
    check(report, rows, kinds)
    check(part, rows[first:last], kinds[first:last])
    assert (part.since, part.until) == tuple(between)
    assert report.lift is not None
    assert "conversions_stopped" not in {alarm.id for alarm in report.alarms}
    for text in (
        format_share(report.rates.matured),
        format_value(report.value, report.unit),
        f"{report.lift.control_decisions:,}",
        report.recent[0].decision_id,
    ):
        assert text in page
    arrived = [period.arrived for period in report.periods]
    assert min(report.periods[0].decisions, max(arrived)) > 0
