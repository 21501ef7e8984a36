"""A random trace of events, given to a policy and to its oracle."""

from typing import Any

import numpy as np
import pytest
from oracle import Oracle
from policy_cases import unit_actions

import latecomer as lc


def compare_with_oracle(
    policy: Any,
    oracle: Oracle,
    *,
    rounds: int,
    seed: int,
    normals: np.random.Generator | None = None,
    normals_a_round: int | None = None,
    check_every: int = 1,
    backdated: float = 0.0,
    turn: int | None = None,
) -> dict[lc.Verdict, int]:
    """Check that choices, scores, estimates and widths agree; return how often each verdict was given.

    Conversions come late, twice, for unknown rounds, and are revoked. `normals` is a twin of the policy's generator,
    `backdated` the share of conversions whose time lies up to a window back, before their own decision or after it,
    `turn` a round from which θ is the opposite.
    """
    dim, span, in_time = oracle.dim, oracle.span, not isinstance(policy.window, int)
    rng = np.random.default_rng([seed, dim, span])
    theta = unit_actions(rng, 1, dim)[0]
    due: dict[int, list[int]] = {}
    verdicts, stragglers = dict.fromkeys(lc.Verdict, 0), 0
    now = 0
    for t in range(1, rounds + 1):
        before, now = now, now + int(rng.integers(0, 3)) if in_time else t
        actions = unit_actions(rng, int(rng.integers(1, 7)), dim)
        z = normals.standard_normal(normals_a_round or dim) if normals else np.empty(0)
        if t % check_every == 0:
            moment = before if in_time else now  # in time, as if the next decision came with the latest
            assert policy.width == pytest.approx(oracle.width(moment), rel=1e-9, abs=1e-9)
            assert policy.pending_width == pytest.approx(oracle.pending_width(moment), rel=1e-9, abs=1e-9)
            np.testing.assert_allclose(policy.theta_hat, oracle.estimate(moment), rtol=1e-9, atol=1e-9)
        decision = policy.decide(actions, at=now * 1e-6) if in_time else policy.decide(actions)
        index, score = oracle.decide(actions, now, z)
        assert (decision.round, decision.index) == (t, index)
        assert decision.score == pytest.approx(score, rel=1e-9, abs=1e-9)
        np.testing.assert_array_equal(decision.action, actions[index])

        if t == turn:
            theta = -theta
        if rng.random() < np.clip(decision.action @ theta, 0, 1):
            due.setdefault(t + int(rng.geometric(1 / (1 + min(span, 20)))) - 1, []).append(t)
        arrivals = due.pop(t, [])
        arrivals += [int(rng.integers(-1, t + 3)) for _ in range(int(rng.integers(0, 3)))]  # late, unknown, repeated
        if oracle.grace:
            arrivals.append(t - int(rng.integers(0, 2 * span + oracle.grace + 2)))
        for round in arrivals:
            value = float(rng.choice([1.0, rng.random()]))
            arrival = now + int(rng.integers(0, 2)) if in_time else now
            if backdated and rng.random() < backdated:
                arrival = now - int(rng.integers(0, span + 1))
            if (
                oracle.grace and 1 <= round <= t and rng.random() < 0.7
            ):  # it occurred about its window, whenever that was
                about = int(oracle.stamps[round - 1]) + int(rng.integers(-1, span + 3))
                arrival = min(max(about, now - span - oracle.grace), now + 1)
            at = {"at": arrival * 1e-6} if in_time else {}
            if rng.random() < 0.1:
                assert policy.revoke(round, **at) is oracle.revoke(round, arrival)
            else:
                verdict = policy.convert(round, value, **at)
                assert verdict is oracle.convert(round, value, arrival)
                verdicts[verdict] += 1
                stragglers += verdict is lc.Verdict.ACCEPTED and oracle.is_closed(round)
    still_open = [s for s in range(1, rounds + 1) if oracle.verdict(s, now) is lc.Verdict.ACCEPTED]
    assert policy.pending == sum(not oracle.is_closed(s) for s in still_open)
    assert bool(stragglers) == bool(oracle.grace), "a grace without a straggler tests nothing"
    return verdicts
