"""`half_life`: rounds are weighed by the age of their decision, in V, G and B alike."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extended_oracle import ExtendedKind, ExtendedOracle
from oracle import Kind, Oracle
from oracle_comparison import compare_with_oracle
from policy_cases import EVERY_POLICY, make, unit_actions
from recommended_oracle import RecommendedOracle

import latecomer as lc
from latecomer.errors import InputError
from latecomer.policies.base import bulk
from latecomer.policies.recommended import constants

PAPER: dict[str, Kind] = {
    "OTFLinUCB-exact": "exact",
    "OTFLinUCB-buffered": "buffered",
    "OTFLinTS-heuristic": "heuristic",
}
EXTENDED: dict[str, ExtendedKind] = {
    "OTFLinUCB-tight": "tight",
    "WaitingLinUCB": "waiting UCB",
    "WaitingLinTS": "waiting TS",
    "MaturedLinUCB": "matured UCB",
    "MaturedLinTS": "matured TS",
}
FORGETFUL = [name for name in EVERY_POLICY if name not in ("LogisticLinTS", "OTFLinUCB-variance")]


def compare(name: str, *, dim: int, window: Any, half_life: int, rounds: int) -> None:
    in_time = isinstance(window, timedelta)
    span = window // timedelta(microseconds=1) if in_time else window
    seeded = {"seed": 11} if "TS" in name else {}
    policy = make(name, dim, window, half_life=timedelta(microseconds=half_life) if in_time else half_life, **seeded)
    oracle: Oracle
    if name in PAPER:
        oracle = Oracle(dim, span, kind=PAPER[name], half_life=half_life)
    else:
        oracle = ExtendedOracle(dim, span, kind=EXTENDED[name], half_life=half_life)
    twin = np.random.default_rng(11) if seeded else None
    compare_with_oracle(policy, oracle, rounds=rounds, seed=3, normals=twin, check_every=3 if rounds > 70 else 8)
    if not name.startswith("Waiting"):
        oracle.moment = int(oracle.stamps[-1])
        np.testing.assert_allclose(policy.V, oracle.V, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(policy.B, oracle.B, rtol=1e-9, atol=1e-9)
    assert bulk.drift(policy)[0] < 1e-8


LONG = pytest.param(150, marks=pytest.mark.soak)


@pytest.mark.parametrize("rounds", [70, LONG])
@pytest.mark.parametrize("name", [*PAPER, *EXTENDED])
@pytest.mark.parametrize(("window", "half_life"), [(7, 20), (40, 130)])
def test_policies_that_forget_match_the_oracle(name: str, window: int, half_life: int, rounds: int) -> None:
    """A step of one round, and of two; windows shorter and longer than the half-life makes sense."""
    compare(name, dim=2, window=window, half_life=half_life, rounds=rounds)


@pytest.mark.parametrize("rounds", [70, LONG])
@pytest.mark.parametrize("name", ["OTFLinUCB-exact", "WaitingLinTS", "MaturedLinTS"])
def test_policies_that_forget_in_time_match_the_oracle(name: str, rounds: int) -> None:
    compare(name, dim=3, window=timedelta(microseconds=20), half_life=90, rounds=rounds)


@pytest.mark.parametrize("rounds", [80, pytest.param(200, marks=pytest.mark.soak)])
def test_recommended_that_forgets_matches_the_oracle(rounds: int) -> None:
    policy = lc.recommended(2, 7, half_life=50, seed=5)
    oracle = RecommendedOracle(2, 7, half_life=50, **constants(2))
    compare_with_oracle(
        policy, oracle, rounds=rounds, seed=5, normals=np.random.default_rng(5), check_every=3 if rounds > 80 else 7
    )


@pytest.mark.parametrize(
    ("dim", "window", "rounds"),
    [(2, 7, 110), *(pytest.param(dim, window, 260, marks=pytest.mark.soak) for dim in (2, 5) for window in (7, 40))],
)
def test_a_change_drops_what_is_older_as_its_definition(dim: int, window: int, rounds: int) -> None:
    """The threshold is low, so that changes are found by chance too."""
    parameters = {**constants(dim), "false_alarms": 1.0}
    policy = lc.MaturedLinTS(dim, window, half_life=100, seed=5, **parameters)
    oracle = RecommendedOracle(dim, window, half_life=100, **parameters)
    turn = rounds // 2
    compare_with_oracle(
        policy, oracle, rounds=rounds, seed=5, normals=np.random.default_rng(5), check_every=7, turn=turn
    )
    assert policy.state.number("changes") == oracle.changes > 0
    assert policy.state.number("since") == oracle.since
    oracle.moment = rounds
    np.testing.assert_allclose(policy.V, oracle.V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy.B, oracle.B, rtol=1e-9, atol=1e-9)


def test_a_factor_that_follows_forgets_as_well() -> None:
    """Beyond 32 dimensions the Cholesky factor of G is kept from round to round."""
    policy = lc.MaturedLinTS(40, 7, half_life=60, seed=5)
    oracle = ExtendedOracle(40, 7, kind="matured TS", half_life=60)
    compare_with_oracle(policy, oracle, rounds=60, seed=5, normals=np.random.default_rng(5), check_every=10)


@pytest.mark.parametrize("rounds", [60, pytest.param(120, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["OTFLinTS-heuristic", "WaitingLinTS", "MaturedLinTS"])
def test_stragglers_of_a_grace_correct_by_the_weight_of_their_decision(name: str, rounds: int) -> None:
    microsecond = timedelta(microseconds=1)
    policy = make(name, 2, 12 * microsecond, grace=8 * microsecond, half_life=70 * microsecond, seed=11)
    oracle: Oracle = (
        Oracle(2, 12, kind=PAPER[name], grace=8, half_life=70)
        if name in PAPER
        else ExtendedOracle(2, 12, kind=EXTENDED[name], grace=8, half_life=70)
    )
    compare_with_oracle(policy, oracle, rounds=rounds, seed=3, normals=np.random.default_rng(11), check_every=5)


def test_decisions_of_a_batch_and_activations_forget_as_single_ones() -> None:
    one, batch, deferred = (lc.recommended(2, 9, half_life=12, seed=4) for _ in range(3))
    sets = [unit_actions(np.random.default_rng(t), 1, 2) for t in range(60)]  # one action: no choice to draw
    for actions in sets:
        one.decide(actions)
        assert deferred.activate(deferred.decide(actions, deferred=True)) is lc.Verdict.ACCEPTED
    batch.decide_many(sets)
    for other in (batch, deferred):
        np.testing.assert_array_equal(other.V, one.V)
        np.testing.assert_array_equal(other.theta_hat, one.theta_hat)


def play(policy: Any, rounds: int, seed: int) -> list[Any]:
    rng, found = np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = policy.decide(unit_actions(rng, 4, policy.dim))
        found.append((decision.index, decision.score, decision.propensity))
        if rng.random() < 0.4:
            policy.convert(decision.round - int(rng.integers(0, 5)), float(rng.random()))
    return found


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_saved_policy_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    policy = make(name, 2, 9, half_life=30)
    play(policy, 25, 1)
    policy.save(tmp_path / "a.policy")
    again = lc.load(tmp_path / "a.policy")
    assert again.parameters == policy.parameters
    assert play(again, 20, 2) == play(policy, 20, 2)


def test_a_saved_policy_that_detects_changes_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    parameters = {**constants(2), "false_alarms": 1.0}
    policy = lc.MaturedLinTS(2, 9, half_life=100, seed=3, **parameters)
    play(policy, 40, 1)
    for t in range(60):
        policy.decide(unit_actions(np.random.default_rng(t), 4, 2))  # nothing converts any more
    assert policy.state.number("changes") > 0
    policy.save(tmp_path / "a.policy")
    again = lc.load(tmp_path / "a.policy")
    assert play(again, 60, 2) == play(policy, 60, 2)
    for name in ("V", "gram", "bucket_starts", "bucket_gram"):
        np.testing.assert_array_equal(again.state.array(name), policy.state.array(name))


def test_a_change_is_detected_only_with_a_half_life_and_false_alarms() -> None:
    plain, deaf, detecting = (
        lc.recommended(2, 5, seed=0),
        lc.MaturedLinTS(2, 5, half_life=1_000, seed=0),
        lc.recommended(2, 5, half_life=1_000, seed=0),
    )
    for policy in (plain, deaf, detecting):
        for t in range(300):
            decision = policy.decide(np.eye(2))
            if decision.index == (0 if t < 200 else 1):
                policy.convert(decision)
    assert detecting.state.number("changes") == 1
    assert 200 < detecting.state.number("since") <= 206  # a bucket has four rounds
    kept = [{"changes", "bucket_V"} & set(policy.state.saved_fields()) for policy in (plain, deaf, detecting)]
    assert kept == [set(), set(), {"changes", "bucket_V"}]


def test_half_life_composes_with_propensities_and_a_control() -> None:
    parameters: dict[str, Any] = {"floor": 0.1, "draws": 16, "control": {"share": 0.2, "policy": "uniform"}}
    policy = lc.recommended(2, 9, half_life=30, seed=1, **parameters)
    for _ in range(60):
        rows = unit_actions(np.random.default_rng(policy.rounds), 4, 2)
        known = policy.probabilities(rows)
        assert known.sum() == pytest.approx(1.0)
        decision = policy.decide(rows)
        assert decision.propensity == pytest.approx(known[decision.index], rel=1e-12)
        policy.convert(decision)


def test_reading_changes_nothing() -> None:
    one, other = (lc.OTFLinUCB(2, 9, half_life=3) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = unit_actions(rng, 4, 2)
        _ = other.width, other.pending_width, other.theta_hat, other.scores(rows), other.covariance
        assert one.decide(rows).score == other.decide(rows).score


def test_hundreds_of_half_lives_leave_every_number_bounded() -> None:
    """V is λI and some 7 rounds, to rounding; a direction that is not played is λ."""
    policy = lc.OTFLinTS(3, 10, half_life=5, ridge=0.5, seed=0)
    rows = np.tile([[0.6, 0.8, 0.0]], (1_500, 1))
    bulk.record(policy, rows, np.tile(bulk.summarise(rows[:1]), (len(rows), 1)), np.zeros(len(rows), np.int64))
    weight = 1 / (1 - 0.5 ** (1 / 5))
    expected = 0.5 * np.eye(3) + weight * np.outer(rows[0], rows[0])
    np.testing.assert_allclose(policy.V, expected, rtol=1e-12)
    np.testing.assert_allclose(policy.V_inv, np.linalg.inv(expected), rtol=1e-11)
    assert policy.log_det == pytest.approx(np.linalg.slogdet(expected / 0.5)[1], rel=1e-12)


@pytest.mark.soak
def test_a_million_rounds_of_random_actions() -> None:
    policy = lc.MaturedLinUCB(5, 50, half_life=2_000)
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = unit_actions(rng, 20_000, 5)
        summaries = np.array([bulk.summarise(row[None]) for row in rows])
        bulk.record(policy, rows, summaries, np.zeros(len(rows), np.int64))
    assert np.abs(policy.V @ policy.V_inv - np.eye(5)).max() < 1e-10
    assert bulk.drift(policy)[0] < 1e-8
    assert np.linalg.eigvalsh(policy.V).min() > 1.0


WRONG = [
    ({"window": 10, "half_life": 0}, "half_life"),
    ({"window": 10, "half_life": "30d"}, "half_life must be a number of rounds, as the window is"),
    ({"window": 10, "half_life": 1.5}, "half_life"),
    ({"window": 10, "half_life": True}, "half_life"),
    ({"window": 10, "half_life": 2**60}, "half_life must be 1 to 2\\^53 rounds"),
    ({"window": "7d", "half_life": 30}, "half_life must be a time such as '30d', as the window is"),
    ({"window": "7d", "half_life": "soon"}, "half_life must be a whole number and one of"),
    ({"window": "7d", "half_life": "0s"}, "half_life must be 1 to 2\\^53 microseconds"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_a_wrong_half_life_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as found:
        lc.recommended(2, **given)
    assert found.value.field == "half_life"


def test_a_logistic_policy_refuses_it() -> None:
    with pytest.raises(InputError, match="LogisticLinTS cannot forget"):
        lc.LogisticLinTS(2, 10, half_life=20)
