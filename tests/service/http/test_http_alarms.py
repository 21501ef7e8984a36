"""An outage of the conversions' feed: its alarm is raised in the stated time and ends, in played and in real time."""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import DAY, HOUR
from seeded_shop import open_shop
from servers import Server, run_server

from latecomer.service.store import Store

PATH = "/v1/bandits/offers"
ROWS = {"actions": [[1.0, 0.0], [0.0, 1.0]], "ids": ["left", "right"]}


@pytest.mark.soak
def test_the_seeded_shops_outage_is_found_in_the_stated_time_and_ends(tmp_path: Path) -> None:
    ringing: list[tuple[int, float]] = []

    def watch(store: Store, elapsed: int) -> None:
        silence = store.read_bandit("offers").monitor
        if store.read_bandit("offers").rounds % 10 == 0:
            store.read_bandit("offers").count_notes()
            found = silence.look_ahead(store.clock.now())
            if found.is_ringing:
                ringing.append((elapsed, found.expected))

    with open_shop(tmp_path / "a.db", 9000, watch=watch):
        pass
    times = np.array([elapsed for elapsed, _ in ringing])
    assert len(times), "the outage was not found"
    stated = math.log(100 * 7 * 1008 / 2) / 0.45
    assert 3 * DAY < times.min() < 3 * DAY + 12 * HOUR
    assert ringing[0][1] < stated + 5  # conversions that were missing when it rang
    assert times.max() < 3 * DAY + 14 * HOUR  # the feed is back after 12 hours


def play(server: Server, state: dict[str, Any], *, feed: bool, seconds: float, until: Any) -> None:
    """Decide and report in real time until something holds."""
    begin = time.monotonic()
    while not until() and time.monotonic() - begin < seconds:
        answer = server.http.post(f"{PATH}/decisions", json=ROWS).json()
        moment = time.monotonic()
        if state["rng"].random() < 0.5:
            state["waiting"].append((moment + state["rng"].exponential(0.5), answer["decision_id"]))
        due = [item for item in state["waiting"] if item[0] <= moment]
        if feed and due:
            state["waiting"] = [item for item in state["waiting"] if item[0] > moment]
            reports = [{"decision_id": decision} for _, decision in due]
            server.http.post(f"{PATH}/conversions", json=reports).raise_for_status()
        time.sleep(0.01)
    assert until(), "it did not come to that in time"


@pytest.mark.soak
def test_a_real_servers_feed_that_stops_rings_and_ends_with_the_outage(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        server.http.put(PATH, json={"dim": 2, "window": "30s", "policy": "Uniform"}).raise_for_status()
        state: dict[str, Any] = {"rng": np.random.default_rng(5), "waiting": []}

        def stats() -> dict[str, Any]:
            found: dict[str, Any] = server.http.get(f"{PATH}/stats").json()
            return found

        def rings() -> bool:
            return any(alarm["id"] == "conversions_stopped" for alarm in stats()["alarms"])

        play(server, state, feed=True, seconds=60, until=lambda: stats()["conversions"]["accepted"] >= 150)
        assert not rings()
        play(server, state, feed=False, seconds=60, until=rings)
        assert "Alarms (" in server.http.get("/page/bandits/offers").text
        assert 'latecomer_alarm{alarm="conversions_stopped",bandit="offers"} 1.0' in server.http.get("/metrics").text
        state["waiting"] = []
        play(server, state, feed=True, seconds=60, until=lambda: not rings())
