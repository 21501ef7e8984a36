"""The tight width's bound on regret: its numbers, its place below the paper's, and that it holds."""

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.theory import tight_upper_bound, upper_bound


def test_tight_bound_equals_the_formula_by_hand() -> None:
    T, d, m, tau, ridge, delta = 5000, 3, 20, 0.5, 2.0, 0.05
    log = np.log(1 + T / (d * ridge))
    r = np.sqrt(ridge) + np.sqrt(2 * np.log(1 / delta) + d * log) / 2
    expected = (2 * r * np.sqrt(2 * d * T * log) + 2 * m * d * log) / tau
    found = tight_upper_bound(T, dim=d, window=m, tau=tau, ridge=ridge, delta=delta)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found < upper_bound(T, dim=d, window=m, tau=tau, ridge=ridge, delta=delta) / 2


def test_tight_bound_refuses_what_the_proof_does_not_cover() -> None:
    with pytest.raises(InputError, match="ridge must be at least 1"):
        tight_upper_bound(10, dim=2, window=1, tau=1.0, ridge=0.5)


@pytest.mark.parametrize(("T", "runs"), [(1500, 1), pytest.param(20_000, 4, marks=pytest.mark.soak)])
def test_measured_regret_is_below_the_tight_bound(T: int, runs: int) -> None:
    """At horizons where the bound is below T and so says something; 1,500 rounds need no machine code."""
    tau = 0.9
    bound = tight_upper_bound(T, dim=2, window=2, tau=tau)
    assert bound < T
    delays = lc.delays.Empirical([0, 10**6], weights=[tau, 1 - tau])
    world = lc.World(theta=[0.5, 0.55], actions=lc.actions.Fixed(np.eye(2)), delays=delays)
    result = lc.simulate(
        world, {"tight": lc.OTFLinUCB(2, 2, width="tight")}, horizon=T, runs=runs, seed=0, progress=False
    )
    assert result.final("tight").max() <= bound
