"""The variance-aware width against a slow one that is written from the definitions."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from oracle_comparison import compare_with_oracle
from variance_oracle import VarianceOracle

import latecomer as lc


def play_both(dim: int, span: int, *, rounds: int, in_time: bool = False, **parameters: Any) -> dict[lc.Verdict, int]:
    window = timedelta(microseconds=span) if in_time else span
    policy, oracle = lc.OTFLinUCB(dim, window, width="variance", **parameters), VarianceOracle(dim, span, **parameters)
    verdicts = compare_with_oracle(policy, oracle, rounds=rounds, seed=span + dim, check_every=3)
    if parameters.get("exploration", 1.0) >= 1.0:
        assert policy.certificate == pytest.approx(oracle.certificate, rel=1e-9)
    else:
        assert policy.certificate is None
    state = policy.state
    Hc, Hf, W, b = oracle.sums(int(oracle.stamps[-1]))  # the latest decision has closed these
    for name, expected in (("closed_H", Hc), ("all_H", Hf), ("observed_W", W), ("closed_b", b)):
        np.testing.assert_allclose(state.array(name), expected, rtol=1e-9, atol=1e-9, err_msg=name)
    logs = [np.linalg.slogdet(H / oracle.ridge)[1] for H in (Hc, Hf)]
    assert [policy.state.number(n) for n in ("closed_log_det", "all_log_det")] == pytest.approx(
        logs, rel=1e-9, abs=1e-9
    )
    np.testing.assert_allclose(state.array("mixture_log_det") + state.number("set_level"), oracle.levels(W), rtol=1e-9)
    return verdicts


SHORT = [(1, 7, 0.5), (2, 0, 3.0), (5, 30, 1.0)]
LONG = [(dim, span, ridge) for dim in (1, 2, 5) for span, ridge in ((0, 3.0), (7, 0.5), (60, 1.0))]


@pytest.mark.parametrize(
    ("dim", "span", "ridge", "rounds"),
    [*((*each, 90) for each in SHORT), *(pytest.param(*each, 200, marks=pytest.mark.soak) for each in LONG)],
)
def test_same_choices_and_numbers(dim: int, span: int, ridge: float, rounds: int) -> None:
    verdicts = play_both(dim, span, rounds=rounds, ridge=ridge)
    assert verdicts[lc.Verdict.ACCEPTED] > 0


@pytest.mark.parametrize("span", [3, pytest.param(40, marks=pytest.mark.soak)])
def test_windows_in_time(span: int) -> None:
    """Stamps that repeat and jump: several rounds close at one decision, in the order in which they were played."""
    verdicts = play_both(2, span, rounds=100, in_time=True)
    assert verdicts[lc.Verdict.LATE] > 0


@pytest.mark.parametrize("parameters", [{"exploration": 0.3}, {"exploration": 2.0, "delta": 0.01}])
def test_other_parameters(parameters: dict[str, Any]) -> None:
    play_both(2, 7, rounds=50, **parameters)


@pytest.mark.soak
@pytest.mark.parametrize("dim", [3, 20, 40])
@pytest.mark.parametrize("span", [0, 1, 30])
def test_long_traces(dim: int, span: int) -> None:
    """Past the check of the inverses at 1,024 rounds, and past the dimensions of plain loops."""
    play_both(dim, span, rounds=1300)
