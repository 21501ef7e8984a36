"""The lemmas of docs/explanation/theory/variance-width.md: each on numbers that would show it wrong."""

import math
from datetime import timedelta

import numpy as np
import pytest
from variance_oracle import FLOOR, SCALES, SLACK, VarianceOracle, omega

import latecomer as lc
from latecomer.core import confidence_set
from latecomer.theory.variance_bound import delayed_energy, growth_ratio

RATES = np.linspace(0.0, 1.0, 41)
SLOPES = np.concatenate([np.linspace(-40, 40, 401), np.geomspace(1e-6, 1e3, 60)])


def variance_of(bound: np.ndarray | float) -> np.ndarray:
    """v(ū)."""
    return np.where(np.asarray(bound) < 0.5, np.asarray(bound) * (1 - np.asarray(bound)), 0.25)


def test_lemma_1_delyons_inequality() -> None:
    x = np.concatenate([np.linspace(-50, 50, 20_001), np.array([-1e-3, 1e-3])])
    assert (np.log(1 + x + x**2 / 3) - x + x**2 / 6 >= -1e-13).all()


def test_lemma_2_omega_is_the_largest_variance_term() -> None:
    """ω(z, ū) = max over p ≤ ū of ⅓(z − p)² + ⅔p(1 − p): a bound, and attained."""
    for bound in RATES[1::3]:
        p = np.linspace(0, bound, 2001)
        for z in RATES:
            terms = (z - p) ** 2 / 3 + 2 * p * (1 - p) / 3
            assert terms.max() == pytest.approx(omega(z, bound), abs=2e-6)
            assert terms.max() <= omega(z, bound) + 1e-15
            assert confidence_set.omega(z, bound) == pytest.approx(omega(z, bound), rel=1e-14)
    assert omega(1.0, 0.3) == pytest.approx(1 / 3)
    assert omega(0.0, 0.3) == pytest.approx(2 * 0.3 / 3 - 0.3**2 / 3)


@pytest.mark.parametrize("middle", [None, 0.3, 0.5])
def test_supermartingale_has_mean_at_most_one(middle: float | None) -> None:
    """E exp(ηξ − ½η²ω(Z, ū)) ≤ 1, exactly, for laws on two and on three points; and not for a ū below p."""
    worst = -np.inf
    for p in RATES[1:-1]:
        values = np.array([0.0, 1.0]) if middle is None else np.array([0.0, middle, 1.0])
        weights = np.array([1 - p, p]) if middle is None else np.array([0.5 * (1 - p), 0.5, 0.5 * p])
        mean = weights @ values
        for bound in np.array([mean, mean + 0.05, 1.0]):
            exponents = SLOPES[:, None] * (values - mean) - 0.5 * SLOPES[:, None] ** 2 * omega(values, min(bound, 1.0))
            worst = max(worst, float((np.exp(exponents) @ weights).max()))
    assert worst <= 1 + 1e-12
    exponents = SLOPES[:, None] * np.array([-0.3, 0.7]) - 0.5 * SLOPES[:, None] ** 2 * omega(np.array([0.0, 1.0]), 0.05)
    assert (np.exp(exponents) @ np.array([0.7, 0.3])).max() > 1.01, "p = 0.3 above ū = 0.05: the condition is needed"


@pytest.mark.parametrize("dim", [1, 2])
def test_gaussian_mixture_in_closed_form(dim: int) -> None:
    rng = np.random.default_rng(dim)
    root = rng.standard_normal((dim, dim))
    W, S, scale = root @ root.T, rng.standard_normal(dim), SCALES[1]
    grid = np.linspace(-8, 8, 401)
    points = np.stack(np.meshgrid(*[grid] * dim), axis=-1).reshape(-1, dim)
    density = (scale / (2 * np.pi)) ** (dim / 2) * np.exp(-scale * (points**2).sum(axis=1) / 2)
    terms = density * np.exp(points @ S - 0.5 * np.sum(points @ W * points, axis=1))
    closed = np.exp(0.5 * S @ np.linalg.solve(W + scale * np.eye(dim), S)) / np.sqrt(
        np.linalg.det(np.eye(dim) + W / scale)
    )
    assert terms.sum() * (grid[1] - grid[0]) ** dim == pytest.approx(closed, rel=1e-9)


