"""Feature values of NumPy and DataFrames, over HTTP and in this process alike."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from servers import Server, error_of, run_server

import latecomer as lc
from latecomer.encoding.values import to_plain_features
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit_spec import BanditSpec, Scale
from latecomer.service.features import hash_features
from latecomer.service.store import Store

DIM = 5
SCALES = {"discount": {"scale": 50}, "age": {"center": 40, "scale": 30}}
FRAME = pd.DataFrame(
    {
        "sku": ["a", "b", "c"],
        "discount": [5, 20, 50],
        "kind": ["book", None, "lamp"],
        "new": [True, False, True],
        "rating": [0.5, np.nan, 0.75],
    }
)
PLAIN: dict[str, dict[str, Any]] = {
    "a": {"discount": 5.0, "kind": "book", "new": True, "rating": 0.5},
    "b": {"discount": 20.0, "kind": None, "new": False, "rating": None},
    "c": {"discount": 50.0, "kind": "lamp", "new": True, "rating": 0.75},
}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(1), 1.0),
        (np.uint8(1), 1.0),
        (np.longdouble(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("red"), "red"),
        (np.array(["b", "a"]), ["b", "a"]),
        (("a", np.str_("b")), ["a", "b"]),
        (Decimal("0.25"), 0.25),
        (float("nan"), None),
        (np.float32("nan"), None),
        (Decimal("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (None, None),
    ],
)
def test_plain_features_converts_values(value: Any, plain: Any) -> None:
    found = to_plain_features({"x": value}, "context")["x"]
    assert (found, type(found)) == (plain, type(plain))


def rows_of_frames() -> dict[str, Any]:
    indexed = FRAME.set_index("sku")
    return {
        "to_dict": indexed.to_dict("index"),
        "records": {row.pop("sku"): row for row in FRAME.to_dict("records")},
        "iterrows": dict(indexed.iterrows()),
        "nullable": dict(indexed.convert_dtypes().iterrows()),
        "categories": dict(indexed.astype({"kind": "category", "discount": "int8"}).iterrows()),
        "polars": {row.pop("sku"): row for row in pl.DataFrame(FRAME.to_dict("list")).to_dicts()},
    }


@pytest.mark.parametrize("case", rows_of_frames())
def test_data_frame_rows_are_features(case: str) -> None:
    actions = rows_of_frames()[case]
    assert {id_: to_plain_features(row, "action") for id_, row in actions.items()} == PLAIN
    scales = {"discount": Scale(scale=50.0)}
    np.testing.assert_array_equal(
        hash_features({}, list(actions.values()), DIM, scales=scales),
        hash_features({}, list(PLAIN.values()), DIM, scales=scales),
    )


def test_non_mapping_features_are_refused() -> None:
    wrong: Any
    for wrong in ([1, 2], "x", 5, FRAME.iloc[0].rename({"sku": 1})):
        with pytest.raises(InputError, match="context must"):
            to_plain_features(wrong, "context")
    for wrong in ({"\ud800": 1}, {"x": "\ud800"}, {"x": ["a", "\ud800"]}):
        with pytest.raises(InputError, match="context must be Unicode; got a lone surrogate"):
            to_plain_features(wrong, "context")
    doubled = pd.Series([1.0, 2.0], ["x", "x"])
    with pytest.raises(InputError, match="context must have each name once; got 'x' twice"):
        to_plain_features(doubled, "context")


# ---- a bandit with declared features ----


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("features") / "a.db") as server:
        yield server


def test_client_and_lc_open_hash_features_alike(server: Server, tmp_path: Path) -> None:
    """Equal bandits with equal features make equal choices and scores."""
    made: dict[str, Any] = {"dim": DIM, "window": 100, "policy": "OTFLinUCB", "features": SCALES}
    context = pd.Series({"age": np.int64(25), "country": "NO"}, dtype=object)
    with server.client() as client, lc.open(tmp_path / "a.db", **made) as bandit:
        info = client.create("b", **made)
        assert info.features == {"discount": Scale(scale=50), "age": Scale(scale=30, center=40)}
        for actions in rows_of_frames().values():
            far = client.decide_features("b", actions, context=context, request_id="same")
            near = bandit.decide_features(actions, context=context, request_id="same")
            assert (far.action_id, far.score, far.round) == (near.action_id, near.score, 1)
        for _ in range(5):
            far, near = (
                client.decide_features("b", PLAIN, context=context),
                bandit.decide_features(PLAIN, context=context),
            )
            assert (far.action_id, far.score, far.round) == (near.action_id, near.score, near.round)
        wrong: Any
        for wrong, rule in ((FRAME, r"actions must be a dict.*set_index"), ({1: {}}, "must have texts as ids; got 1")):
            with pytest.raises(InputError, match=rule):
                client.decide_features("b", wrong)
            with pytest.raises(InputError, match=rule):
                bandit.decide_features(wrong)
        with pytest.raises(ConflictError):
            bandit.decide_features({**PLAIN, "a": {**PLAIN["a"], "discount": 6.0}}, context=context, request_id="same")
        assert client.stats("b").theta_hat == bandit.stats().theta_hat
        client.delete("b")


def test_number_without_scale_is_refused_over_http(server: Server) -> None:
    server.http.put("/v1/bandits/plain", json={"dim": DIM, "window": 100}).raise_for_status()
    path = "/v1/bandits/plain/decisions"
    answer = server.http.post(path, json={"actions": [{"id": "a", "features": {}}], "context": {"hour": 7}})
    assert (answer.status_code, error_of(answer)["field"]) == (400, "context")
    answer = server.http.post(path, json={"actions": [{"id": "a", "features": {"price": 150}}]})
    assert (answer.status_code, error_of(answer)["field"]) == (400, "actions[0]")
    assert '"scale"' in error_of(answer)["message"]
    assert server.http.get("/v1/bandits/plain/stats").json()["rounds"] == 0
    server.http.delete("/v1/bandits/plain?confirm=plain").raise_for_status()


@pytest.mark.parametrize(
    "features",
    [
        {"x": {}},
        {"x": {"scale": 0}},
        {"x": {"scale": -1}},
        {"x": {"scale": "9"}},
        {"x": {"scale": 1, "centre": 2}},
        {"x": {"scale": 1, "center": None}},
        {"x": 200},
        ["x"],
    ],
)
def test_invalid_scale_declarations_are_refused(server: Server, tmp_path: Path, features: Any) -> None:
    answer = server.http.put("/v1/bandits/new", json={"dim": DIM, "window": 100, "features": features})
    assert answer.status_code == 400
    assert error_of(answer)["field"].startswith("features")
    with pytest.raises(InputError, match=r"^features"):
        lc.open(tmp_path / "a.db", dim=DIM, window=100, features=features)
    with server.client() as client, pytest.raises(InputError, match=r"^features"):
        client.create("new", dim=DIM, window=100, features=features)
    assert server.http.get("/v1/bandits/new").status_code == 404


def test_features_need_three_dimensions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dim must be at least 3 where features are declared; got 2"):
        lc.open(tmp_path / "a.db", dim=2, window=100, features=SCALES)


def test_scales_are_part_of_the_specification(tmp_path: Path) -> None:
    spec = BanditSpec(dim=DIM, window=100, features={"discount": Scale(scale=50)})
    with Store.open(tmp_path / "a.db") as store:
        assert store.create("b", spec)[1]
    with Store.open(tmp_path / "a.db") as store:
        assert not store.create("b", spec)[1]
        assert store.info("b").features == spec.features
        for other in ({}, {"discount": Scale(scale=51)}, {"discount": Scale(scale=50, center=1)}):
            with pytest.raises(ConflictError):
                store.create("b", BanditSpec(dim=DIM, window=100, features=other))


# ---- what it is for ----


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 5))])
def test_recommended_policy_learns_the_best_discount_from_features(tmp_path: Path, seed: int) -> None:
    """Purchases grow with the discount; without sizes in the rows, the four actions would be one."""
    rng = np.random.default_rng(seed)
    sizes = {"d5": 5, "d10": 10, "d25": 25, "d50": 50}
    rates = {id_: 0.05 + 0.5 * size / 50 for id_, size in sizes.items()}
    actions = {id_: {"discount": size} for id_, size in sizes.items()}
    parameters = {"seed": seed}
    chosen = []
    with lc.open(tmp_path / "a.db", dim=DIM, window=500, parameters=parameters, features=SCALES) as bandit:
        for _ in range(300):
            answer = bandit.decide_features(actions)
            chosen.append(answer.action_id)
            if rng.random() < rates[str(answer.action_id)]:
                bandit.convert(answer.decision_id)
    assert chosen[100:].count("d50") > 0.8 * 200
