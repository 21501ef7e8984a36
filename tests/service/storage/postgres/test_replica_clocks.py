"""Replicas whose clocks are minutes apart: time is the database's."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from postgres_server import PostgresServer
from replicas import Replica, wait_for

APART = 600.0
"""Seconds by which a clock is wrong."""
TOLERANCE = timedelta(seconds=10)
BODY = {"actions": [[0.6, 0.0], [0.0, 0.8]]}


def post(replica: Replica, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = replica.http.post(f"/v1/bandits/b/{path}", json=body)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_shift_of_these_tests_is_seen_by_a_server(tmp_path: Path) -> None:
    """A server on a file goes by its machine's clock: so the shift that the next test gives is real."""
    replica = Replica(tmp_path / "a.db", tmp_path, clock_ahead=APART)
    try:
        replica.start()
        assert replica.http.put("/v1/bandits/b", json={"dim": 2, "window": "2m"}).status_code == 201
        expires_at = datetime.fromisoformat(post(replica, "decisions", BODY)["expires_at"])
        assert abs(expires_at - datetime.now(UTC) - timedelta(minutes=2, seconds=APART)) < TOLERANCE
    finally:
        replica.close()


def test_clocks_of_replicas_that_are_ten_minutes_apart_close_no_window(
    cluster: PostgresServer, database: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        replicas = [
            Replica(database, tmp_path, name=name, clock_ahead=ahead)
            for name, ahead in (("right", 0.0), ("ahead", APART), ("behind", -APART))
        ]
        for replica in replicas:
            stack.callback(replica.close)
            replica.start()
        assert replicas[1].http.put("/v1/bandits/b", json={"dim": 2, "window": "2m"}).status_code == 201
        assert wait_for(lambda: all(replica.status("/v1/bandits/b") == 200 for replica in replicas), 2)
        ((now,),) = cluster.execute("SELECT now()")
        created = datetime.fromisoformat(replicas[1].http.get("/v1/bandits/b").json()["created_at"])
        assert abs(created - now) < TOLERANCE
        expiries = []
        for number in range(6):
            decider, reporter = replicas[number % 3], replicas[(number + 1) % 3]
            decision = post(decider, "decisions", BODY)
            expires_at = datetime.fromisoformat(decision["expires_at"])
            assert abs(expires_at - now - timedelta(minutes=2)) < TOLERANCE, f"{decider.name} goes by its own clock"
            expiries.append(expires_at)
            reported = post(reporter, "conversions", {"decision_id": decision["decision_id"]})
            assert reported == {"verdicts": ["accepted"]}, f"decided by {decider.name}, reported to {reporter.name}"
        assert expiries == sorted(expiries), "time went back between two replicas"
        for replica in replicas:  # an occurrence is compared with the database's time too
            decision = post(replica, "decisions", BODY)
            occurred = (now + timedelta(hours=23)).isoformat()
            report = {"decision_id": decision["decision_id"], "occurred_at": occurred}
            assert post(replica, "conversions", report)["verdicts"] == ["accepted"], "up to a day ahead counts as now"
