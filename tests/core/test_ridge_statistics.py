"""A million updates, and an inverse that is still one."""

from pathlib import Path

import numpy as np
import pytest

import latecomer as lc


def residual(policy: lc.OTFLinUCB | lc.OTFLinTS | lc.WaitingLinTS) -> float:
    """The largest entry, and more: the norm of V·V⁻¹ − I."""
    return float(np.linalg.norm(policy.V @ policy.V_inv - np.eye(policy.dim), 2))


@pytest.mark.parametrize(
    ("rounds", "batch"), [(1060, 530), *(pytest.param(rounds, 20_000, marks=pytest.mark.soak)
                                          for rounds in (40_000, 1_000_000))]
)  # fmt: skip
def test_very_many_updates_at_d_20(rounds: int, batch: int) -> None:
    dim, window = 20, 100
    policy = lc.OTFLinUCB(dim, window)
    rng = np.random.default_rng(0)
    recent = []
    for _ in range(rounds // batch):
        sets = rng.standard_normal((batch, 1, dim)) * np.geomspace(1, 1e-3, dim)  # far from isotropic
        sets /= np.linalg.norm(sets, axis=2, keepdims=True)
        recent = [policy.decide(actions) for actions in sets][-window:]
        assert residual(policy) < 1e-8
    actions = np.array([decision.action for decision in recent])
    direct = np.sqrt(np.sum(actions.T * np.linalg.solve(policy.V, actions.T), axis=0))
    norms = policy.state.ring["norm"].ravel()
    newest = policy.state.number("head") + window  # the ring holds m + 1 rounds
    kept = np.sqrt(norms[np.arange(newest - window + 1, newest + 1) % len(norms)])
    assert policy.rounds == rounds
    np.testing.assert_allclose(kept, direct, rtol=0, atol=1e-9)
    assert policy.pending_width == pytest.approx(direct.sum(), abs=1e-9)


TINY = [(2, 1e-12), (5, 1e-9), (16, 1e-6), (64, 1e-12)]
"""Each dimension and each ridge; the other combinations are in the soak."""
OTHERS = [(dim, ridge) for dim in (2, 5, 16, 64) for ridge in (1e-12, 1e-9, 1e-6) if (dim, ridge) not in TINY]


@pytest.mark.parametrize(
    ("dim", "ridge"), [*TINY, *(pytest.param(*one, marks=pytest.mark.soak) for one in OTHERS)]
)  # fmt: skip
def test_a_tiny_ridge_is_refactorised(dim: int, ridge: float) -> None:
    """With λ near rounding the first updates cancel nearly every digit: the check must not wait for its turn."""
    policy = lc.OTFLinTS(dim, 50, ridge=ridge, seed=0)
    rng = np.random.default_rng(1)
    for _ in range(100 if dim < 64 else 150):
        actions = rng.standard_normal((3, dim))
        policy.decide(actions / np.linalg.norm(actions, axis=1, keepdims=True))
        if policy.rounds > 2 * dim:
            assert residual(policy) < 1e-7
    chol = policy.state.record["chol"][0]
    np.testing.assert_allclose(chol.T @ chol, policy.V, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ridge", [1e-12, 1e-6])
def test_a_tiny_ridge_is_refactorised_when_rounds_close(ridge: float) -> None:
    """Where V waits for closed rounds, it is they that cancel the digits."""
    policy = lc.WaitingLinTS(2, 7, ridge=ridge, seed=0)
    rng = np.random.default_rng(1)
    for _ in range(100):
        actions = rng.standard_normal((3, 2))
        policy.decide(actions / np.linalg.norm(actions, axis=1, keepdims=True))
        if policy.rounds > 12:
            assert residual(policy) < 1e-7
    chol = policy.state.record["chol"][0]
    np.testing.assert_allclose(chol.T @ chol, policy.V, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "ridge", "rounds"),
    [
        ("MaturedLinTS", 1e-12, 1000),
        ("OTFLinTS", 1e-12, 1000),
        *(pytest.param(*one, marks=pytest.mark.soak) for one in (
            ("MaturedLinTS", 1e-12, 6000),
            ("MaturedLinTS", 1e-9, 6000),
            ("OTFLinTS", 1e-12, 6000),
            ("LogisticLinTS", 1e-12, 18_000),
        )),
    ],
)  # fmt: skip
def test_inverse_holds_with_one_arm_for_ever_and_hardly_any_ridge(name: str, ridge: float, rounds: int) -> None:
    """All of the plane but one line is rounding: no factor may fail on it, nor a θ̂ that is solved for, on the line.

    (An explicit inverse of a matrix of condition 1e16 has no right digit left: OTFLinTS goes on, and that is all.)
    """
    policy = getattr(lc, name)(2, 50, ridge=ridge, seed=0)
    arm, rng, conversions = np.array([0.6, 0.8]), np.random.default_rng(0), 0
    for _ in range(rounds // 1000):
        decisions = [policy.decide(arm[None]) for _ in range(1000)]
        assert np.isfinite([decision.score for decision in decisions]).all()
        for decision in decisions[-50:]:
            if rng.random() < 0.3:
                policy.convert(decision)
                conversions += 1
    assert np.isfinite(policy.theta_hat).all()
    if isinstance(policy, lc.MaturedLinTS):
        assert arm @ policy.theta_hat == pytest.approx(conversions / rounds, rel=0.05)


@pytest.mark.parametrize(
    ("name", "ridge", "batch"),
    [
        ("OTFLinUCB", 1e-8, 206),  # five of them go past the check that is due every 1,024 rounds
        ("OTFLinTS", 1e-10, 206),
        *(pytest.param(name, ridge, batch, marks=pytest.mark.soak)
          for name in ("OTFLinUCB", "OTFLinTS") for ridge in (1e-10, 1e-8) for batch in (1024, 4096)),
    ],
)  # fmt: skip
def test_inverse_holds_with_one_arm_for_ever_in_twenty_dimensions(
    tmp_path: Path, name: str, ridge: float, batch: int
) -> None:
    """Nineteen directions are rounding: whatever widths are worth there, they are numbers, and a file can be read."""
    policy = getattr(lc, name)(20, 10, ridge=ridge, **({"seed": 0} if name == "OTFLinTS" else {}))
    arm = np.random.default_rng(1).random(20)
    sets = np.tile(np.array([arm, arm / 2]) / np.linalg.norm(arm) / (1 + 1e-9), (batch, 1, 1))
    for _ in range(5):
        assert np.isfinite([policy.decide(actions).score for actions in sets]).all()
    policy.save(tmp_path / "policy")
    assert lc.load(tmp_path / "policy").rounds == policy.rounds


def test_refactorisation_mends_a_spoilt_inverse() -> None:
    policy = lc.OTFLinUCB(5, 40)
    rng = np.random.default_rng(2)
    for _ in range(1023):
        policy.decide(rng.standard_normal((1, 5)) / 6)
    policy.state.record["V_inv"][0] *= 1.001
    policy.decide(rng.standard_normal((1, 5)) / 6)  # round 1,024: the check is due
    assert policy.state.number("refactorisations") == 1
    assert residual(policy) < 1e-12
    np.testing.assert_allclose(policy.V_inv, np.linalg.inv(policy.V), rtol=1e-10)
