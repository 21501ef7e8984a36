"""Every delay law: its cdf and mean against its samples, and the manners that all of them share."""

import math
import pickle
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest
from processes import run_python

from latecomer import delays
from latecomer.delays import NEVER, DelayLaw
from latecomer.delays.distribution import Delays, Floats
from latecomer.errors import InputError

DRAWS = pytest.mark.parametrize("count", [40_000, pytest.param(200_000, marks=pytest.mark.soak)])


class WithinTen:
    """A user's own law, with nothing but the three names."""

    mean = 4.5

    def __repr__(self) -> str:
        return "WithinTen()"

    def sample(self, rng: np.random.Generator, size: int) -> Delays:
        return rng.integers(0, 10, size)

    def cdf(self, k: float | Floats) -> Floats:
        return np.clip((np.floor(k) + 1.0) / 10.0, 0.0, 1.0)


LAWS: list[DelayLaw] = [
    delays.Geometric(100),
    delays.Geometric(1),
    delays.Geometric(1.25),
    delays.Geometric(100, start=0),
    delays.Geometric(0, start=0),
    delays.Fixed(0),
    delays.Fixed(17),
    delays.Never(),
    delays.Pareto(2.5, 3.0),
    delays.Pareto(4.0, 0.2),
    delays.Pareto(0.7, 60.0, unit=10.0),
    delays.LogNormal(20.0, 0.5),
    delays.LogNormal(0.3, 1.0),
    delays.LogNormal(50_000.0, 1.5, unit=60.0, at_most=86_400.0),
    delays.LogNormal(1e6, 0.3, at_most=2e5),
    delays.Mixture([delays.Fixed(0), delays.Geometric(30), delays.Never()], [0.1, 0.7, 0.2]),
    delays.Mixture([WithinTen(), delays.Mixture([delays.Fixed(3), delays.Pareto(3.0, 5.0)], [0.5, 0.5])], [0.6, 0.4]),
    delays.Empirical([5, 0, 0, 2, 9, 9, 9]),
    delays.Empirical([NEVER, 1, 4], weights=[1, 2, 5]),
    delays.Histogram([1.0, 2.5, 40.0], [1, 0, 3]),
    delays.Histogram([0.5, 7.0], [0, 1], unit=2.0),
    delays.Histogram([86_400.0, 2 * 86_400.0], [3, 1], unit=0.5),
    delays.Criteo(100),
    delays.Criteo(1),
    delays.ChangePoint(delays.Never(), delays.Geometric(30), change=100),
    delays.Batched(delays.Geometric(30), period=8),
    delays.Batched(delays.Mixture([delays.Fixed(2), delays.Never()], [0.7, 0.3]), period=5),
]

every_law = pytest.mark.parametrize("law", LAWS, ids=repr)


def draws(law: DelayLaw, size: int, seed: int = 0) -> Delays:
    return law.sample(np.random.default_rng(seed), size)


@DRAWS
@every_law
def test_the_cdf_is_that_of_the_samples(law: DelayLaw, count: int) -> None:
    """Dvoretzky, Kiefer and Wolfowitz: the distance passes this bound once in a million."""
    bound = math.sqrt(math.log(2.0 / 1e-6) / (2.0 * count))
    sample = np.sort(draws(law, count))
    seen = np.unique(sample[sample < NEVER])
    k = np.unique(np.concatenate([[0], seen, np.maximum(seen - 1, 0)]))  # on each step of the cdf and just before it
    empirical = np.searchsorted(sample, k, side="right") / count
    assert np.abs(law.cdf(k) - empirical).max() < bound


@DRAWS
@every_law
def test_the_mean_is_that_of_the_samples(law: DelayLaw, count: int) -> None:
    sample = draws(law, count, seed=1)
    if law.cdf(math.inf) < 1.0:
        assert law.mean == math.inf
        assert (sample == NEVER).any()
    elif math.isinf(law.mean):  # a heavy tail: the further one looks, the larger the mean
        means = [np.minimum(sample, furthest).mean() for furthest in (10**3, 10**5, 10**7)]
        assert means[1] > 2.0 * means[0]
        assert means[2] > 2.0 * means[1]
    else:
        assert abs(sample.mean() - law.mean) <= 5.0 * sample.std() / math.sqrt(count)


