"""`latecomer store copy` of a file whose time is ahead of the database's: no stamp lies in the database's future."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from replicas import run_cli
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.storage.clock import SystemClocks
from latecomer.service.store import Store

ROWS = [[0.6, 0.0], [0.0, 0.8]]
WINDOW, TOLERANCE = timedelta(minutes=30), timedelta(seconds=20)


class AheadClocks(SystemClocks):
    """This machine's clocks, with the wall clock ahead by some seconds."""

    def __init__(self, seconds: float) -> None:
        self._ahead = int(seconds * 1e6)

    def wall(self) -> int:
        return super().wall() + self._ahead


def decide_ahead(path: Path, seconds: float) -> str:
    """Decide once in a new store whose clock is ahead; return the decision's id."""
    with Store.open(path, clock=AheadClocks(seconds)) as store:
        store.create("offers", BanditSpec(dim=2, window="30m"))
        answer, ticket = store.decide("offers", ROWS)
        store.wait(ticket)
    return answer.decision_id


def read_lead(database: str) -> float:
    """Return the seconds by which the latest stamp of the log is ahead of the database's time, less its shift."""
    with psycopg.connect(database) as connection:
        now = "extract(epoch FROM clock_timestamp()) * 1000000"
        shift = "coalesce((SELECT split_part(value, ' ', 1)::bigint FROM latecomer.setting WHERE name = 'shift'), 0)"
        query = f"SELECT max(stamp) - ({now} + {shift}) FROM latecomer.log"  # noqa: S608
        ((lead,),) = connection.execute(query.encode()).fetchall()
    return float(lead) / 1e6


def is_empty(database: str) -> bool:
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT count(*) FROM latecomer.log").fetchall() == [(0,)]


def test_a_file_far_ahead_of_the_database_is_refused_until_its_clock_is_adjusted(database: str, tmp_path: Path) -> None:
    file, back = tmp_path / "ahead.db", tmp_path / "back.db"
    first = decide_ahead(file, 86_400)
    refused = CliRunner().invoke(app, ["store", "copy", str(file), database])
    assert refused.exit_code == 2, refused.output
    assert "ahead of the database's time" in refused.output
    assert f"latecomer log adjust-clock {file}" in " ".join(refused.output.split())
    assert is_empty(database)
    run_cli("log", "adjust-clock", file)
    run_cli("store", "copy", file, database)
    assert read_lead(database) <= 0
    run_cli("store", "copy", database, back)
    for store in (database, back, file):
        with lc.open(store, name="offers") as bandit:
            answer = bandit.decide(ROWS, request_id="one")
            assert bandit.decide(ROWS, request_id="one") == answer
            now = datetime.now(UTC)
            assert answer.expires_at is not None
            assert abs(answer.expires_at - now - WINDOW) < TOLERANCE, "shown in the store's own time"
            assert bandit.convert(answer, occurred_at=now) is lc.Verdict.ACCEPTED
            assert bandit.convert(first, occurred_at=now) is lc.Verdict.ACCEPTED, "its window closed by the copy"
            stats = bandit.stats()
            assert sum(stats.delay_counts) == 2
            assert stats.before_decision == 0, "a conversion of today lies before its decision"
    assert run_cli("log", "verify", database).splitlines()[-1] == "whole"


def test_a_file_a_moment_ahead_of_the_database_is_waited_for(database: str, tmp_path: Path) -> None:
    file = tmp_path / "ahead.db"
    decide_ahead(file, 2.0)
    run_cli("store", "copy", file, database)
    assert read_lead(database) <= 0


@pytest.mark.parametrize("seconds", [0.0, -3600.0])
def test_a_file_that_is_not_ahead_is_copied_at_once(database: str, tmp_path: Path, seconds: float) -> None:
    file = tmp_path / "shop.db"
    first = decide_ahead(file, seconds)
    run_cli("store", "copy", file, database)
    with lc.open(database, name="offers") as bandit:
        expected = lc.Verdict.ACCEPTED if seconds == 0.0 else lc.Verdict.LATE
        assert bandit.convert(first) is expected  # an hour has passed for the database
