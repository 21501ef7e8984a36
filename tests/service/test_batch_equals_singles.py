"""A batch of decisions has the bits of the same requests one by one: answers, errors, state, counts and log."""

from typing import Any

import numpy as np
import pytest
from fake_clocks import FakeClocks, state_of
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_log import MemoryLog

from latecomer.errors import LatecomerError
from latecomer.policies.base import bulk
from latecomer.service.bandit import events
from latecomer.service.bandit.registry import Registry
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.decision_batch import decide_batch
from latecomer.service.messages import Conversion, DecisionAnswer
from latecomer.service.storage.clock import StoreClock
from latecomer.service.store import Store

SPECS: dict[str, dict[str, Any]] = {
    "sampler": {"window": "7d", "policy": "OTFLinTS", "parameters": {"seed": 1}},
    "default": {"window": "7d", "parameters": {"seed": 1, "draws": 4}},
    "a short window": {"window": 3, "parameters": {"seed": 1, "draws": 2}, "log_offers": False},
    "optimist": {"window": 5, "policy": "OTFLinUCB"},
    "uniform": {"window": 3, "policy": "Uniform", "parameters": {"seed": 1}, "log_offers": False},
    "control": {
        "window": "7d",
        "policy": "OTFLinTS",
        "parameters": {"seed": 1, "draws": 2, "control": {"share": 0.5, "policy": "b"}},
    },
}
LONG = np.array([[2.0, 0.0]])


def make_store(case: str) -> Store:
    store = Store(MemoryLog(), Registry({}), clock=StoreClock(FakeClocks(), latest=0))
    store.create("b", BanditSpec(dim=2, **SPECS[case]))
    store.decide("b", np.eye(2), request_id="known")
    return store


def make_request(kind: str, seed: int) -> Any:
    rows = np.random.default_rng(seed).random((1 + seed % 3, 2)) / 2
    request: dict[str, Any] = {"actions": rows}
    match kind:
        case "ids":
            request["ids"] = ["a", "b", "c"][: len(rows)]
        case "id":
            request["request_id"] = f"r{seed % 4}"
        case "known":
            request |= {"actions": np.eye(2), "request_id": "known"}
        case "long":
            request["actions"] = LONG
        case "columns":
            request["actions"] = [[0.1, 0.1, 0.1]]
        case "deferred":
            request |= {"deferred": True, "request_id": f"d{seed % 2}"}
        case "taken by a deferred one":
            request["request_id"] = f"d{seed % 2}"
        case "subject":
            request["subject"] = f"user {seed % 2}"
        case "error":
            return ValueError("it could not be parsed")
    return request


KINDS = st.sampled_from(
    ["rows", "rows", "ids", "id", "known", "long", "columns", "deferred", "taken by a deferred one", "subject", "error"]
)
REQUESTS = st.lists(st.tuples(KINDS, st.integers(0, 11)), min_size=1, max_size=20)


def describe(outcome: Any) -> Any:
    """Return an outcome without what is drawn at random: ids."""
    if not isinstance(outcome, DecisionAnswer):
        return type(outcome), str(outcome)
    return [getattr(outcome, name) for name in DecisionAnswer.__struct_fields__ if name != "decision_id"]


def read_log(store: Store) -> list[Any]:
    """Return the logged events, but for secrets and the ids of deferred decisions."""
    data = b"".join(row.payload for row in store.log.read_rows(1))
    payload = events.Payload(data, 2)
    found = [
        data[start:end]
        for kind, start, end in zip(payload.kinds, payload._starts[:-1], payload._starts[1:], strict=True)
        if kind not in (events.SECRET, events.DEFERRED, events.BEGUN)
    ]
    return [len(found), *found]


def decide_one(store: Store, request: Any) -> Any:
    if isinstance(request, Exception):
        return request
    try:
        return store.decide("b", **request)[0]
    except LatecomerError as error:
        return error


