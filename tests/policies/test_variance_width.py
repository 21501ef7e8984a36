"""The variance-aware width: a theorem, so its coverage and its certificate are counted."""

import numpy as np
import pytest
from policy_cases import unit_actions
from variance_oracle import VarianceOracle

import latecomer as lc

WINDOW = 6
THETA = np.array([0.75, 0.6])


class Run:
    """A policy in a world whose φ is known; conversions come after a delay, or never, with values in [0, 1]."""

    def __init__(self, seed: int, *, rounds: int, tau: float, delta: float, fixed: bool, values: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.policy = lc.OTFLinUCB(2, WINDOW, width="variance", delta=delta)
        self.rounds, self.tau, self.fixed, self.values = rounds, tau, fixed, values

    def value(self, mean: float) -> float:
        """Draw a value of this mean: 0 or 1, or from three points."""
        if not self.values:
            return float(self.rng.random() < mean)
        return float(self.rng.choice([mean / 2, mean, min(1.0, mean + (mean / 2))]) if mean < 2 / 3 else mean)

    def play(self, check: VarianceOracle | None = None) -> tuple[bool, bool]:
        """Tell whether |⟨a, φ̂ − φ⟩| ≤ w(a) held for every action in all rounds, and τR(t) ≤ C_t throughout."""
        phi, lost, covered, certified = self.tau * THETA, 0.0, True, True
        due: dict[int, list[tuple[int, float]]] = {}
        for t in range(1, self.rounds + 1):
            actions = np.eye(2) if self.fixed else unit_actions(self.rng, 4, 2)
            decision = self.policy.decide(actions)
            means = actions @ phi
            lost += means.max() - means[decision.index]
            certified = certified and lost <= self.policy.certificate + 1e-9  # type: ignore[operator]
            if check is not None:
                centre, _, w = check.judge(actions, t)
                covered = covered and bool((np.abs(means - centre) <= w + 1e-9).all())
                check.decide(actions, t, np.empty(0))
            if self.rng.random() < self.tau:
                value = self.value(decision.action @ THETA)
                if value > 0:
                    due.setdefault(t + int(self.rng.integers(0, WINDOW + 1)), []).append((t, value))
            for round, value in due.pop(t, []):
                assert self.policy.convert(round, value) is lc.Verdict.ACCEPTED
                if check is not None:
                    check.convert(round, value, t)
        return covered, certified


CASES = [(0.9, True, False), (0.1, True, False), (0.4, False, False), (0.4, False, True)]


@pytest.mark.parametrize(("tau", "fixed", "values"), CASES)
@pytest.mark.parametrize(
    ("delta", "runs", "rounds"), [(0.5, 4, 40), pytest.param(0.1, 125, 120, marks=pytest.mark.soak)]
)
def test_set_covers_and_certificate_holds(
    tau: float, fixed: bool, values: bool, delta: float, runs: int, rounds: int
) -> None:
    """In at least 1 − δ of the runs, at every round and for every action on offer: 500 runs in the soak."""
    held = []
    for seed in range(runs):
        run = Run(seed, rounds=rounds, tau=tau, delta=delta, fixed=fixed, values=values)
        held.append(run.play(VarianceOracle(2, WINDOW, delta=delta)))
    assert np.mean([covered for covered, _ in held]) >= 1 - delta
    assert np.mean([certified for _, certified in held]) >= 1 - delta


def test_certificate_says_something_after_a_while() -> None:
    """At first every round is counted whole; of 500 rounds, the last 100 add less than a third of that."""
    policy, rng, seen = lc.OTFLinUCB(2, 0, width="variance"), np.random.default_rng(0), []
    for _ in range(500):
        decision = policy.decide(np.eye(2))
        if rng.random() < (0.9, 0.1)[decision.index]:
            policy.convert(decision)
        seen.append(policy.certificate)
    assert seen[4] == 5.0
    assert seen[-1] - seen[-101] < 100 / 3  # type: ignore[operator]


def test_a_conversion_revoked_before_its_round_closes_never_was() -> None:
    revoked, silent = (lc.OTFLinUCB(2, 3, width="variance") for _ in range(2))
    for t in range(12):
        for policy in (revoked, silent):
            policy.decide(np.eye(2))
        if t == 2:
            assert revoked.convert(2) is lc.Verdict.ACCEPTED
            assert revoked.revoke(2) is lc.Verdict.ACCEPTED
    for field in ("closed_H", "closed_b", "observed_W", "mixture_log_det", "certificate"):
        np.testing.assert_array_equal(revoked.state.array(field), silent.state.array(field))
    assert revoked.revoke(2) is lc.Verdict.LATE, "after closing it is refused: the round counts as it closed"


def test_a_round_counts_with_its_value_when_it_closes_and_not_before() -> None:
    policy = lc.OTFLinUCB(2, 2, width="variance")
    decision = policy.decide(np.eye(2))
    policy.convert(decision, 0.5)
    for _ in range(2):
        policy.decide(np.eye(2))
        assert not policy.state.array("closed_b").any()
    policy.decide(np.eye(2))
    weight = 4.0  # at first ū = 1, so that σ̄² = ¼
    np.testing.assert_allclose(policy.state.array("closed_b"), 0.5 * weight * decision.action)
    np.testing.assert_allclose(policy.theta_hat, 0.5 * weight / (1 + weight) * decision.action)


def test_certificate_is_for_the_policys_own_choices() -> None:
    assert lc.OTFLinUCB(2, 3, width="variance").certificate == 0.0
    assert lc.OTFLinUCB(2, 3, width="variance", exploration=0.5).certificate is None
    assert lc.OTFLinUCB(2, 3, width="variance", floor=0.1).certificate is None
    assert lc.OTFLinUCB(2, 3, width="variance", stages=["click"]).certificate is None
    assert lc.OTFLinUCB(2, 3, width="tight").certificate is None


def test_actions_of_no_length_are_no_trouble() -> None:
    policy = lc.OTFLinUCB(2, 1, width="variance")
    for _ in range(5):
        decision = policy.decide(np.zeros((2, 2)))
        assert (decision.index, decision.score) == (0, 0.0)
    assert np.isfinite(policy.width)


def test_a_set_in_many_dimensions_is_refused() -> None:
    with pytest.raises(lc.errors.InputError, match="dim must be at most 1024 with a confidence set"):
        lc.OTFLinUCB(1025, 3, width="variance")
