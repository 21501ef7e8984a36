"""Warm start: learning from a log equals feeding its events one by one."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from offered_log import START, make_table
from policy_cases import EVERY_POLICY, make

import latecomer as lc
from latecomer.policies.base import bulk

WINDOW = "2h"


def feed_one_by_one(policy: Any, table: pl.DataFrame) -> None:
    """Feed every event by itself, in the order of time; at one moment decisions come first."""
    events: list[tuple[float, int, int]] = []
    for row, (decided, converted) in enumerate(table.select("decided_at", "converted_at").iter_rows()):
        events.append((decided, 0, row))
        if converted is not None:
            events.append((converted, 1, row))
    for time, kind, row in sorted(events):
        stamp = round(time * 1e6)
        if kind == 0:
            offer = np.array(table["actions"][row].to_list())
            chosen = offer[[table["chosen"][row]]]
            bulk.record(policy, chosen, bulk.summarise(offer)[None], np.array([stamp]))
        else:
            bulk.convert(policy, np.array([row + 1]), np.array([table["value"][row]]), np.array([stamp]))


IN_ROUNDS = ("OTFLinUCB-exact", "OTFLinTS-heuristic", "WaitingLinTS")


@pytest.mark.parametrize(
    ("name", "window", "rows"),
    [
        *((name, WINDOW, 100) for name in EVERY_POLICY),
        *((name, 40, 100) for name in IN_ROUNDS),
        *(pytest.param(name, 40, 150, marks=pytest.mark.soak) for name in EVERY_POLICY),
    ],
)
def test_learning_equals_feeding_events_one_by_one(name: str, window: Any, rows: int) -> None:
    table = make_table(rows)
    learnt, fed = make(name, 3, window), make(name, 3, window)
    report = learnt.learn(lc.read_log(table.sample(fraction=1.0, shuffle=True, seed=1)))
    feed_one_by_one(fed, table)
    assert learnt.to_bytes() == fed.to_bytes()
    assert report.decisions == rows
    assert report.conversions["accepted"] > 10
    assert report.conversions["late"] > 0
    assert learnt.pending > 0


def test_two_parts_of_a_log_equal_the_whole_where_no_conversion_crosses() -> None:
    table = make_table(120).with_columns(converted_at=pl.col("decided_at") + 1.0)
    whole, parts = lc.recommended(3, WINDOW, seed=0), lc.recommended(3, WINDOW, seed=0)
    whole.learn(lc.read_log(table))
    for part in (table[:50], table[50:]):
        parts.learn(lc.read_log(part))
    assert parts.to_bytes() == whole.to_bytes()


def test_a_log_of_items_is_learnt_as_indicators_or_by_an_encoder() -> None:
    table = pl.DataFrame(
        {"decided_at": [0.0, 60.0, 120.0], "action": ["a", "b", "a"], "converted_at": [30.0, None, 200]}
    )
    policy = lc.Greedy(2, "1h")
    policy.learn(lc.read_log(table))
    np.testing.assert_allclose(policy.theta_hat, [2 / 3, 0.0])
    encoder = lc.Encoder(dim=8, actions=["action"])
    encoder.fit([{"action": "a"}, {"action": "b"}])
    encoded = lc.Greedy(8, "1h")
    assert encoded.learn(lc.read_log(table), encoder=encoder).decisions == 3
    rows = encoder.encode({}, [{"action": "a"}, {"action": "b"}])
    assert encoded.scores(rows)[0] > encoded.scores(rows)[1]


def test_values_are_divided_by_their_scale() -> None:
    table = pl.DataFrame({"decided_at": [0.0], "action": ["a"], "converted_at": [30.0], "price": [50.0]})
    log = lc.read_log(table, value="price")
    policy = lc.Greedy(1, "1h")
    with pytest.raises(lc.errors.InputError, match="as scale"):
        policy.learn(log)
    assert policy.rounds == 0
    policy.learn(log, scale=100.0)
    np.testing.assert_allclose(policy.B, [0.5])


def test_a_log_of_other_actions_is_refused() -> None:
    log = lc.read_log(make_table(5))
    with pytest.raises(lc.errors.InputError, match="must have 4 features"):
        lc.Greedy(4, WINDOW).learn(log)
    long = make_table(5).with_columns(actions=pl.lit([[3.0, 0.0, 0.0]]), chosen=0)
    with pytest.raises(lc.errors.InputError, match="norm at most 1"):
        lc.Greedy(3, WINDOW).learn(lc.read_log(long))


def test_a_log_must_come_before_the_decisions_that_follow_it() -> None:
    policy = lc.Greedy(3, WINDOW)
    policy.decide([[0.1, 0.2, 0.3]], at=START + 90 * 86_400)
    before = policy.to_bytes()
    with pytest.raises(lc.errors.InputError, match="learn first"):
        policy.learn(lc.read_log(make_table(5)))
    assert policy.to_bytes() == before


def test_a_warm_policy_goes_on_deciding() -> None:
    policy = lc.recommended(3, WINDOW, seed=0, floor=0.1, draws=8)
    table = make_table(60)
    policy.learn(lc.read_log(table))
    decision = policy.decide([[0.5, 0.1, 0.1], [0.1, 0.5, 0.1]], at=table["decided_at"][-1] + 60)
    assert decision.round == 61
    assert policy.convert(decision, at=table["decided_at"][-1] + 90) is lc.Verdict.ACCEPTED


def test_numbers_of_a_csv_file_are_numbers_to_an_encoder(tmp_path: Path) -> None:
    rows = {"decided_at": [0, 60], "action": ["a", "b"], "converted_at": [30, None], "hour": [3, 21]}
    encoder = lc.Encoder(dim=12, context=["hour"], actions=["action"])
    encoder.fit([{"hour": hour, "action": item} for hour in (0.0, 12.0, 23.0) for item in "ab"])
    learnt = []
    for source in (pl.DataFrame(rows), tmp_path / "log.csv"):
        pl.DataFrame(rows).write_csv(tmp_path / "log.csv")
        policy = lc.Greedy(12, "1h")
        policy.learn(lc.read_log(source, context=["hour"]), encoder=encoder)
        learnt.append(policy.to_bytes())
    assert learnt[0] == learnt[1]
