"""Fitting: scales by quantiles, kinds by levels, and what is refused."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import latecomer as lc
from latecomer.encoding.spec import HashedFeature, NumberFeature, OneHotFeature
from latecomer.errors import InputError

RNG = np.random.default_rng(5)
N = 2000
SAMPLE = pl.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "country": RNG.choice(["NO", "SE", "DK"], N),
        "member": RNG.random(N) < 0.3,
        "price": RNG.lognormal(3, 1, N),
        "genre": RNG.choice(["crime", "art"], N),
        "sku": RNG.choice([f"s{i}" for i in range(90)], N),
    }
)
NAMES: dict[str, Any] = {"context": ["age", "country", "member"], "actions": ["price", "genre", "sku"]}


def fitted(sample: Any = SAMPLE, dim: int = 64, **options: Any) -> dict[str, Any]:
    spec = lc.Encoder(dim, **(NAMES | options)).fit(sample).spec
    return {feature.name: feature for feature in [*(spec.context or []), *(spec.actions or [])]}


def test_fit_learns_scales_levels_and_kinds() -> None:
    features = fitted()
    assert features["country"] == OneHotFeature(name="country", levels=["DK", "NO", "SE"])
    assert features["member"] == OneHotFeature(name="member", levels=["false", "true"])
    assert isinstance(features["sku"], HashedFeature)
    assert len(features["sku"].known) == 90
    low, center, high = np.quantile(SAMPLE["price"].to_numpy(), [0.05, 0.5, 0.95])
    assert features["price"] == NumberFeature(name="price", center=center, scale=max(center - low, high - center))


def test_fit_is_robust_to_wild_values_and_leaves_nine_of_ten_unclipped() -> None:
    price = SAMPLE["price"].to_numpy().copy()
    inside = fitted()["price"]
    assert np.mean(np.abs(price - inside.center) <= inside.scale) >= 0.9
    price[:20] = 1e15
    wild = fitted(SAMPLE.with_columns(price=pl.Series(price)))["price"]
    assert wild.scale < 1.5 * inside.scale


@pytest.mark.parametrize(
    ("values", "scale", "center"),
    [([7.0] * 20, 1.0, 7.0), ([0.0] * 99 + [50.0], 50.0, 0.0), ([None, 3, np.nan, 5], 1.0, 4.0)],
)
def test_number_that_hardly_varies_has_a_scale(values: Any, scale: float, center: float) -> None:
    encoder = lc.Encoder(4, actions=["x"]).fit([{"x": value} for value in values])
    [feature] = encoder.spec.actions or []
    assert isinstance(feature, NumberFeature)
    assert feature.scale == pytest.approx(scale, abs=0.11)
    assert feature.center == center


def test_kinds_follow_the_levels_and_the_room() -> None:
    kinds = {dim: {name: type(f).__name__ for name, f in fitted(dim=dim).items()} for dim in (10, 64, 4000)}
    assert kinds[64]["country"] == "OneHotFeature"
    assert kinds[10]["country"] == "HashedFeature"  # no room: half of ten columns
    assert kinds[4000]["sku"] == "HashedFeature"  # 90 levels: more will come


def test_declarations_overrule_the_sample() -> None:
    context = {"age": "one-hot", "country": "hashed", "member": None}
    features = fitted(dim=400, context=context, actions={"price": {"scale": 9}, "genre": ["crime"], "sku": "one-hot"})
    kinds = ["OneHot", "Hashed", "OneHot", "OneHot", "Number", "OneHot"]
    assert [type(feature).__name__.removesuffix("Feature") for feature in features.values()] == kinds
    assert features["age"].levels == sorted(str(age) for age in range(18, 80))
    assert features["price"] == NumberFeature(name="price", scale=9.0)


def test_fit_takes_contexts_and_actions_apart() -> None:
    encoder = lc.Encoder(64, **NAMES).fit(
        SAMPLE.select("age", "country", "member"), actions=SAMPLE.select("price", "genre", "sku")
    )
    assert encoder == lc.Encoder(64, **NAMES).fit(SAMPLE)
    assert encoder == lc.Encoder(64, **NAMES).fit(SAMPLE.to_dicts())


@pytest.mark.parametrize(
    ("sample", "rule"),
    [
        (SAMPLE.drop("sku"), "sample must have the columns .*missing: sku"),
        (SAMPLE.with_columns(price=pl.lit(None, pl.Float64)), "must have values of 'price'.*declare"),
        (SAMPLE.with_columns(price=pl.lit(float("inf"))), "'price' must be finite"),
        ([{"price": 1}, {"price": "12"}], "'price' has numbers and other values: declare"),
        (5, "sample must be rows"),
    ],
)
def test_unusable_sample_is_refused_and_nothing_changes(sample: Any, rule: str) -> None:
    names = NAMES if not isinstance(sample, list) else {"actions": ["price"]}
    encoder = lc.Encoder(64, **names)
    with pytest.raises(InputError, match=rule):
        encoder.fit(sample)
    assert encoder.fit(SAMPLE).dim == 64


def test_encoder_is_fitted_once_and_before_use() -> None:
    encoder = lc.Encoder(64, **NAMES)
    for use in (lambda: encoder.encode({}, [{}]), encoder.to_dict, lambda: encoder.encode_frame(SAMPLE)):
        with pytest.raises(
            InputError, match=r"must know the scales and levels of age, .*call fit\(sample\), or declare"
        ):
            use()
    encoder.fit(SAMPLE)
    with pytest.raises(InputError, match="has been fitted: make a new one"):
        encoder.fit(SAMPLE)
    with pytest.raises(InputError, match="nothing to learn"):
        lc.Encoder(5).fit(SAMPLE)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"context": "age"}, "context must be names of features"),
        ({"context": ["age", "age"]}, "context must have each name once"),
        ({"context": ["age"], "actions": ["age"]}, "must have different names; got 'age'"),
        ({"actions": {"x": "onehot"}}, "'x' must be one of number, one-hot, hashed; .*did you mean 'one-hot'"),
        ({"actions": {"x": {"scale": 0}}}, "'x' must have a scale above 0"),
        ({"actions": {"x": 5}}, "'x' must be a kind"),
        ({"actions": [""]}, "texts of 1 to 200 characters"),
        ({"actions": ["x"], "interactions": [("x", "y")]}, "of declared features; got 'y'"),
        ({"actions": ["x"], "interactions": ["xy"]}, "pairs of two names"),
        ({"context": ["x", "y"], "interactions": [("x", "y")]}, "must have a feature of the action.*changes no choice"),
        ({"actions": {"x": [str(i) for i in range(20)]}}, "dim must be at least 21.*hashed"),
        ({"actions": {"x": ["a"] + ["b"] * 3, "y": "hashed"}, "dim": 4}, "dim must be at least 5"),
        ({"actions": {"x": "hashed"}, "scales": {"x": {"scale": 1}}}, "scales must be left out"),
        ({"dim": 2}, "dim must be at least 3"),
        ({"dim": 0}, "dim must be at least 1"),
    ],
)
def test_invalid_declarations_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        lc.Encoder(**({"dim": 16} | options))


# ---- the dimension ----


def test_advice_gives_every_term_a_column_where_they_are_few() -> None:
    few = {"context": ["age", "country"], "actions": ["price", "genre"]}
    advice = lc.advise_dim(SAMPLE, **few)  # type: ignore[arg-type]
    assert advice.dim == (1 + 1 + 3) * (1 + 1 + 2)
    assert "20 columns" in advice.reason
    assert lc.Encoder(advice.dim, **few).fit(SAMPLE).collisions().is_empty()  # type: ignore[arg-type]


def test_advice_for_hashed_terms_keeps_the_variance_that_it_says() -> None:
    advice = lc.advise_dim(SAMPLE, context=["country"], actions=["sku"], interactions=[])
    assert advice.kept[advice.dim] >= 0.95
    assert all(share < 0.95 for dim, share in advice.kept.items() if dim < advice.dim)
    assert f"{advice.dim} columns keep" in advice.reason
    rng = np.random.default_rng(1)
    rows = (
        lc.Encoder(advice.dim, context=["country"], actions=["sku"], interactions=[]).fit(SAMPLE).encode_frame(SAMPLE)
    )
    shares = []
    for _ in range(20):  # values of random weights, by hand
        by_sku, by_country = rng.normal(size=90), dict(zip(["NO", "SE", "DK"], rng.normal(size=3), strict=True))
        values = np.array([by_sku[int(s[1:])] + by_country[c] for s, c in SAMPLE.select("sku", "country").iter_rows()])
        values -= values.mean()
        fit, *_ = np.linalg.lstsq(rows, values)
        shares.append(1 - np.mean((values - rows @ fit) ** 2) / np.mean(values**2))
    assert np.mean(shares) == pytest.approx(advice.kept[advice.dim], abs=0.03)


def test_advice_says_where_the_sample_is_too_small() -> None:
    with pytest.raises(InputError, match="at least 64 rows"):
        lc.advise_dim(SAMPLE.head(50), context=["country"], actions={"sku": "hashed"})
    with pytest.raises(InputError, match="must name the features"):
        lc.advise_dim(SAMPLE)
    advice = lc.advise_dim(SAMPLE, context={"country": "hashed", "age": "hashed"}, actions=["sku", "price"])
    assert "cannot tell about more columns" in advice.reason
