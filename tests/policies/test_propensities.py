"""Choices by known probabilities: every policy with a floor, draws and a control."""

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions
from scipy.stats import chi2, norm

import latecomer as lc
from latecomer.core.state import UNSTAMPED
from latecomer.errors import InputError
from latecomer.policies.base import bulk

SETS = [unit_actions(np.random.default_rng(i), 4, 2) for i in range(40)]
RANDOMISED: dict[str, Any] = {"floor": 0.2, "draws": 8, "control": {"share": 0.25, "policy": "uniform"}, "seed": 7}
DIFFERENT = ("OTFLinUCB-exact", "OTFLinTS-heuristic", "MaturedLinTS", "ImputedLinTS", "LogisticLinTS", "Uniform")
"""An optimist, samplers that draw in other ways, and chance: what the others share with one of these."""
SAMPLERS = [name for name in EVERY_POLICY if "TS" in name]


@pytest.fixture(params=EVERY_POLICY, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def play(policy: Any, rounds: int = 40) -> list[lc.Decision]:
    decisions = []
    for i in range(rounds):
        decisions.append(policy.decide(SETS[i % len(SETS)]))
        if i % 3 == 0:
            policy.convert(decisions[-1])
    return decisions


def fields(decision: lc.Decision) -> tuple[Any, ...]:
    return (decision.round, decision.index, decision.score, decision.propensity, decision.is_control)


def test_without_randomisation_an_optimist_knows_its_propensity_and_a_sampler_does_not(name: str) -> None:
    decision = make(name, 2, 10).decide(SETS[0])
    expected = {"Uniform": 0.25}.get(name, None if name in SAMPLERS else 1.0)
    assert (decision.propensity, decision.is_control) == (expected, False)


def test_probabilities_are_those_of_the_next_decision_and_reading_them_changes_nothing(name: str) -> None:
    policy, untouched = make(name, 2, 10, **RANDOMISED), make(name, 2, 10, **RANDOMISED)
    for i in range(12):
        probabilities, scores = policy.probabilities(SETS[i]), policy.scores(SETS[i])
        decision, expected = policy.decide(SETS[i]), untouched.decide(SETS[i])
        assert fields(decision) == fields(expected)
        assert probabilities[decision.index] == decision.propensity
        assert scores[decision.index] == decision.score
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        assert probabilities.min() >= 0.75 * 0.2 / 4 + 0.25 / 4 - 1e-15
        if i % 3 == 0:
            policy.convert(decision)
            untouched.convert(expected)
    assert policy.to_bytes() == untouched.to_bytes()


def test_a_batch_a_copy_on_disk_and_a_replay_go_on_alike(name: str, tmp_path: Path) -> None:
    single, batch, replayed = (make(name, 2, 50, **RANDOMISED) for _ in range(3))
    sets = SETS[:15]
    decisions = [single.decide(actions) for actions in sets]
    assert [fields(d) for d in batch.decide_many(np.stack(sets))] == [fields(d) for d in decisions]
    chosen = np.array([decision.action for decision in decisions])
    bulk.record(replayed, chosen, np.array([bulk.summarise(a) for a in sets]), np.full(len(sets), UNSTAMPED))
    single.save(tmp_path / "policy")
    loaded = lc.load(tmp_path / "policy")
    assert loaded.parameters == single.parameters
    ragged = [SETS[0], SETS[1][:2]]
    expected = [fields(single.decide(actions)) for actions in ragged]
    for other in (batch, replayed, loaded):
        assert [fields(d) for d in other.decide_many(ragged)] == expected


@pytest.mark.soak
@pytest.mark.parametrize("rounds", [400, 100_000])
def test_weights_and_choices_of_many_decisions_fit_their_probabilities(name: str, rounds: int) -> None:
    _check_weights_and_choices(name, rounds)


@pytest.mark.parametrize("one", DIFFERENT)
def test_weights_and_choices_fit_their_probabilities(one: str) -> None:
    _check_weights_and_choices(one, 200)


def _check_weights_and_choices(name: str, rounds: int) -> None:
    """Compare choices with their probabilities: importance weights have the mean 1, and a chi-square of K − 1 degrees.

    E[1{chosen = k}/p_k] = 1: a mistaken probability shows as a mean weight that is off.
    """
    policy = make(name, 2, 30, **RANDOMISED)
    weights = np.zeros((rounds, 4))
    off, covariance, controls = np.zeros(4), np.zeros((4, 4)), 0
    for i in range(rounds):
        probabilities = policy.probabilities(SETS[i % len(SETS)])
        decision = policy.decide(SETS[i % len(SETS)])
        assert decision.propensity is not None
        weights[i, decision.index] = 1.0 / decision.propensity
        controls += decision.is_control
        off += np.eye(4)[decision.index] - probabilities
        covariance += np.diag(probabilities) - np.outer(probabilities, probabilities)
        if decision.index == 0 and i % 2:
            policy.convert(decision)
    errors = (weights.mean(axis=0) - 1.0) / (weights.std(axis=0) / np.sqrt(rounds))
    assert np.abs(errors).max() < 4.5, errors  # at most 68 comparisons, of weights that are skewed
    statistic = off[:3] @ np.linalg.solve(covariance[:3, :3], off[:3])
    assert chi2.sf(statistic, 3) > 1e-4
    assert abs(controls - 0.25 * rounds) < 4.0 * np.sqrt(rounds * 0.25 * 0.75)


@pytest.mark.parametrize("dim", [2, 3])  # as many numbers a sample as actions, and fewer
def test_two_actions_of_a_sampler_have_the_closed_form(dim: int) -> None:
    """P(first wins) = Φ((μ_1 − μ_2)/(c·‖a_1 − a_2‖ in V⁻¹))."""
    policy = lc.LinTS(dim, window=50, seed=0, exploration=2.0)
    rng = np.random.default_rng(1)
    for _ in range(60):
        decision = policy.decide(unit_actions(rng, 4, dim))
        if rng.random() < decision.action[0]:
            policy.convert(decision)
    actions = unit_actions(rng, 2, dim)
    apart = actions[0] - actions[1]
    expected = norm.cdf(policy.theta_hat @ apart / (2.0 * np.sqrt(apart @ policy.V_inv @ apart)))
    assert 0.1 < expected < 0.9
    found = policy.probabilities(actions, draws=60_000)
    assert found[0] == pytest.approx(expected, abs=4.0 * np.sqrt(expected * (1.0 - expected) / 60_000))


@pytest.mark.parametrize("seeds", [150, pytest.param(600, marks=pytest.mark.soak)])
def test_a_sampler_with_draws_chooses_as_often_as_one_without(seeds: int) -> None:
    """The share of each action over many equal policies, and the same with one draw: a test of homogeneity."""
    actions = unit_actions(np.random.default_rng(5), 3, 2)[:3]
    actions[2] = [0.1, 0.2]
    counts = np.zeros((2, 3))
    for row, draws in enumerate((1, 6)):
        for seed in range(seeds):
            policy = lc.LinTS(2, window=5, seed=seed, draws=draws)
            counts[row, policy.decide(actions).index] += 1
    expected = counts.sum(axis=0) / 2
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 2) > 1e-4