@every_law
def test_the_mean_is_the_sum_of_the_tail(law: DelayLaw) -> None:
    """Of three million rounds, or as far as there is a tail: where the cdf is 1 it stays there.

    Where the mean is infinite the sum has no end: ten times as many rounds further on add no less.
    """
    parts = []
    for begin, end in pairwise([0, 5_000, 50_000, *range(500_000, 3_000_001, 500_000)]):
        if law.cdf(begin) < 1.0:
            parts.append(float((1.0 - law.cdf(np.arange(begin, end, dtype=np.float64))).sum()))
    if math.isfinite(law.mean):
        assert sum(parts) == pytest.approx(law.mean, rel=1e-6)
    else:
        assert parts[0] < parts[1] < parts[2]


@every_law
def test_the_cdf_is_a_distribution(law: DelayLaw) -> None:
    k = np.concatenate([np.arange(-3, 2000), np.geomspace(2000, 1e18, 500)])
    shares = law.cdf(k)
    assert shares.dtype == np.float64
    assert shares.shape == k.shape
    assert (shares[:3] == 0.0).all()
    assert (np.diff(shares) >= -1e-15).all()
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    assert 0.0 <= law.cdf(math.inf) <= 1.0


@every_law
def test_the_cdf_of_a_number_is_a_float(law: DelayLaw) -> None:
    assert type(law.cdf(7)) is float
    assert law.cdf(7) == law.cdf(7.9) == law.cdf(np.int64(7)) == law.cdf([7])[0] == law.cdf(np.array([[7]]))[0, 0]
    assert math.copysign(1.0, law.cdf(0)) == 1.0


@every_law
def test_samples_are_whole_rounds_and_the_seed_decides_them(law: DelayLaw) -> None:
    sample = draws(law, 1000)
    assert sample.dtype == np.int64
    assert sample.shape == (1000,)
    assert sample.min() >= 0
    assert sample.max() <= NEVER
    assert (sample == draws(law, 1000)).all()
    assert draws(law, 0).shape == (0,)


@every_law
def test_a_law_is_frozen_and_travels(law: DelayLaw) -> None:
    with pytest.raises(FrozenInstanceError):
        law.mean = 3.0  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(law))  # noqa: S301
    assert repr(copy) == repr(law)
    assert (draws(copy, 100) == draws(law, 100)).all()
    assert isinstance(law, DelayLaw)


def test_a_repr_says_how_to_make_the_law() -> None:
    for law in (delays.Geometric(100), delays.Fixed(3), delays.LogNormal(3.0, 1.0, unit=2.0), delays.Criteo(50)):
        assert eval(repr(law), {"inf": math.inf, **vars(delays)}) == law  # noqa: S307


@pytest.mark.parametrize("answer", [[1.5, 2.0], [1], [-1, 2], [[1, 2]]])
def test_a_users_law_is_held_to_whole_rounds(answer: object) -> None:
    class Broken(WithinTen):
        def sample(self, rng: np.random.Generator, size: int) -> Delays:
            return np.array(answer)

    with pytest.raises(InputError, match=r"sample of WithinTen\(\) must return"):
        delays.draw(Broken(), np.random.default_rng(0), 2)


def test_beyond_every_round_is_never() -> None:
    assert (draws(delays.Pareto(1e-3, 1.0), 1000) == NEVER).any()
    assert (draws(delays.LogNormal(1e300, 1.0), 10) == NEVER).all()
    assert draws(delays.Geometric(1e300), 10).max() == NEVER
    assert delays.draw(WithinTen(), np.random.default_rng(0), 3).dtype == np.int64


def test_the_laws_bring_neither_polars_nor_the_statistics_of_scipy() -> None:
    code = "import sys; from latecomer import delays; delays.Criteo().mean; delays.Pareto(2, 1); print(*sys.modules)"
    modules = run_python(code).split()
    assert "latecomer.delays.laws.criteo" in modules
    assert not {"polars", "scipy.stats", "numba", "latecomer.policies.base"} & set(modules)


def test_every_name_is_there() -> None:
    assert [name for name in delays.__all__ if not hasattr(delays, name)] == []
    assert dir(delays) == sorted(delays.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Weibull'"):
        _ = delays.Weibull
