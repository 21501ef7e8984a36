"""Any request to any replica: what one has acknowledged, all know."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from history import CONVERSION, History, read_log
from history_checker import check_history
from replica_load import DIM, IDS, QUICK, SETS
from replicas import Replica, agree, init_store, run_replicas, wait_for
from servers import error_of

import latecomer as lc

SPEC = {"dim": DIM, "window": 1000, "policy": QUICK}
KNOWN_TO_ALL = 1.0
"""Seconds until every replica knows of a bandit or a key."""


@pytest.fixture(scope="module")
def store(_cluster: Any) -> str:
    _cluster.ensure_running()
    return init_store(_cluster.create_database())


@pytest.fixture(scope="module")
def replicas(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Replica]]:
    with run_replicas(store, tmp_path_factory.mktemp("replicas")) as running:
        yield running


@pytest.fixture
def bandit(replicas: list[Replica], request: pytest.FixtureRequest) -> str:
    """Return the name of a new bandit that every replica knows."""
    name = request.node.name[:64]
    assert replicas[0].http.put(f"/v1/bandits/{name}", json=SPEC).status_code == 201
    assert wait_for(partial(all_answer, replicas, f"/v1/bandits/{name}", 200), 5)
    return str(name)


def all_answer(replicas: list[Replica], path: str, status: int) -> bool:
    return all(replica.status(path) == status for replica in replicas)


def decide(replica: Replica, bandit: str, request_id: str | None = None, *, rows: int = 0) -> httpx.Response:
    body: dict[str, Any] = {"actions": SETS[rows], "ids": IDS}
    if request_id is not None:
        body["request_id"] = request_id
    return replica.http.post(f"/v1/bandits/{bandit}/decisions", json=body)


def convert(replica: Replica, bandit: str, decision_id: str) -> str:
    answer = replica.http.post(f"/v1/bandits/{bandit}/conversions", json={"decision_id": decision_id})
    assert answer.status_code == 200, answer.text
    (verdict,) = answer.json()["verdicts"]
    return str(verdict)


def test_the_same_request_id_has_the_same_answer_on_every_replica(replicas: list[Replica], bandit: str) -> None:
    for number in range(9):
        first = replicas[number % 3]
        answers = [decide(replica, bandit, f"order-{number}") for replica in (first, *replicas)]
        assert [answer.status_code for answer in answers] == [201] * 4, [answer.text for answer in answers]
        assert len({answer.text for answer in answers}) == 1
    assert agree(replicas, bandit)["rounds"] == 9


def test_one_request_id_asked_on_all_replicas_at_once_is_one_decision(replicas: list[Replica], bandit: str) -> None:
    for number in range(5):
        answers: list[httpx.Response] = []
        barrier = threading.Barrier(3)

        def ask(replica: Replica, request_id: str = f"race-{number}") -> None:
            barrier.wait(10)  # noqa: B023 - the thread ends within the turn
            answers.append(decide(replica, bandit, request_id))  # noqa: B023

        threads = [threading.Thread(target=ask, args=(replica,)) for replica in replicas]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [answer.status_code for answer in answers] == [201] * 3
        assert len({answer.text for answer in answers}) == 1, [answer.text for answer in answers]
    assert agree(replicas, bandit)["rounds"] == 5


def test_a_request_id_with_another_request_conflicts_on_every_replica(replicas: list[Replica], bandit: str) -> None:
    assert decide(replicas[0], bandit, "order").status_code == 201
    for replica in replicas:
        refused = decide(replica, bandit, "order", rows=1)
        assert (refused.status_code, error_of(refused)["code"]) == (409, "conflict")
    assert agree(replicas, bandit)["rounds"] == 1


def test_rounds_are_gapless_whichever_replica_decides(replicas: list[Replica], bandit: str) -> None:
    rounds = [decide(replicas[number % 3], bandit).json()["round"] for number in range(12)]
    assert rounds == list(range(1, 13))


def test_a_conversion_counts_once_whichever_replica_hears_of_it(replicas: list[Replica], bandit: str) -> None:
    for number in range(6):
        decision_id = decide(replicas[number % 3], bandit).json()["decision_id"]
        verdicts = [convert(replicas[(number + shift) % 3], bandit, decision_id) for shift in (1, 2, 3, 1)]
        assert verdicts == ["accepted", "duplicate", "duplicate", "duplicate"]
    assert convert(replicas[0], bandit, "1-000000000000000000000000") == "unknown"
    counts = agree(replicas, bandit)["conversions"]
    assert (counts["accepted"], counts["duplicate"], counts["unknown"]) == (6, 18, 1)


def test_a_window_of_rounds_closes_on_every_replica(replicas: list[Replica]) -> None:
    spec = {"dim": DIM, "window": 2}
    assert replicas[0].http.put("/v1/bandits/short", json=spec).status_code == 201
    assert wait_for(partial(all_answer, replicas, "/v1/bandits/short", 200), 5)
    ids = [decide(replicas[number % 3], "short").json()["decision_id"] for number in range(6)]
    assert convert(replicas[1], "short", ids[0]) == "late"
    assert convert(replicas[2], "short", ids[-1]) == "accepted"


def test_a_created_bandit_is_known_to_all_within_a_second(replicas: list[Replica]) -> None:
    for number, creator in enumerate(replicas):
        path = f"/v1/bandits/new-{number}"
        assert creator.http.put(path, json=SPEC).status_code == 201
        begun = time.monotonic()
        assert wait_for(partial(all_answer, replicas, path, 200), KNOWN_TO_ALL)
        assert time.monotonic() - begun < KNOWN_TO_ALL + 0.5
        for other in replicas:
            assert other.http.put(path, json=SPEC).status_code == 200  # the same exists
            assert other.http.put(path, json={**SPEC, "window": 7}).status_code == 409


def test_one_bandit_created_on_all_replicas_at_once_is_one(replicas: list[Replica], store: str) -> None:
    answers: list[int] = []
    barrier = threading.Barrier(3)

    def create(replica: Replica) -> None:
        barrier.wait(10)
        answers.append(replica.http.put("/v1/bandits/at-once", json=SPEC).status_code)

    threads = [threading.Thread(target=create, args=(replica,)) for replica in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 200, 201]
    assert [decide(replica, "at-once").json()["round"] for replica in replicas] == [1, 2, 3]


def test_a_deleted_bandit_is_gone_from_all_within_a_second(replicas: list[Replica], bandit: str) -> None:
    old = decide(replicas[1], bandit).json()["decision_id"]
    assert replicas[0].http.delete(f"/v1/bandits/{bandit}", params={"confirm": bandit}).status_code == 200
    assert wait_for(partial(all_answer, replicas, f"/v1/bandits/{bandit}", 404), KNOWN_TO_ALL)
    for replica in replicas:
        assert decide(replica, bandit).status_code == 404
    assert replicas[2].http.put(f"/v1/bandits/{bandit}", json=SPEC).status_code == 201  # another one of its name
    assert wait_for(partial(all_answer, replicas, f"/v1/bandits/{bandit}", 200), KNOWN_TO_ALL)
    assert [decide(replica, bandit).json()["round"] for replica in replicas] == [1, 2, 3]
    assert [convert(replica, bandit, old) for replica in replicas] == ["unknown"] * 3


def test_a_process_that_opens_the_database_is_one_more_replica(
    replicas: list[Replica], bandit: str, store: str
) -> None:
    history = History()
    client = history.add_client()
    with lc.open(store, name=bandit) as opened, replicas[0].client(retries=0) as remote:
        for number in range(10):
            decider = opened.decide if number % 2 else lambda *args, **keys: remote.decide(bandit, *args, **keys)
            sent_at = time.monotonic()
            answer = decider(SETS[number], ids=IDS, request_id=f"r{number}")
            client.decided("here" if number % 2 else "a", f"r{number}", sent_at, answer=answer)
            sent_at = time.monotonic()
            again = remote.decide(bandit, SETS[number], ids=IDS, request_id=f"r{number}")
            client.decided("a", f"r{number}", sent_at, answer=again)
            assert opened.decide(SETS[number], ids=IDS, request_id=f"r{number}") == answer == again
            sent_at = time.monotonic()
            verdict = opened.convert(answer.decision_id)
            client.reported("here", CONVERSION, [answer.decision_id], sent_at, verdicts=[verdict.value])
            assert verdict is lc.Verdict.ACCEPTED
            sent_at = time.monotonic()
            second = remote.convert(bandit, answer.decision_id)
            client.reported("a", CONVERSION, [answer.decision_id], sent_at, verdicts=[second.value])
            assert second is lc.Verdict.DUPLICATE
        stats = agree(replicas, bandit)
        assert opened.stats().theta_hat == stats["theta_hat"]
        assert opened.stats().rounds == stats["rounds"] == 10
    check_history(history, read_log(store, bandit))


def test_a_new_replica_is_ready_only_when_it_has_caught_up(
    replicas: list[Replica], bandit: str, store: str, tmp_path: Path
) -> None:
    expected = [decide(replicas[number % 3], bandit, f"r{number}").json() for number in range(30)]
    late = Replica(store, tmp_path, name="late")
    try:
        late.start()
        assert late.stats(bandit)["rounds"] == 30
        assert [decide(late, bandit, f"r{number}").json() for number in range(30)] == expected
        assert late.stop() == 0
    finally:
        late.close()
