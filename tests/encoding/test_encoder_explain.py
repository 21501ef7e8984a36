"""θ̂ by feature: planted weights are found again, names are right, and collisions are those of the columns."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import latecomer as lc
from latecomer.errors import DamagedFileError, InputError, NewerFileError

PLANTED = {"price": -0.10, "rating": 0.08, "new=true": 0.06, "genre=art": 0.0}


def play(encoder: lc.Encoder, policy: Any, *, rounds: int, seed: int) -> None:
    """Conversions with the planted weights: 0.3, plus those of the chosen action."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        actions = [
            {
                "price": rng.uniform(0, 100),
                "rating": rng.uniform(1, 5),
                "new": bool(rng.random() < 0.5),
                "genre": str(rng.choice(["art", "crime"])),
            }
            for _ in range(4)
        ]
        decision = policy.decide(encoder.encode({"hour": rng.uniform(-1, 1)}, actions))
        chosen = actions[decision.index]
        rate = 0.3 + PLANTED["price"] * (chosen["price"] - 50) / 50 + PLANTED["rating"] * (chosen["rating"] - 3) / 2
        if rng.random() < rate + PLANTED["new=true"] * chosen["new"]:
            policy.convert(decision)


def make_shop() -> lc.Encoder:
    return lc.Encoder(
        8,
        context={"hour": {"scale": 1}},
        actions={
            "price": {"scale": 50, "center": 50},
            "rating": {"scale": 2, "center": 3},
            "new": ["true"],
            "genre": ["art"],
        },
        interactions=[("hour", "price")],
    )


POLICIES: dict[str, Any] = {"OTFLinUCB": {"exploration": 0.02}, "WaitingLinTS": {"seed": 1}, "recommended": {"seed": 1}}
OTHERS: dict[str, Any] = {"Uniform": {"seed": 1}, "LinTS": {"seed": 1}}


@pytest.mark.parametrize("name", POLICIES)
def test_explanation_recovers_planted_weights(name: str) -> None:
    recover(name, rounds=700)


@pytest.mark.soak
@pytest.mark.parametrize("name", POLICIES | OTHERS)
def test_explanation_recovers_planted_weights_of_many_rounds(name: str) -> None:
    recover(name, rounds=4000)


def recover(name: str, *, rounds: int) -> None:
    encoder, policy = make_shop(), getattr(lc, name)(8, 100, **(POLICIES | OTHERS)[name])
    play(encoder, policy, rounds=rounds, seed=3)
    table = encoder.explain(policy, confidence=0.999)
    assert table["feature"].to_list()[0] == "intercept"
    assert table["weight"].abs().is_sorted(descending=True)
    rows = {row["feature"]: row for row in table.iter_rows(named=True)}
    for feature, weight in PLANTED.items():
        assert rows[feature]["low"] <= weight <= rows[feature]["high"], feature
    usual = {row["feature"]: row for row in encoder.explain(policy).iter_rows(named=True)}
    assert usual["price"]["high"] < 0 < usual["rating"]["low"]
    assert usual["genre=art"]["low"] < 0 < usual["genre=art"]["high"]
    assert rows["price"]["step"] == 50.0
    assert rows["genre=art"]["step"] is None
    assert rows["hour × price"]["low"] < 0.0 < rows["hour × price"]["high"]
    assert set(table["shares"]) == {0}


@pytest.mark.parametrize(
    ("seeds", "rounds", "low", "high"),
    [(10, 200, 0.8, 0.99), pytest.param(60, 600, 0.84, 0.97, marks=pytest.mark.soak)],
)
def test_covered_share_of_the_intervals_is_what_was_asked_for(seeds: int, rounds: int, low: float, high: float) -> None:
    """Uniform play, four planted weights: the nominal 90 % within the noise of so many intervals."""
    encoder, inside = make_shop(), 0
    for seed in range(seeds):
        policy = lc.Uniform(8, 50, seed=seed)
        play(encoder, policy, rounds=rounds, seed=1000 + seed)
        for row in encoder.explain(policy).iter_rows(named=True):
            inside += row["feature"] in PLANTED and row["low"] <= PLANTED[row["feature"]] <= row["high"]
    assert low <= inside / (4 * seeds) <= high


@pytest.mark.parametrize("rounds", [200, pytest.param(600, marks=pytest.mark.soak)])
def test_logistic_policy_is_explained_in_logits(rounds: int) -> None:
    encoder, policy = make_shop(), lc.LogisticLinTS(8, 50, seed=1)
    play(encoder, policy, rounds=rounds, seed=3)
    rows = {row["feature"]: row for row in encoder.explain(policy).iter_rows(named=True)}
    assert rows["price"]["weight"] < 0 < rows["rating"]["weight"]
    assert rows["price"]["weight"] < -0.2  # −0.1 at a rate of 0.3 is −0.48 in logits