def test_a_duplicate_of_an_earlier_action_never_wins() -> None:
    """Ties go to the lowest index, also where the covariance of the scores is singular."""
    actions = np.array([[0.6, 0.2, 0.1], [0.6, 0.2, 0.1]])
    policy = lc.LinTS(3, window=5, seed=0, draws=64)
    assert policy.probabilities(actions).tolist() == [1.0, 0.0]
    zero = np.array([[0.0, 0.0, 0.0], [0.6, 0.2, 0.1]])
    assert policy.probabilities(zero).sum() == 1.0


def test_the_control_plays_an_index_or_an_id() -> None:
    actions = np.eye(3)
    policy = lc.Greedy(3, window=5, seed=0, control={"share": 0.5, "policy": 2})
    decisions = [policy.decide(actions) for _ in range(200)]
    assert {d.index for d in decisions if d.is_control} == {2}
    assert {d.propensity for d in decisions} == {0.5}
    assert policy.decide(actions[:2]).propensity == 1.0  # a set without that index has no control
    named = lc.Greedy(3, window=5, seed=0, control={"share": 0.5, "policy": "banner"})
    decisions = [named.decide(actions, control=1) for _ in range(200)]
    assert {d.index for d in decisions if d.is_control} == {1}
    without = named.decide(actions)
    assert without.propensity == 1.0
    batch = lc.Greedy(3, window=5, seed=0, control={"share": 0.5, "policy": "banner"})
    assert [fields(d) for d in batch.decide_many([actions] * 200, controls=[1] * 200)] == [fields(d) for d in decisions]
    assert fields(batch.decide_many(actions[None], controls=[None])[0]) == fields(without)
    with pytest.raises(lc.errors.InputError, match="an index or None for each of the 2 sets; got 1"):
        batch.decide_many([actions] * 2, controls=[1])
    assert lc.Greedy(3, window=5, control={"share": 0.0, "policy": 1}).decide(actions).propensity == 1.0


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"floor": -0.1}, "floor"),
        ({"floor": 1.5}, "floor"),
        ({"floor": float("nan")}, "floor"),
        ({"draws": 0}, "draws"),
        ({"draws": 2.5}, "draws"),
        ({"draws": 10**6}, "draws"),
        ({"control": {"share": 1.0, "policy": "uniform"}}, "control"),
        ({"control": {"share": 0.1}}, "control"),
        ({"control": {"share": 0.1, "policy": -1}}, "control"),
        ({"control": {"share": 0.1, "policy": True}}, "control"),
        ({"control": {"share": 2, "policy": "uniform"}}, "control"),
        ({"control": {"share": 0.1, "policy": 10**400}}, "control"),
        ({"control": 0.1}, "control"),
    ],
)
def test_a_wrong_parameter_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(lc.errors.InputError) as caught:
        lc.OTFLinTS(2, window=5, **given)
    assert caught.value.field == field


