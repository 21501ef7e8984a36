"""The estimators: equal to their definitions and to another library's, unbiased, with intervals that cover."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from adaptive_logs import RATES, TRUTH, AdaptiveLogs, play, sums_of

from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation.estimators import (
    Estimate,
    effective_conversions,
    estimate,
    estimate_difference,
    estimate_lift,
    mean_weight,
)
from latecomer.evaluation.sums import Sums, empty_sums, sum_rounds

Z90 = 1.6448536269514722


def closed_log(seed: int, rounds: int = 2000, actions: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    every = np.arange(rounds)
    logging = rng.dirichlet(np.ones(actions), rounds) * 0.8 + 0.2 / actions
    action = (rng.random((rounds, 1)) > np.cumsum(logging, axis=1)).sum(axis=1).clip(0, actions - 1)
    target, model = rng.dirichlet(np.ones(actions), rounds), rng.uniform(0.0, 0.3, (rounds, actions))
    return {
        "action": action,
        "propensity": logging[every, action],
        "target": target,
        "model": model,
        "weights": target[every, action] / logging[every, action],
        "outcomes": (rng.random(rounds) < rng.uniform(0.0, 0.3, actions)[action]).astype(float),
        "predicted": model[every, action],
        "expected": (target * model).sum(axis=1),
    }


def sums_of_closed(log: dict[str, Any]) -> Sums:
    ones = np.ones(len(log["weights"]))
    model = {name: log[name] for name in ("predicted", "expected")}
    return sum_rounds(log["weights"], log["outcomes"], ones, **model)


def test_the_difference_on_closed_rounds_is_that_of_paired_outcomes() -> None:
    log = closed_log(0)
    sums = sums_of_closed(log)
    ips, logged = (estimate(sums, name, np.zeros(1)) for name in ("ips", "logged"))
    found = estimate_difference(ips, logged, sums, np.zeros(1))
    pairs = (log["weights"] - 1.0) * log["outcomes"]
    margin = Z90 * pairs.std() / np.sqrt(len(pairs))
    assert found == pytest.approx((pairs.mean(), pairs.mean() - margin, pairs.mean() + margin))


@pytest.mark.parametrize("seed", range(10))
def test_on_closed_rounds_they_are_the_ordinary_estimators(seed: int) -> None:
    log = closed_log(seed)
    w, y = log["weights"], log["outcomes"]
    expected = {
        "ips": np.mean(w * y),
        "snips": np.sum(w * y) / np.sum(w),
        "dr": np.mean(log["expected"] + w * (y - log["predicted"])),
        "logged": y.mean(),
    }
    sums = sums_of_closed(log)
    for name, value in expected.items():
        assert estimate(sums, name, np.zeros(1)).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_on_closed_rounds_they_equal_another_librarys(seed: int) -> None:
    """In the extra `peers`; obp 0.4.1 was compared once by hand, to 5e-16."""
    peer = pytest.importorskip("contextualbandits.evaluation", reason="contextualbandits is in the extra peers")
    log = closed_log(seed)
    every = np.arange(len(log["weights"]))
    chosen = log["target"][every, log["action"]]
    snips = peer.evaluateNCIS(chosen, log["outcomes"], log["propensity"], cmin=0.0, cmax=1e9)
    assert estimate(sums_of_closed(log), "snips", np.zeros(1)).value == pytest.approx(snips, abs=1e-10)
    played = log["model"].argmax(axis=1)
    best = {
        "weights": (played == log["action"]) / log["propensity"],
        "expected": log["model"][every, played],
    }
    predictions = np.column_stack([best["expected"], log["predicted"]])
    nothing = np.zeros((len(every), 1))
    dr = peer.evaluateDoublyRobust(
        *(played, nothing, log["action"], log["outcomes"].astype(int), log["propensity"]),
        reward_estimator=predictions,
        handle_invalid=False,
    )
    assert estimate(sums_of_closed(log | best), "dr", np.zeros(1)).value == pytest.approx(dr, abs=1e-10)


def define(log: dict[str, Any], name: str, maturity: Floats, watched: Any, greenwood: Floats) -> tuple[Floats, Floats]:
    """ψ/D and C_j/D, round by round and bin by bin, as the formulas have them."""
    w, y, f = log["weights"], log["outcomes"], maturity
    p, dm = log["predicted"], log["expected"]
    numerator = {"ips": w * y, "snips": w * y, "dr": f * dm + w * (y - f * p), "logged": y}[name]
    denominator = {"snips": w * f}.get(name, f)
    v = numerator.sum() / denominator.sum()
    c = {"ips": np.full(len(w), v), "snips": w * v, "dr": v + w * p - dm, "logged": np.full(len(w), v)}[name]
    waits = np.array([sum((c * f)[watched <= j]) for j in range(len(greenwood))])
    return (numerator - denominator * v) / denominator.sum(), waits / denominator.sum()


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "logged"])
def test_errors_and_lift_equal_their_definitions(name: str) -> None:
    rng = np.random.default_rng(3)
    log = closed_log(3, rounds=400)
    bins = 12
    watched = rng.integers(0, bins + 1, 400)
    shares = np.concatenate([[0.0], np.sort(rng.random(bins - 1)), [1.0]])
    maturity, greenwood = shares[watched], rng.random(bins) / 50
    log["outcomes"] = np.where(watched > 0, log["outcomes"], 0.0)
    model = {key: log[key] for key in ("predicted", "expected")}
    halves = [slice(0, 150), slice(150, 400)]
    sums = empty_sums(bins)
    for half in halves:
        part = {key: value[half] for key, value in model.items()}
        sums += sum_rounds(
            *(log["weights"][half], log["outcomes"][half], maturity[half]), watched=watched[half], bins=bins, **part
        )
    found = estimate(sums, name, greenwood)
    psi, waits = define(log, name, maturity, watched, greenwood)
    error = np.sqrt((psi**2).sum() + (waits**2 * greenwood).sum())
    assert found.standard_error == pytest.approx(error, rel=1e-9)
    low, high = found.interval
    assert np.log(high / found.value) == pytest.approx(Z90 * error / found.value)
    assert found.value**2 == pytest.approx(low * high)

    logged = estimate(sums, "logged", greenwood)
    psi0, waits0 = define(log, "logged", maturity, watched, greenwood)
    lift, lift_low, lift_high = estimate_lift(found, logged, sums, greenwood)
    assert lift == pytest.approx(found.value / logged.value - 1.0)
    paired = ((psi / found.value - psi0 / logged.value) ** 2).sum()
    paired += ((waits / found.value - waits0 / logged.value) ** 2 * greenwood).sum()
    assert np.log((1 + lift_high) / (1 + lift_low)) == pytest.approx(2 * Z90 * np.sqrt(paired), abs=1e-9)
    closed = estimate(sums.select_closed(), name, greenwood)
    rows = watched == bins
    only = {key: value[rows] for key, value in log.items()}
    assert closed.value == pytest.approx(estimate(sums_of_closed(only), name, np.zeros(1)).value)


def test_the_policy_that_made_the_log_has_no_lift_over_itself() -> None:
    logs = play(1, rounds=3000, seed=5)
    outcomes = (logs.delay[0] <= logs.age).astype(float)
    sums = sum_rounds(np.ones(3000), outcomes, np.linspace(0.5, 1.0, 3000))
    for name in ("snips", "ips"):
        found, logged = estimate(sums, name, np.zeros(1)), estimate(sums, "logged", np.zeros(1))
        assert found.value == logged.value == pytest.approx(outcomes.sum() / np.linspace(0.5, 1.0, 3000).sum())
        assert estimate_lift(found, logged, sums, np.zeros(1)) == pytest.approx((0.0, 0.0, 0.0), abs=1e-7)
    assert mean_weight(sums) == (1.0, 0.0)
    assert effective_conversions(sums) == pytest.approx(outcomes.sum())


def test_an_estimator_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match=r"estimator must be one of snips, ips, dr; got 'magic'"):
        estimate(empty_sums(1), "magic", np.zeros(1))
    assert np.isnan(estimate(empty_sums(1), "snips", np.zeros(1)).value)


# ---- bias and coverage ----

SHORT = pytest.param(120, 0.09, id="120 runs")
LONG = pytest.param(1500, 0.03, id="1500 runs", marks=pytest.mark.soak)


def estimates_of(logs: AdaptiveLogs, make: Callable[[int], Estimate]) -> tuple[Floats, float]:
    """Estimates of all logs, and the share of intervals that cover the truth."""
    found = [make(run) for run in range(len(logs.action))]
    covered = [low <= TRUTH <= high for low, high in (one.interval for one in found)]
    return np.array([one.value for one in found]), float(np.mean(covered))


@pytest.mark.parametrize(("runs", "margin"), [SHORT, LONG])
def test_intervals_cover_under_adaptive_logging_with_half_the_rounds_open(runs: int, margin: float) -> None:
    logs = play(runs, seed=0)
    sums = [sums_of(logs, run) for run in range(runs)]
    matured = {}
    for name in ("snips", "ips", "dr"):
        values, coverage = estimates_of(logs, lambda run, name=name: estimate(*_with(sums[run], name)))  # type: ignore[misc]
        matured[name] = np.std(values)
        assert abs(values.mean() - TRUTH) < 2.0 * values.std() / np.sqrt(runs), name
        assert 0.9 - margin <= coverage <= 0.9 + margin, name

    def take_silence_for_no(run: int) -> Estimate:
        seen = (logs.delay[run] <= logs.age).astype(float)
        return estimate(sum_rounds(logs.weights(run), seen, np.ones(len(seen))), "snips", np.zeros(1))

    naive, coverage = estimates_of(logs, take_silence_for_no)
    assert naive.mean() < 0.86 * TRUTH
    assert coverage < 0.5
    closed = np.std([estimate(found.select_closed(), "snips", greenwood).value for found, greenwood in sums])
    assert matured["snips"] < 0.9 * closed, "open rounds must count for something"


def _with(found: tuple[Sums, Floats], name: str) -> tuple[Sums, str, Floats]:
    return found[0], name, found[1]


@pytest.mark.parametrize(("runs", "margin"), [pytest.param(60, 0.09, id="60 runs"), LONG])
def test_intervals_of_lift_cover(runs: int, margin: float) -> None:
    logs = play(runs, seed=1, is_adaptive=False)
    truth = TRUTH / RATES.mean() - 1.0
    covered = []
    for run in range(runs):
        sums, greenwood = sums_of(logs, run)
        target, logged = (estimate(sums, name, greenwood) for name in ("snips", "logged"))
        _, low, high = estimate_lift(target, logged, sums, greenwood)
        covered.append(low <= truth <= high)
        separate = target.standard_error / target.value + logged.standard_error / logged.value
        assert np.log((1 + high) / (1 + low)) < 2 * Z90 * separate, "pairing must not widen it"
    assert 0.9 - margin <= np.mean(covered) <= 0.9 + margin
