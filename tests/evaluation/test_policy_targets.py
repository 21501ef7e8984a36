"""Latecomer's policies on a log: warm-started and frozen, or learning as they go."""

import numpy as np
import polars as pl
import pytest
from decision_logs import DAY, START

import latecomer as lc
from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation import frozen, replay

RATES = np.array([0.05, 0.1, 0.3])
CHANCES = np.array([0.5, 0.3, 0.2])


def make(rows: int, *, seed: int = 0, chances: Floats = CHANCES) -> pl.DataFrame:
    """Three items; conversions after six hours on average; thirty days."""
    rng = np.random.default_rng(seed)
    item = rng.choice(3, rows, p=chances)
    decided = START + np.arange(rows) * (30 * DAY / rows)
    bought = decided + rng.exponential(DAY / 4, rows)
    seen = (rng.random(rows) < RATES[item]) & (bought <= decided.max())
    return pl.DataFrame(
        {
            "decided_at": decided,
            "action": item,
            "propensity": chances[item],
            "converted_at": pl.Series(np.where(seen, bought, np.nan)).fill_nan(None),
        }
    )


def policy(seed: int = 0) -> lc.OTFLinUCB:
    return lc.OTFLinUCB(3, "2d", width="buffered", exploration=0.05, floor=0.1, seed=seed)


def test_a_frozen_policy_is_judged_on_what_came_after_it_learnt() -> None:
    table = make(1200)
    log = lc.read_log(table)
    template = policy()
    found = lc.evaluate(log, {"ours": frozen(template)}, window="2d").details.filter(policy="ours").row(0, named=True)
    assert template.rounds == 0, "a template is not changed"
    cut = log.first + 0.5 * (log.last - log.first)
    early = table.filter(pl.col("decided_at") < cut)
    early = early.with_columns(converted_at=pl.when(pl.col("converted_at") <= cut).then("converted_at"))
    trained = policy()
    trained.learn(lc.read_log(early, until=cut))
    chances = trained.probabilities(np.eye(3), at=trained.latest_stamp / 1e6)
    rest = lc.read_log(
        table.with_columns(chance=pl.Series(chances[table["action"].to_numpy()])).filter(pl.col("decided_at") >= cut),
        until=log.until,
    )
    expected = lc.evaluate(rest, {"ours": "chance"}, window="2d").details.filter(policy="ours").row(0, named=True)
    assert found["rounds"] == expected["rounds"] == 600
    assert found["value"] == pytest.approx(expected["value"], rel=0.05)  # its delay curve is of the later half alone
    assert found["mean_weight"] == pytest.approx(expected["mean_weight"])
    assert found["value"] > 0.2


def test_a_policy_that_has_learnt_is_judged_as_it_stands() -> None:
    learnt = policy()
    learnt.learn(lc.read_log(make(1000, seed=1)))
    log = lc.read_log(make(1000))
    found = lc.evaluate(log, {"ours": learnt}, window="2d").details.filter(policy="ours")
    assert found["rounds"][0] == 1000
    with pytest.raises(InputError, match=r"has not learnt anything yet: give frozen\(OTFLinUCB\(…\)\)"):
        lc.evaluate(log, {"ours": policy()}, window="2d")
    with pytest.raises(InputError, match="policy must be one of Latecomer's"):
        frozen("recommended")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="train must be below 1"):
        frozen(policy(), train=1.0)


def play_live(seed: int, rounds: int) -> float:
    """The share of conversions of the policy itself, deciding so many rounds in thirty days."""
    rng = np.random.default_rng(seed)
    live, won = policy(seed), 0
    waiting: list[tuple[float, int]] = []
    for i in range(rounds):
        now = START + i * 30 * DAY / rounds
        for arrival, round_ in sorted(waiting):
            if arrival < now:
                live.convert(round_, at=arrival)
        waiting = [one for one in waiting if one[0] >= now]
        decision = live.decide(np.eye(3), at=now)
        if rng.random() < RATES[decision.index]:
            won += 1
            waiting.append((now + rng.exponential(DAY / 4), decision.round))
    return won / rounds


@pytest.mark.parametrize(("rows", "logs", "runs"), [(1000, 4, 12), pytest.param(1500, 8, 30, marks=pytest.mark.soak)])
def test_a_replayed_policy_earns_what_it_earns_live_on_that_share_of_the_traffic(
    rows: int, logs: int, runs: int
) -> None:
    """Logging is not uniform: a fifth of the rounds is accepted."""
    replayed = []
    for seed in range(logs):
        found = lc.evaluate(lc.read_log(make(rows, seed=seed)), {"ours": replay(policy(seed), seed=seed)}, window="2d")
        row = found.details.filter(policy="ours").row(0, named=True)
        replayed.append(row["value"])
        assert abs(row["mean_weight"] - 1.0) < 4 * row["mean_weight_error"]
        assert row["largest_weight"] == pytest.approx(5.0)
    live = [play_live(seed, rows // 5) for seed in range(runs)]
    spread = np.hypot(np.std(replayed) / np.sqrt(logs), np.std(live) / np.sqrt(runs))
    assert abs(np.mean(replayed) - np.mean(live)) < 3 * spread
    assert np.mean(replayed) > RATES @ CHANCES + 3 * spread, "it must have learnt something"
