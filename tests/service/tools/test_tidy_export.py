"""The exported table of decisions: offers, propensities and fates, as they were."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.encoding.spec import Scale
from latecomer.service.bandit.offers import LONGEST_REPEAT, OfferReader, OfferWriter, pack_offer, unpack_offer
from latecomer.service.features import hash_features
from latecomer.service.tools.export import export


def read(path: Path, name: str = "shop") -> pl.DataFrame:
    return pl.concat([frame for table, frame in export(path, name) if table == "decisions"])


def draw_sets(count: int, dim: int = 3) -> list[Any]:
    rng = np.random.default_rng(0)
    sets = [rng.random((int(rng.integers(1, 6)), dim)) for _ in range(count)]
    return [actions / np.linalg.norm(actions, axis=1, keepdims=True) for actions in sets]


def test_a_row_has_the_offer_the_propensity_and_the_fate(path: Path) -> None:
    sets = draw_sets(60)
    control = {"share": 0.3, "policy": "uniform"}
    with lc.open(path, name="shop", dim=3, window=500, parameters={"seed": 1, "control": control}) as bandit:
        answers = [bandit.decide(actions, ids=[f"a{k}" for k in range(len(actions))]) for actions in sets]
        for answer in answers[::4]:
            bandit.convert(answer, value=0.5)
        for answer in answers[::8]:
            bandit.revoke(answer)
    frame = read(path)
    assert frame["decision_id"].to_list() == [answer.decision_id for answer in answers]
    assert frame["chosen"].to_list() == [answer.index for answer in answers]
    assert frame["propensity"].to_list() == [answer.propensity for answer in answers]
    assert frame["control"].to_list() == [answer.is_control for answer in answers]
    assert 5 < frame["control"].sum() < 35
    assert frame["converted_at"].is_not_null().to_list() == [i % 4 == 0 for i in range(60)]
    assert frame["revoked"].to_list() == [i % 8 == 0 if i % 4 == 0 else None for i in range(60)]
    assert set(frame["value"].drop_nulls()) == {0.5}
    assert frame["action_ids"].to_list() == [[f"a{k}" for k in range(len(actions))] for actions in sets]
    for logged, actions in zip(frame["actions"].to_list(), sets, strict=True):
        np.testing.assert_array_equal(np.array(logged, np.float32), actions.astype(np.float32))


def test_features_are_exported_by_name_and_as_rows(path: Path) -> None:
    with lc.open(path, name="shop", dim=8, window=50, features={"price": {"scale": 100}}) as bandit:
        for hour in ("noon", "night", "noon"):
            bandit.decide_features({"red": {"price": 20}, "blue": {"price": 90, "new": True}}, context={"hour": hour})
    frame = read(path)
    assert [json.loads(text) for text in frame["context"]] == [{"hour": h} for h in ("noon", "night", "noon")]
    assert json.loads(frame["features"][0]) == [{"price": 20.0}, {"price": 90.0, "new": True}]
    assert frame["action_ids"][0].to_list() == ["red", "blue"]
    described = [{"price": 20}, {"price": 90, "new": True}]
    rows = hash_features({"hour": "night"}, described, 8, scales={"price": Scale(scale=100.0)})
    np.testing.assert_array_equal(np.array(frame["actions"][1].to_list(), np.float32), rows.astype(np.float32))


def test_offers_can_be_left_out(path: Path) -> None:
    with lc.open(path, name="shop", dim=2, window=50, log_offers=False) as bandit:
        bandit.decide(np.eye(2))
    frame = read(path)
    assert frame["actions"].to_list() == [None]
    assert frame["propensity"].null_count() == 0
    assert frame["chosen_action"].to_list()[0] in ([1.0, 0.0], [0.0, 1.0])


def test_a_repeated_request_gets_the_same_propensity(path: Path) -> None:
    with lc.open(path, name="shop", dim=2, window=50) as bandit:
        first = bandit.decide(np.eye(2), ids=["x", "y"], request_id="r")
        assert first.propensity is not None
    with lc.open(path, name="shop") as bandit:
        assert bandit.decide(np.eye(2), ids=["x", "y"], request_id="r") == first


def test_the_control_is_found_by_its_id(path: Path) -> None:
    parameters = {"seed": 0, "control": {"share": 0.5, "policy": "usual"}}
    with lc.open(path, name="shop", dim=2, window=50, policy="Greedy", parameters=parameters) as bandit:
        answers = [bandit.decide(np.eye(2), ids=["other", "usual"]) for _ in range(60)]
        assert {answer.action_id for answer in answers if answer.is_control} == {"usual"}
        assert bandit.decide(np.eye(2), ids=["a", "b"]).propensity == 1.0


def test_an_equal_offer_is_logged_by_its_distance() -> None:
    writer, reader, offer = OfferWriter(), OfferReader(), pack_offer(np.eye(3), ["a", "b", "c"], None)
    whole = writer.pack(1, offer)
    assert len(whole) > 20
    assert len(writer.pack(2, offer)) == len(writer.pack(1 + LONGEST_REPEAT, offer)) == 5
    assert writer.pack(2 + LONGEST_REPEAT, offer) == whole
    found = reader.add(1, offer)
    assert reader.find(500, 499) is found
    assert reader.find(500, 498) is None  # of a round that was pruned


def test_sparse_rows_and_texts_are_compressed_and_dense_rows_are_not() -> None:
    sparse = np.zeros((20, 64))
    sparse[:, 3] = 0.5
    dense = np.random.default_rng(0).random((20, 64)) / 8
    assert len(pack_offer(sparse, None, None)) < 200
    assert len(pack_offer(dense, None, None)) < 20 * 64 * 4 + 20
    named = pack_offer(sparse, None, ({"hour": "noon"}, [{"colour": "red", "size": "large"}] * 20))
    assert len(named) < 120
    assert unpack_offer(named).features == [{"colour": "red", "size": "large"}] * 20


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x01garbage", b"\x00\xc1", b"\x00\x93\x01\x02\x03"])
def test_a_damaged_offer_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="offer"):
        unpack_offer(data)


def test_export_refuses_one_folder_for_both_tables(path: Path, tmp_path: Path) -> None:
    with lc.open(path, name="shop", dim=2, window=50) as bandit:
        bandit.decide(np.eye(2))
    where = ["--out", str(tmp_path / "out"), "--reports", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["log", "export", str(path), "--bandit", "shop", *where])
    assert result.exit_code != 0
    assert "another folder" in result.output + str(result.exception)
