"""Theorems 2 and 3: their numbers, and that they hold where they say something."""

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.experiments.paper.growth import measure_growth
from latecomer.theory.bounds import gap, lower_bound, upper_bound, vacuous_until


def test_upper_bound_equals_the_formula_by_hand() -> None:
    T, d, m, tau, ridge, delta = 5000, 3, 20, 0.5, 2.0, 0.05
    log = np.log((d * ridge + T) / (d * ridge))
    f = np.sqrt(ridge) + np.sqrt(2 * np.log(1 / delta) + d * log)
    expected = 4 * f / tau * np.sqrt(2 * d * T * log) + 4 * m * d / tau * log
    assert upper_bound(T, dim=d, window=m, tau=tau, ridge=ridge, delta=delta) == pytest.approx(expected, rel=1e-12)


def test_vacuous_until_is_where_the_bound_falls_below_the_horizon() -> None:
    """T ≈ 20,000 at d = 2, m <= 1, τ = 1, and T ≈ 425,000 at d = 5, m = 100, τ = 0.634, by a hand computation."""
    assert vacuous_until(dim=2, window=1, tau=1.0) == pytest.approx(20_000, rel=0.02)
    first = vacuous_until(dim=5, window=100, tau=0.634)
    assert first == pytest.approx(425_000, rel=0.02)
    assert upper_bound(first, dim=5, window=100, tau=0.634) < first
    assert upper_bound(first - 1, dim=5, window=100, tau=0.634) >= first - 1


def test_lower_bound_equals_the_formula_by_hand() -> None:
    assert gap(100, arms=2, tau=1.0) == pytest.approx(np.sqrt(1 / 6400))
    assert gap(1, arms=9, tau=1.0) == 0.125
    # At its own gap the exponent is −1/2.
    assert lower_bound(10_000, arms=2, tau=0.5) == pytest.approx(
        10_000 * np.sqrt(1 / 320_000) / 8 * np.exp(-0.5), rel=1e-12
    )


@pytest.mark.parametrize(
    ("horizons", "runs"), [((100, 300), 3), pytest.param((3000, 30_000), 10, marks=pytest.mark.soak)]
)
def test_measured_regret_lies_between_them(horizons: tuple[int, ...], runs: int) -> None:
    """d = 2; in the soak to T = 3·10⁴, from which Theorem 2 is no longer vacuous."""
    found = measure_growth([*horizons], runs=runs, seed=3)
    assert found.vacuous_until < 30_000
    for row in found.table.iter_rows(named=True):
        assert row["theorem_3"] <= row["regret"] <= row["worst_run"] <= row["theorem_2"]
        assert row["contexts_worst_run"] <= row["theorem_2"]


def test_bounds_refuse_what_the_proof_does_not_cover() -> None:
    with pytest.raises(InputError, match="ridge must be at least 1 for Theorem 2"):
        upper_bound(10, dim=2, window=1, tau=1.0, ridge=0.5)
    with pytest.raises(InputError, match="tau must be above 0 and at most 1"):
        upper_bound(10, dim=2, window=1, tau=0.0)
    with pytest.raises(InputError, match="arms must be at least 2"):
        lower_bound(10, arms=1, tau=1.0)


def test_no_policy_is_below_the_lower_bound_on_both_bandits() -> None:
    T, tau = 2000, 1.0
    delta = gap(T, arms=2, tau=tau)
    policies = {"ucb": lc.OTFLinUCB(5, 5), "ours": lc.recommended(5, 5), "uniform": lc.Uniform(5, 5)}
    finals = []
    for theta in ([0.5 + delta, 0.5], [0.5 + delta, 0.5 + 2 * delta]):
        # Two arms, in the five dimensions for which other tests compile.
        world = lc.World(theta=[*theta, 0, 0, 0], actions=lc.actions.Fixed(np.eye(5)[:2]), delays=lc.delays.Fixed(0))
        result = lc.simulate(world, policies, horizon=T, runs=40, seed=0, progress=False)
        finals.append({name: result.final(name).mean() for name in policies})
    for name in policies:
        assert max(final[name] for final in finals) >= lower_bound(T, arms=2, tau=tau)
