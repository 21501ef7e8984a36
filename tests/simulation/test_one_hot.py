"""Action sets of categories."""

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError


def test_pairs_come_as_often_as_the_table_says() -> None:
    law = lc.actions.OneHot(5, table=[[1, 3, 0], [4, 0, 2]])
    sets = law.sample(np.random.default_rng(0), 4000, np.ones(5))
    assert sets.shape == (4000, 5, 5)
    np.testing.assert_allclose((sets**2).sum(axis=2), 1.0, rtol=1e-12)
    pairs = np.einsum("rki,rkj->ij", sets[..., :2] > 0, sets[..., 2:] > 0, dtype=np.float64) / 20_000
    np.testing.assert_allclose(pairs, np.array([[1, 3, 0], [4, 0, 2]]) / 10, atol=0.015)


@pytest.mark.parametrize(
    "table", [[1.0, 2.0], [[]], [[0.0, 0.0]], [[1.0, -1.0]], [[float("inf")]], "ab", [[1], [2, 3]]]
)
def test_a_table_that_is_none_is_refused(table: object) -> None:
    with pytest.raises(InputError, match=r"table must be a \(rows, columns\) array of weights"):
        lc.actions.OneHot(3, table)  # type: ignore[arg-type]


def test_pairs_that_never_come_need_no_probability() -> None:
    """θ of the pair (1, 1) would be −1, but its weight is 0."""
    theta = [0.5, -0.5, 0.6, -0.5]
    law = lc.actions.OneHot(2, table=[[1, 1], [1, 0]])
    world = lc.World(theta=theta, actions=law, delays=lc.delays.Fixed(0))
    assert world.block(np.random.default_rng(0), 64).means.min() >= 0.0
    with pytest.raises(InputError, match="every mean reward"):
        lc.World(theta=theta, actions=lc.actions.OneHot(2, table=[[1, 1], [1, 1]]), delays=lc.delays.Fixed(0))