def test_weight_of_a_term_is_what_it_adds_to_a_score() -> None:
    """The explained weights, summed over the terms of an action, are ⟨a, θ̂⟩: hashed and one-hot terms alike."""
    encoder = lc.Encoder(24, context={"country": ["NO", "SE"]}, actions={"sku": "hashed", "price": {"scale": 10}})
    encoder.fit([{"country": "NO", "sku": f"s{i}", "price": i} for i in range(6)])
    policy = lc.Greedy(24, 50)
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = encoder.encode({"country": "NO"}, [{"sku": f"s{i}", "price": i} for i in range(6)])
        decision = policy.decide(rows)
        if rng.random() < 0.5:
            policy.convert(decision)
    weights = dict(encoder.explain(policy).select("feature", "weight").iter_rows())
    row = encoder.encode({"country": "NO"}, [{"sku": "s3", "price": 5}])[0]
    whole = weights["intercept"] + weights["country=NO"] + weights["sku=s3"] + weights["price"] / 2
    whole += weights["country=NO × sku=s3"] + weights["country=NO × price"] / 2
    assert whole == pytest.approx(row @ policy.theta_hat, abs=1e-12)


def test_collisions_are_those_of_the_rows() -> None:
    """Two terms share a column where their rows do; those with the same two columns are inseparable."""
    levels = [f"s{i}" for i in range(30)]
    encoder = lc.Encoder(9, actions={"sku": "hashed"}).fit([{"sku": level} for level in levels])
    alone = {f"sku={level}": encoder.encode({}, [{"sku": level}])[0] for level in levels}
    columns = {name: set(np.flatnonzero(row[1:]) + 1) for name, row in alone.items()}
    table = encoder.collisions()
    assert table.height == 30  # 30 terms in 8 columns
    for row in table.iter_rows(named=True):
        own = columns[row["term"]]
        assert set(row["columns"]) == own
        others = {name for name in columns if name != row["term"] and columns[name] & own}
        assert row["shares"] == len(others)
        assert set(row["inseparable"]) == {name for name in others if columns[name] == own}
    shares = dict(table.select("term", "shares").iter_rows())
    explained = encoder.explain(lc.Greedy(9, 10))
    assert all(row["shares"] == shares.get(row["feature"], 0) for row in explained.iter_rows(named=True))


def test_explanation_refuses_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="policy must have the encoder's dim, 8; got 5"):
        make_shop().explain(lc.Greedy(5, 10))
    with pytest.raises(InputError, match="needs an encoder with declared features"):
        lc.Encoder(5).explain(lc.Greedy(5, 10))
    with pytest.raises(InputError, match="confidence must be a probability"):
        make_shop().explain(lc.Greedy(8, 10), confidence=90)


# ---- files ----


@pytest.mark.parametrize("encoder", [make_shop(), lc.Encoder(5, scales={"x": {"scale": 2}}), lc.Encoder(5)])
def test_encoder_survives_a_dict_a_file_and_a_policy(encoder: lc.Encoder, tmp_path: Path) -> None:
    assert lc.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder
    encoder.save(tmp_path / "encoder.json")
    assert lc.Encoder.load(tmp_path / "encoder.json") == encoder
    policy = lc.Greedy(encoder.dim, 10)
    policy.save(tmp_path / "policy", encoder=encoder)
    loaded = lc.load(tmp_path / "policy")
    assert loaded.encoder == encoder == policy.encoder
    loaded.save(tmp_path / "again")
    assert lc.load(tmp_path / "again").encoder == encoder
    lc.Greedy(3, 10).save(tmp_path / "bare")
    assert lc.load(tmp_path / "bare").encoder is None


def test_saved_encoder_has_a_version_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    data = make_shop().to_dict()
    assert data["version"] == 1
    path = tmp_path / "encoder.json"
    path.write_text(json.dumps(data | {"version": 2}))
    with pytest.raises(NewerFileError, match="the encoder has format 2"):
        lc.Encoder.load(path)
    for damage in ("", "{", "[]", json.dumps(data | {"dim": 2}), json.dumps(data | {"more": 1})):
        path.write_text(damage)
        with pytest.raises(DamagedFileError, match="is not a whole encoder"):
            lc.Encoder.load(path)


def test_policy_is_saved_with_an_encoder_that_fits_alone(tmp_path: Path) -> None:
    wrong: Any
    for wrong, rule in ((make_shop(), "must have the policy's dim, 5; got 8"), ({}, "must be a latecomer.Encoder")):
        with pytest.raises(InputError, match=rule):
            lc.Greedy(5, 10).save(tmp_path / "policy", encoder=wrong)
    assert not (tmp_path / "policy").exists()


def test_explanation_is_a_tidy_frame() -> None:
    table = make_shop().explain(lc.Greedy(8, 10))
    assert table.schema == {
        "feature": pl.String,
        "weight": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "step": pl.Float64,
        "shares": pl.Int64,
    }
