"""Decision ids over a real server: those of a history that was cut are unknown to the one that goes on."""

import json
import shutil
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from servers import Server

from latecomer.service.storage.rows import key_of
from latecomer.service.storage.schema import connect
from latecomer.service.tools.backup import backup

ONE, OTHER = [[1.0, 0.0]], [[0.0, 1.0]]


class Caller:
    """A client of a few lines, which shares nothing with ours."""

    def __init__(self, server: Server) -> None:
        self.base = f"{server.url}/v1/bandits/shop"

    def call(self, method: str, path: str = "", body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own server
            self.base + path, data, {"content-type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    def decide(self, actions: list[list[float]], count: int) -> list[str]:
        return [self.call("POST", "/decisions", {"actions": actions})["decision_id"] for _ in range(count)]

    def convert(self, ids: list[str]) -> list[str]:
        verdicts: list[str] = self.call("POST", "/conversions", [{"decision_id": id_} for id_ in ids])["verdicts"]
        return verdicts

    def theta(self) -> list[float]:
        theta: list[float] = self.call("GET", "/stats")["theta_hat"]
        return theta


def check_cut(caller: Caller, *, kept: list[str], lost: list[str]) -> list[str]:
    """Play as many rounds anew, with other actions; reports of the lost ones are credited to none of them."""
    assert caller.convert(lost) == ["unknown"] * len(lost)  # before any round is played anew
    again = caller.decide(OTHER, len(lost))
    before = caller.theta()
    assert caller.convert(lost) == ["unknown"] * len(lost)
    assert caller.theta() == before
    assert not set(again) & set(lost)
    assert caller.convert(kept) == ["duplicate"] * len(kept)
    return again


def cut_tail(store: Path, rounds: int) -> None:
    """Delete the rows after that round, as if the disk had never had them."""
    connection = connect(store, write=True)
    connection.execute("DELETE FROM log WHERE key > ? AND rounds > ?", (key_of(1, 0), rounds))
    connection.close()


def test_decision_ids_of_a_lost_history_are_unknown(tmp_path: Path) -> None:
    """Killed, cut, and restored from a copy: the rows that are left keep their ids, and no others count."""
    store, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    server = Server(store)
    caller = Caller(server)
    caller.call("PUT", "", {"dim": 2, "window": "7d", "policy": "OTFLinUCB"})
    first = caller.decide(ONE, 5)
    request = {"actions": ONE, "request_id": "order 1"}
    answer = caller.call("POST", "/decisions", request)
    assert caller.convert(first) == ["accepted"] * 5
    backup(store, copy)
    lost = caller.decide(ONE, 5)
    server.kill()

    server = Server(store)  # killed and opened again: nothing is lost, and every id is what it was
    caller = Caller(server)
    assert caller.call("POST", "/decisions", request) == answer
    assert caller.convert(first + lost[:2]) == ["duplicate"] * 5 + ["accepted"] * 2
    second = caller.decide(ONE, 5)
    assert caller.convert(second[:1]) == ["accepted"]
    server.kill()

    cut_tail(store, 6)
    server = Server(store)
    caller = Caller(server)
    again = check_cut(caller, kept=first, lost=lost + second)
    assert caller.convert(again[:1]) == ["accepted"]
    assert server.stop() == 0

    for suffix in ("-wal", "-shm"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, store)
    server = Server(store)
    caller = Caller(server)
    check_cut(caller, kept=first, lost=lost + second + again)
    assert caller.call("POST", "/decisions", request) == answer
    assert server.stop() == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = Server(tmp_path_factory.mktemp("ids") / "shop.db")
    yield running
    running.stop()


def test_a_decision_id_cannot_be_made_from_another(server: Server) -> None:
    """Whoever may report conversions knows some ids, and learns nothing of the others from them."""
    caller = Caller(server)
    caller.call("PUT", "", {"dim": 2, "window": "7d", "policy": "OTFLinUCB"})
    ids = caller.decide(ONE, 20)
    number, tag = ids[8].split("-")
    assert number == "9"
    others = [f"{round_:x}-{tag}" for round_ in range(1, 21) if round_ != 9]
    swapped = [f"{one.split('-')[0]}-{other.split('-')[1]}" for one, other in pairwise(ids)]
    spelled = [f"0{ids[8]}", ids[8].upper() + "x", f"{number}-{tag[:-1]}", f"{number}-", number, f" {ids[8]}"]
    guesses = others + swapped + spelled + [f"{number}-{'0' * len(tag)}", "9-é", "-", ""]
    assert caller.convert(guesses) == ["unknown"] * len(guesses)
    assert caller.theta() == [0.0, 0.0]
    assert caller.convert(ids) == ["accepted"] * 20