def test_a_wrong_index_of_the_control_changes_nothing() -> None:
    named = lc.Greedy(2, window=5, seed=0, control={"share": 0.5, "policy": "banner"})
    before = named.to_bytes()
    for control in (2, -1, 0.5):
        with pytest.raises(lc.errors.InputError):
            named.decide(np.eye(2), control=control)  # type: ignore[arg-type]
    assert named.to_bytes() == before
    with pytest.raises(lc.errors.InputError, match="leave it out"):
        lc.Greedy(2, window=5, floor=0.1).decide(np.eye(2), control=1)


def test_reading_probabilities_leaves_rounds_that_close_in_their_place(name: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    policy = make(name, 2, timedelta(hours=1))
    for i in range(20):
        policy.decide(SETS[i], at=start + timedelta(minutes=i))
    before = policy.to_bytes()
    policy.probabilities(SETS[0], at=start + timedelta(hours=3))
    assert policy.to_bytes() == before


@pytest.mark.parametrize(
    ("horizon", "runs", "rel"), [(150, 12, 0.27), pytest.param(300, 20, 0.15, marks=pytest.mark.soak)]
)
def test_a_simulated_run_draws_its_choices_too(horizon: int, runs: int, rel: float) -> None:
    """The error of a mean regret falls with the root of the rounds: of 1,800, for which no code is compiled, it is
    √(6000/1800) times that of 6,000, and so is its bound, 0.27 where that is 0.15.
    """
    world = lc.World(theta=[0.6, 0.1], actions=lc.actions.Binary(3), delays=lc.delays.Geometric(mean=5))
    policies = {"floor": lc.Greedy(2, 20, floor=1.0), "uniform": lc.Uniform(2, 20), "greedy": lc.Greedy(2, 20)}
    regrets = lc.simulate(world, policies, horizon=horizon, runs=runs, seed=3)
    final = {name: regrets.final(name).mean() for name in policies}
    assert final["floor"] == pytest.approx(final["uniform"], rel=rel)
    assert final["greedy"] < 0.5 * final["floor"]


def test_a_policy_with_propensities_can_be_pickled(name: str) -> None:
    policy = make(name, 2, 30, **RANDOMISED)
    play(policy, 5)
    again = pickle.loads(pickle.dumps(policy))  # noqa: S301 - its own
    assert fields(again.decide(SETS[0])) == fields(policy.decide(SETS[0]))


def test_probabilities_know_a_control_by_its_id() -> None:
    policy = lc.Greedy(3, 10, control={"share": 0.5, "policy": "banner"}, seed=0)
    chances = policy.probabilities(np.eye(3), control=1)
    assert chances.tolist() == [0.5, 0.5, 0.0]
    assert chances[policy.decide(np.eye(3), control=1).index] == 0.5
    assert policy.probabilities(np.eye(3)).tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(lc.errors.InputError, match="leave it out"):
        lc.Greedy(3, 10).decide(np.eye(3), control=1)
    with pytest.raises(lc.errors.InputError, match="draws"):
        policy.probabilities(np.eye(3), draws=0)


@pytest.mark.parametrize("name", ["OTFLinUCB-exact", "recommended", "Uniform"])
@pytest.mark.parametrize(("ceiling", "floor"), [(0.6, 0.0), (0.5, 0.3), (0.1, 0.0), (0.3, 1.0)])
def test_no_action_is_chosen_more_often_than_its_ceiling(name: str, ceiling: float, floor: float) -> None:
    given: dict[str, Any] = {"ceiling": ceiling, "floor": floor, "draws": 16, "seed": 1}
    policy = lc.recommended(2, 20, **given) if name == "recommended" else make(name, 2, 20, **given)
    plain = {**given, "ceiling": 1.0}
    twin = lc.recommended(2, 20, **plain) if name == "recommended" else make(name, 2, 20, **plain)
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    limit = max(ceiling, 1 / 3)
    for t in range(10):
        chances, own = policy.probabilities(rows), twin.probabilities(rows)
        assert chances.sum() == pytest.approx(1.0, abs=1e-12)
        assert chances.max() <= limit + 1e-12
        assert chances.min() >= floor / 3 - 1e-12
        np.testing.assert_allclose(chances, project(own, limit), atol=1e-12)
        decision = policy.decide(rows)
        assert decision.propensity == pytest.approx(chances[decision.index], rel=1e-12)
        bulk.record(twin, decision.action[None], bulk.summarise(rows)[None], np.zeros(1, np.int64))
        for each in (policy, twin):
            each.convert(t + 1, float(decision.index == 0))


def project(own: Any, limit: float) -> Any:
    """Return the nearest probabilities of which none is above the limit, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(limit, own + middle).sum() < 1 else (low, middle)
    return np.minimum(limit, own + high)


def test_a_ranking_refuses_a_ceiling() -> None:
    policy = lc.recommended(2, 10, ceiling=0.5, draws=8)
    with pytest.raises(InputError, match="a ranking needs a policy without a ceiling") as found:
        policy.decide(np.eye(2), k=2)
    assert found.value.field == "k"
    assert policy.rounds == 0


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.1, float("nan"), "half"])
def test_a_wrong_ceiling_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="ceiling") as found:
        lc.recommended(2, 10, ceiling=wrong)
    assert found.value.field == "ceiling"
