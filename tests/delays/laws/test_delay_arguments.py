"""Arguments that a law refuses: each message names the argument, the rule and the value."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from latecomer import delays
from latecomer.errors import InputError

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: delays.Geometric(0.5), "mean must be finite and at least 1.*got 0.5: start=0 allows"),
    (lambda: delays.Geometric(-1, start=0), "mean must be finite and at least 0.*got -1"),
    (lambda: delays.Geometric(math.inf), "mean must be finite.*got inf"),
    (lambda: delays.Geometric(math.nan), "mean must be a number of at least 1; got nan"),
    (lambda: delays.Geometric("100"), "mean must be a number.*got '100'"),  # type: ignore[arg-type]
    (lambda: delays.Geometric(10, start=2), "start must be 0 or 1.*got 2"),
    (lambda: delays.Geometric(10, start=True), "start must be 0 or 1.*got True"),
    (lambda: delays.Fixed(-1), "delay must be at least 0.*got -1"),
    (lambda: delays.Fixed(1.5), "delay must be a whole number; got 1.5"),  # type: ignore[arg-type]
    (lambda: delays.Fixed(delays.NEVER), "delay must be .* below 2\\^62"),
    (lambda: delays.Histogram([], []), r"ends must be a list of numbers; got shape \(0,\)"),
    (lambda: delays.Histogram([1, 1], [1, 1]), "ends must be above 0 and ascending"),
    (lambda: delays.Histogram([0, 1], [1, 1]), "ends must be above 0 and ascending"),
    (lambda: delays.Histogram([1, math.inf], [1, 1]), "ends must be finite; got inf"),
    (lambda: delays.Histogram([1, 2], [1]), "shares must be 2 numbers, one for each bin; got 1"),
    (lambda: delays.Histogram([1, 2], [1, -1]), "shares must be at least 0, and some above; got -1"),
    (lambda: delays.Histogram([1, 2], [0, 0]), "shares must be at least 0, and some above; got 0"),
    (lambda: delays.Histogram([1, 2], [1, 1], unit=0), "unit must be above 0 and finite; got 0"),
    (lambda: delays.Pareto(0, 1), "shape must be above 0 and finite; got 0"),
    (lambda: delays.Pareto(1, -2), "scale must be above 0 and finite; got -2"),
    (lambda: delays.Pareto(1, 1, unit=0), "unit must be above 0 and finite; got 0"),
    (lambda: delays.Pareto(1, 1e300, unit=1e-300), "scale / unit must be above 0 and finite; got inf"),
    (lambda: delays.LogNormal(0, 1), "median must be above 0 and finite; got 0"),
    (lambda: delays.LogNormal(1, 0), "sigma must be above 0 and finite; got 0"),
    (lambda: delays.LogNormal(1e-300, 1, unit=1e300), "median / unit must be above 0"),
    (lambda: delays.LogNormal(1, 1, at_most=0), "at_most must be above 0, or infinity; got 0"),
    (lambda: delays.LogNormal(1, 1, at_most=math.nan), "at_most must be a number above 0, or infinity; got nan"),
    (lambda: delays.LogNormal(1e9, 0.1, at_most=1), "at_most must leave some of the law; got 1.*: raise at_most"),
    (lambda: delays.Mixture([], []), "laws must hold at least one law"),
    (lambda: delays.Mixture(delays.Fixed(1), [1.0]), "laws must be a list.*got Fixed"),  # type: ignore[arg-type]
    (lambda: delays.Mixture([3], [1.0]), r"laws\[0\] must have sample, cdf and mean.*got 3"),  # type: ignore[list-item]
    (lambda: delays.Mixture([delays.Never], [1.0]), r"laws\[0\] must have .*got <class"),  # type: ignore[list-item]
    (lambda: delays.Mixture([delays.Fixed(1)], [0.5, 0.5]), "weights must be as many as the laws, 1; got 2"),
    (lambda: delays.Mixture([delays.Fixed(1)] * 2, [1.0, 0.0]), r"weights\[1\] must be above 0.*got 0.0"),
    (lambda: delays.Mixture([delays.Fixed(1)] * 2, [0.5, 0.4]), "weights must sum to 1; got 0.9: divide each"),
    (lambda: delays.Empirical([]), r"delays must be a list of at least one delay; got shape \(0,\)"),
    (lambda: delays.Empirical([[1, 2]]), r"delays must be a list .*got shape \(1, 2\)"),
    (lambda: delays.Empirical([1.0, 2.0]), "delays must be whole numbers.*float64: Empirical.from_times"),
    (lambda: delays.Empirical([3, -1]), "delays must be at least 0.*got -1"),
    (lambda: delays.Empirical([3, delays.NEVER + 1]), "delays must be .* at most NEVER"),
    (lambda: delays.Empirical([3, 4], weights=[1]), r"weights must be 2 numbers, one for each delay; got shape \(1,\)"),
    (lambda: delays.Empirical([3, 4], weights=["a", "b"]), "weights must be 2 numbers"),
    (lambda: delays.Empirical([3, 4], weights=[1, -2]), "weights must be at least 0 and finite; got -2.0"),
    (lambda: delays.Empirical([3, 4], weights=[1, math.nan]), "weights must be at least 0 and finite; got nan"),
    (lambda: delays.Empirical([3, 4], weights=[0, 0]), "weights must have a sum above 0"),
    (lambda: delays.Empirical.from_times([1.0, math.inf], unit=10), "delays must be finite numbers"),
    (lambda: delays.Empirical.from_times([1.0], unit=0), "unit must be above 0"),
    (lambda: delays.Batched(3, 5), "of must have sample, cdf and mean.*got 3"),  # type: ignore[arg-type]
    (lambda: delays.Batched(delays.Fixed(1), 0), "period must be at least 1.*got 0"),
    (
        lambda: delays.Batched(delays.ChangePoint(delays.Fixed(1), delays.Fixed(2), 5), 3),
        "of must be the same law in every round; got ChangePoint",
    ),
    (lambda: delays.ChangePoint(3, delays.Fixed(1), 5), "before must have sample, cdf and mean.*got 3"),  # type: ignore[arg-type]
    (lambda: delays.ChangePoint(delays.Fixed(1), delays.Never, 5), "after must have .*got <class"),  # type: ignore[arg-type]
    (lambda: delays.ChangePoint(delays.Fixed(1), delays.Fixed(2), -1), "change must be at least 0.*got -1"),
    (lambda: delays.ChangePoint(delays.Fixed(1), delays.Fixed(2), 1.5), "change must be a whole number; got 1.5"),  # type: ignore[arg-type]
    (
        lambda: delays.Mixture([delays.ChangePoint(delays.Fixed(1), delays.Fixed(2), 5)], [1.0]),
        r"laws\[0\] must be the same law in every round; got ChangePoint.*: mix the laws before and after",
    ),
    (lambda: delays.Criteo(0), "seconds_per_round must be above 0 and finite; got 0"),
    (lambda: delays.Fixed(1).cdf(math.nan), "k must be a number of rounds, or an array of them; got nan"),
    (lambda: delays.Fixed(1).cdf("3"), "k must be a number of rounds.*got '3'"),  # type: ignore[call-overload]
    (lambda: delays.Fixed(1).sample(0, 3), "rng must be a NumPy generator; got 0: numpy"),  # type: ignore[arg-type]
    (lambda: delays.Fixed(1).sample(np.random.default_rng(0), -3), "size must be at least 0.*got -3"),
    (lambda: delays.log10_density([1.0, -2.0], [1.0]), "seconds must be a list of finite numbers of at least 0"),
    (lambda: delays.log10_density([5.0, 5.0], [1.0]), "seconds must hold at least two different delays"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message[:60] for _, message in REFUSED])
def test_delay_laws_refuse_bad_arguments_by_name(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