def test_lemma_4_mean_of_omega() -> None:
    """At most 4/3 of v(ū), for two-point laws, which are the worst: ω is convex in z."""
    for bound in np.linspace(1e-4, 1, 400):
        p = np.linspace(0, bound, 200)
        means = (1 - p) * omega(0.0, bound) + p * omega(1.0, bound)
        assert means.max() <= 4 / 3 * variance_of(bound) + 1e-15
        assert (np.diff(omega(RATES, bound), 2) >= -1e-15).all()
        assert omega(RATES, bound).max() <= 1 / 3 + 1e-15
    assert omega(1.0, 1.0) == pytest.approx(4 / 3 * 0.25), "the constant is attained"


class History:
    """A variance-aware policy's own run, and H_n of every n."""

    def __init__(self, seed: int, span: int, *, rounds: int = 200, dim: int = 3, ridge: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        oracle = VarianceOracle(dim, span, ridge=ridge)
        theta = np.abs(rng.standard_normal(dim))
        theta /= np.linalg.norm(theta)
        for t in range(1, rounds + 1):
            actions = np.abs(rng.standard_normal((4, dim)))
            actions /= np.linalg.norm(actions, axis=1, keepdims=True)
            oracle.decide(actions * rng.uniform(0.3, 1), t, np.empty(0))
            if rng.random() < 0.3 * oracle.actions[-1] @ theta:
                oracle.convert(t, 1.0, t)
        self.oracle, self.span, self.rounds, self.ridge = oracle, span, rounds, ridge
        self.weights = 1 / oracle.variances
        outer = self.weights[:, None, None] * oracle.actions[:, :, None] * oracle.actions[:, None, :]
        self.H = ridge * np.eye(dim) + np.concatenate([np.zeros((1, dim, dim)), np.cumsum(outer, axis=0)])
        self.logs = np.linalg.slogdet(self.H)[1]
        self.closed = np.maximum(0, np.arange(rounds) - span)  # n_t for t = 1, 2, …
        self.good = self.logs[:rounds] - self.logs[self.closed] <= 2 * np.log(1 + SLACK)
        solved = np.linalg.solve(self.H[:rounds], oracle.actions[:, :, None])[:, :, 0]
        self.norms = np.sqrt(np.sum(oracle.actions * solved, axis=1))
        self.beta = self.weights * self.norms**2
        self.rates = 0.3 * oracle.actions @ theta  # p_t
        self.values = np.array([oracle.credits.get(s, 0.0) for s in range(1, rounds + 1)])  # Z_t
        self.strengths = omega(self.values, oracle.bounds) * self.weights**2
        observed = self.strengths[:, None, None] * oracle.actions[:, :, None] * oracle.actions[:, None, :]
        self.W = np.concatenate([np.zeros((1, dim, dim)), np.cumsum(observed, axis=0)])
        self.u = np.linalg.solve(self.H[self.closed], oracle.actions[:, :, None])[:, :, 0]  # H_{n_t}⁻¹A_t
        self.squares = np.einsum("ti,tij,tj->t", self.u, self.W[self.closed], self.u)  # uᵀWu


@pytest.fixture(scope="module", params=[(0, 0, 1.0), (1, 8, 1.0), (2, 12, 0.25)])
def history(request: pytest.FixtureRequest) -> History:
    seed, span, ridge = request.param
    return History(seed, span, ridge=ridge)


def test_facts_about_the_weights(history: History) -> None:
    largest, ratio = growth_ratio(history.ridge)
    growth = history.logs[-1] - history.logs[0]
    assert (history.weights * history.norms <= 1 / FLOOR + 1e-9).all()
    assert (history.beta <= largest + 1e-9).all()
    assert np.log1p(history.beta).sum() == pytest.approx(growth, rel=1e-9)
    floored = np.isclose(history.oracle.variances, FLOOR * history.norms, rtol=1e-12)
    assert floored.any() == (history.ridge < 1), "where the ridge is 1, the variance itself is larger in so few rounds"
    assert history.oracle.variances[floored].sum() <= FLOOR**2 * ratio * growth


def test_lemma_3_good_rounds(history: History) -> None:
    """In a good round no bonus is lowered; and few rounds are not good."""
    count = (~history.good).sum()
    growth = history.logs[-1] - history.logs[0]
    assert count <= history.span * growth / (2 * np.log(1 + SLACK))
    assert (history.span == 0) == (count == 0)
    for t in np.flatnonzero(history.good)[::10]:
        values = np.linalg.eigvalsh(np.linalg.solve(history.H[history.closed[t]], history.H[t]).T)
        assert values.max() <= (1 + SLACK) ** 2 + 1e-9 or history.span == 0


def test_lemma_5_delayed_energy(history: History) -> None:
    constant = delayed_energy(history.ridge)
    rng = np.random.default_rng(5)
    largest = 0.0
    for start in (0, 20, 60):
        chosen = history.good & (history.closed >= start)
        energy = (history.u[chosen].T * history.weights[chosen]) @ history.u[chosen]
        for x in rng.standard_normal((200, 3)):
            ratio = x @ energy @ x / (x @ np.linalg.solve(history.H[start], x))
            assert ratio <= constant
            largest = max(largest, float(ratio))
    assert largest > 0.05, "the sum is not trivially small"


@pytest.mark.parametrize("seed", range(2))
def test_rounds_close_in_the_order_in_which_they_were_played(seed: int) -> None:
    """With a window in time, stamps that repeat and jump, and clocks that go back a little."""
    rng, now = np.random.default_rng(seed), 1000
    policy = lc.OTFLinUCB(2, timedelta(seconds=5), width="variance")
    stamps: list[int] = []
    for _ in range(150):
        now += int(rng.integers(-1, 4))
        policy.decide(np.eye(2), at=now)
        stamps.append(policy.latest_stamp)
        assert stamps == sorted(stamps)
        closed = policy.latest_stamp - np.array(stamps) > 5_000_000
        assert closed[: closed.sum()].all(), "the closed rounds are the first ones"
        assert policy.state.number("oldest") == closed.sum() + 1
        weights = policy.state.array("closed_H").trace() - 2.0
        assert (weights > 0) == bool(closed.sum())


def sum_observed(history: History) -> float:
    """Σ ω_r w_r²‖A_r‖² in H_r⁻¹, of Lemma 6."""
    actions = history.oracle.actions
    after = np.linalg.solve(history.H[1:], actions[:, :, None])[:, :, 0]
    return float((history.strengths * np.sum(actions * after, axis=1)).sum())


def test_lemma_6_and_the_sum_of_squares(history: History) -> None:
    """Step 2 of Theorem 4: Σ w_t u_tᵀWu_t over good rounds ≤ C_N·Σ ω_r w_r²‖A_r‖² in H_r⁻¹ ≤ C_N·K."""
    good, observed = history.good, sum_observed(history)
    assert 0 < (history.weights * history.squares)[good].sum() <= delayed_energy(history.ridge) * observed
    growth = history.logs[-1] - history.logs[0]
    assert observed <= 4 / 3 * (math.e - 1) * growth + np.log(10) / (3 * FLOOR**2)


def test_steps_3_and_4_of_the_regret_bound(history: History) -> None:
    """S ≤ √Σ·(√(γ(C_N·observed + E)) + λ√E), Σ ≤ P + 2S and S ≤ 2Γ² + Γ√P, over the good rounds of a run.

    Λ is the growth of ln det, which (W3) bounds; the first is not trivial: S is above a 200th of it.
    """
    good, ridge, oracle = history.good, history.ridge, history.oracle
    norms = np.linalg.norm(history.u, axis=1)
    levels = np.array([oracle.levels(history.W[n]) for n in history.closed])
    terms = levels * (history.squares[:, None] + np.array(SCALES) * norms[:, None] ** 2)
    widths = np.sqrt(terms.min(axis=1)) + ridge * norms
    sums = np.concatenate(
        [np.zeros((1, 3)), np.cumsum((history.values * history.weights)[:, None] * oracle.actions, 0)]
    )
    means = np.einsum("ti,ti->t", history.u, sums[history.closed])  # A_tᵀφ̂
    np.testing.assert_allclose(np.clip(means + widths, 1e-4, 1), oracle.bounds, rtol=1e-9)
    assert (np.abs(means - history.rates) <= widths).all(), "the run is on the event of Theorem 3"

    S, Sigma = widths[good].sum(), oracle.variances[good].sum()
    _, ratio = growth_ratio(ridge)
    growth = history.logs[-1] - history.logs[0]
    energy = (1 + SLACK) ** 2 * ratio * growth / ridge  # E
    inside = oracle.levels(history.W[-1])[0] * (delayed_energy(ridge) * sum_observed(history) + energy)
    Gamma = np.sqrt(inside) + ridge * np.sqrt(energy)
    assert np.sqrt(Sigma) * Gamma / 200 <= S <= np.sqrt(Sigma) * Gamma
    P = (history.rates[good] + 1e-4).sum() + FLOOR**2 * ratio * growth
    assert Sigma <= P + 2 * S
    assert 2 * Gamma**2 + Gamma * np.sqrt(P) >= S