@pytest.mark.parametrize("case", SPECS)
@settings(max_examples=5, deadline=None)
@given(drawn=REQUESTS)
def test_a_batch_has_the_bits_of_single_decisions(case: str, drawn: list[tuple[str, int]]) -> None:
    together, singly = make_store(case), make_store(case)
    requests = [make_request(*each) for each in drawn]
    outcomes, _ = decide_batch(together, "b", requests)
    answers = [decide_one(singly, request) for request in requests]
    assert list(map(describe, outcomes)) == list(map(describe, answers))
    for store, given_ in ((together, outcomes), (singly, answers)):
        ids = [each.decision_id for each in given_ if isinstance(each, DecisionAnswer)]
        store.convert("b", [Conversion(id_) for id_ in ids[::2]] + [Conversion(subject="user 1")])
        for i in range(4):  # answers are found again
            assert decide_one(store, {"actions": np.eye(2), "request_id": "known"}).round == 1, i
    assert state_of(together, "b") == state_of(singly, "b")
    assert read_log(together) == read_log(singly)


MIXED = ("rows", "ids", "described", "left out", "own id", "long", "rows", "columns", "error")
"""Plain requests of each kind, and bad ones between them."""


def make_mixed_request(place: int) -> Any:
    kind, rng = MIXED[place % len(MIXED)], np.random.default_rng(place)
    rows = rng.random((2 + place % 4, 2)) / 2
    labels = [f"{'abc'[k % 3]}{k // 3 or ''}" for k in range(len(rows))]
    match kind:
        case "described":
            features = [{"price": float(k)} for k in range(len(rows))]
            return {"actions": rows, "ids": labels, "described": ({"hour": place % 3}, features)}
        case "left out":
            return {"actions": rows, "ids": labels, "exclude": [0]}
        case "own id":
            return {"actions": rows, "ids": labels, "request_id": f"own {place}"}
    return make_request(kind, place)


@pytest.mark.parametrize("case", SPECS)
def test_a_run_is_one_call_of_a_kernel_and_has_the_bits_of_single_decisions(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []

    def decide_together(policy: Any, rows: Any, ends: Any, *, at: Any) -> Any:
        runs.append(len(ends))
        return original(policy, rows, ends, at=at)

    original = bulk.decide_together
    monkeypatch.setattr(bulk, "decide_together", decide_together)
    monkeypatch.setattr(bulk, "can_decide_together", lambda policy: True)  # whatever other tests have compiled
    together, singly = make_store(case), make_store(case)
    requests = [make_mixed_request(place) for place in range(70)]
    outcomes, _ = decide_batch(together, "b", requests)
    answers = [decide_one(singly, request) for request in requests]
    assert list(map(describe, outcomes)) == list(map(describe, answers))
    assert sum(isinstance(each, DecisionAnswer) for each in outcomes) > 40
    assert (max(runs, default=0) > 20) == (case != "control")  # which is told its place in each set
    for store, given_ in ((together, outcomes), (singly, answers)):
        ids = [each.decision_id for each in given_ if isinstance(each, DecisionAnswer)]
        assert set(store.convert("b", [Conversion(id_) for id_ in ids[-2:]])[0]) == {"accepted"}
    again, _ = decide_batch(together, "b", requests[4::9])
    assert [each.round for each in again] == [each.round for each in outcomes[4::9]]  # type: ignore[union-attr]
    assert state_of(together, "b") == state_of(singly, "b")
    assert read_log(together) == read_log(singly)


def test_a_batch_counts_what_single_decisions_count() -> None:
    together, singly = make_store("uniform"), make_store("uniform")
    requests = [make_request("ids", i % 12) for i in range(1500)]  # more than are noted before they are counted
    for start in range(0, 1500, 500):
        decide_batch(together, "b", requests[start : start + 500])
    for request in requests:
        singly.decide("b", **request)
    reports = [store.bandit_report("b") for store in (together, singly)]
    assert reports[0].choices == reports[1].choices
    assert state_of(together, "b") == state_of(singly, "b")
