"""The tight width: a theorem, so its bound is counted; and where it stands between others."""

import numpy as np
import pytest
from policy_cases import unit_actions

import latecomer as lc

ROUNDS, WINDOW, MEAN = 40, 12, 10.0
TAU = 1 - (1 - 1 / MEAN) ** WINDOW
THETA = np.array([0.75, 0.6])


def optimism(past: np.ndarray, values: np.ndarray, silent: np.ndarray, actions: np.ndarray, delta: float) -> np.ndarray:
    """U_t of each action, from the definition: `values` is what each past action has brought, `silent` are open."""
    V = np.eye(2) + past.T @ past
    radius = 0.5 * np.sqrt(2 * np.log(1 / delta) + np.linalg.slogdet(V)[1])
    shares = np.linalg.solve(V, actions.T).T
    norms = np.sqrt(np.sum(actions * shares, axis=1))
    to_come = np.maximum(shares @ silent.T, 0).sum(axis=1)
    assert (to_come <= np.sqrt(len(silent)) * norms + 1e-12).all()  # Cauchy and Schwarz: a minimum with it never binds
    return np.asarray(shares @ (values @ past) + radius * norms + np.linalg.norm(shares, axis=1) + to_come)


def covers(seed: int, delta: float) -> bool:
    """Tell if τ_m⟨a, θ⟩ <= U_t(a) held for every action in all rounds of a run; check that `decide` plays that U."""
    rng = np.random.default_rng(seed)
    policy = lc.OTFLinUCB(2, WINDOW, width="tight", delta=delta)
    past, arrival = np.empty((0, 2)), np.empty(0)
    held = True
    for t in range(1, ROUNDS + 1):
        actions = unit_actions(rng, 4, 2)
        seen = arrival < t
        is_open = (t - np.arange(1, t) <= WINDOW) & ~seen
        U = optimism(past, seen.astype(float), past[is_open], actions, delta)
        held = held and bool((TAU * (actions @ THETA) <= U).all())
        decision = policy.decide(actions)
        assert decision.score == pytest.approx(U.max(), rel=1e-9)
        delay = int(rng.geometric(1 / MEAN)) if rng.random() < decision.action @ THETA else 10**9
        past = np.vstack([past, decision.action])
        arrival = np.append(arrival, t + delay if delay <= WINDOW else np.inf)
        for round in np.flatnonzero(arrival == t):
            assert policy.convert(int(round) + 1) is lc.Verdict.ACCEPTED
    return held


@pytest.mark.parametrize(
    ("delta", "runs"),
    [(0.1, 20), (0.5, 10), *(pytest.param(*one, marks=pytest.mark.soak) for one in ((0.5, 50), (0.1, 500)))],
)
def test_tight_width_covers_the_mean_rewards(delta: float, runs: int) -> None:
    """In at least 1 − δ of the runs, at every round and for every action on offer."""
    held = [covers(seed, delta) for seed in range(runs)]
    assert np.mean(held) >= 1 - delta


@pytest.mark.parametrize("rounds", [120, pytest.param(400, marks=pytest.mark.soak)])
@pytest.mark.parametrize("ridge", [0.5, 1.0, 20.0])
def test_tight_width_is_never_above_the_exact_width(ridge: float, rounds: int) -> None:
    """On one history: r_t <= f_t, and Σ_O (aᵀV⁻¹A_s)₊ <= W_t‖a‖, for O is a part of the window."""
    tight = lc.OTFLinUCB(2, 30, ridge=ridge, width="tight")
    exact = lc.OTFLinUCB(2, 30, ridge=ridge, width="exact")
    rng = np.random.default_rng(1)
    for t in range(1, rounds):
        action = rng.standard_normal((1, 2))
        action /= np.linalg.norm(action) * rng.uniform(1, 3)
        below, above = tight.decide(action), exact.decide(action)
        assert below.score <= above.score + 1e-12
        if rng.random() < 0.4:
            back = t - int(rng.integers(0, 35))
            assert tight.convert(back) is exact.convert(back)


def test_tight_width_with_nothing_pending_is_lin_ucb_with_the_tight_radius() -> None:
    policy = lc.OTFLinUCB(2, 0, width="tight")
    waiting = lc.WaitingLinUCB(2, 0)  # with an empty window there is nothing to wait for
    rng = np.random.default_rng(0)
    V, B = np.eye(2), np.zeros(2)
    for _ in range(80):
        radius = 1 + 0.5 * np.sqrt(2 * np.log(10) + np.linalg.slogdet(V)[1])
        assert policy.width == pytest.approx(radius, rel=1e-12)
        assert waiting.width == pytest.approx(radius, rel=1e-12)
        actions = unit_actions(rng, 6, 2)
        shares = np.linalg.solve(V, actions.T)
        norms = np.sqrt(np.sum(actions.T * shares, axis=0))
        bias = np.linalg.norm(shares, axis=0)
        assert (bias <= norms + 1e-12).all()
        decision = policy.decide(actions)
        other = waiting.decide(decision.action[None])
        expected = actions @ np.linalg.solve(V, B) + (radius - 1) * norms + bias
        assert decision.score == pytest.approx(expected.max(), rel=1e-9)
        assert decision.score <= other.score + 1e-12, "the ridge's bias by ‖V⁻¹a‖ is never larger than by √λ‖a‖"
        V += np.outer(decision.action, decision.action)
        if rng.random() < 0.5:
            B += decision.action
            assert policy.convert(decision) is waiting.convert(other) is lc.Verdict.ACCEPTED


def test_tight_width_leaves_out_converted_and_closed_rounds() -> None:
    policy = lc.OTFLinUCB(2, 3, width="tight")
    for _ in range(3):
        policy.decide(np.eye(2))
    assert policy.pending_width == pytest.approx(np.sqrt(3))
    policy.convert(2)
    assert policy.pending_width == pytest.approx(np.sqrt(2))
    policy.revoke(2)  # it will not convert again
    assert policy.pending_width == pytest.approx(np.sqrt(2))
    policy.decide(np.eye(2))
    assert policy.pending_width == pytest.approx(np.sqrt(2))  # of rounds 1 to 4, the first closes with the next
