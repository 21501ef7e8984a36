"""Bandits with an encoder: over HTTP and in this process alike, in the log, and in its copies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from servers import Server, error_of, run_server

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.features import encode_features
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay

SAMPLE = [
    {"age": age, "country": country, "price": price, "sku": sku}
    for age, country, price, sku in zip(range(20, 60), ["NO", "SE"] * 20, range(5, 205, 5), "abcdefgh" * 5, strict=True)
]
ENCODER = lc.Encoder(16, context=["age", "country"], actions={"price": None, "sku": "hashed"}).fit(SAMPLE)
CONTEXT = {"age": 31, "country": "NO"}
OFFERS: dict[str, Any] = {
    "one": {"price": 20, "sku": "a"},
    "two": {"price": np.float32(180), "sku": "new"},
    "three": {"price": None},
}
MADE: dict[str, Any] = {"window": 100, "policy": "OTFLinUCB"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("encoders") / "a.db") as server:
        yield server


def test_client_lc_open_and_the_library_encode_alike(server: Server, tmp_path: Path) -> None:
    policy = lc.OTFLinUCB(16, 100)
    with server.client() as client, lc.open(tmp_path / "a.db", encoder=ENCODER, **MADE) as bandit:
        info = client.create("b", encoder=ENCODER, **MADE)
        assert (info.dim, info.encoder) == (16, ENCODER.spec)
        assert lc.Encoder.from_dict(info.encoder) == ENCODER  # type: ignore[arg-type]
        assert client.create("b", encoder=ENCODER.to_dict(), dim=16, **MADE) == info
        for number in range(6):
            far = client.decide_features("b", OFFERS, context=CONTEXT)
            near = bandit.decide_features(OFFERS, context=CONTEXT)
            own = policy.decide(ENCODER.encode(CONTEXT, OFFERS))
            assert (far.index, far.score) == (near.index, near.score) == (own.index, own.score)
            if number % 2:
                client.convert("b", far), bandit.convert(near), policy.convert(own)
        assert client.stats("b").theta_hat == bandit.stats().theta_hat == policy.theta_hat.tolist()
        client.delete("b")


def test_encoder_is_in_the_body_and_in_the_answers(server: Server) -> None:
    body = {"dim": 16, "window": 100, "encoder": ENCODER.to_dict()}
    answer = server.http.put("/v1/bandits/json", json=body)
    assert answer.status_code == 201
    assert answer.json()["encoder"] == ENCODER.to_dict()
    assert server.http.get("/v1/bandits/json").json()["encoder"] == ENCODER.to_dict()
    assert server.http.put("/v1/bandits/json", json=body).status_code == 200
    path = "/v1/bandits/json/decisions"
    for context, features, field in (
        ({"contry": "NO"}, {}, "context"),
        ({"age": "old"}, {}, "context"),
        ({}, {"colour": "red"}, "actions[0]"),
        ({}, {"price": "cheap"}, "actions[0]"),
    ):
        refused = server.http.post(path, json={"context": context, "actions": [{"id": "a", "features": features}]})
        assert (refused.status_code, error_of(refused)["field"]) == (400, field)
    assert server.http.get("/v1/bandits/json/stats").json()["rounds"] == 0
    server.http.delete("/v1/bandits/json?confirm=json").raise_for_status()


def change(**fields: Any) -> dict[str, Any]:
    return ENCODER.to_dict() | fields


@pytest.mark.parametrize(
    ("encoder", "rule"),
    [
        (change(dim=17), "encoder must have the bandit's dim, 16; got 17"),
        (change(version=2), "encoder: version must be 1; got 2|the encoder has format 2"),
        (change(scales={"x": {"scale": 1}}), "encoder: scales must be left out"),
        (change(interactions=[["age", "colour"]]), "encoder: interactions must be of declared features"),
        (change(context=change()["actions"]), "encoder: context and actions must have different names"),
        (change(actions=change()["actions"][::-1]), "encoder: actions must have its features in the order"),
        (change(actions=[{"kind": "one-hot", "name": "x", "levels": ["b", "a"]}]), "encoder: 'x' must have its levels"),
        (change(actions=[{"kind": "number", "name": "x", "scale": 0}]), r"scale|`float` > 0"),
        (change(actions=[{"kind": "other", "name": "x"}]), "kind|Invalid value 'other'"),
        (change(more=1), "more"),
        (7, "object"),
    ],
)
def test_invalid_encoders_are_refused(server: Server, tmp_path: Path, encoder: Any, rule: str) -> None:
    answer = server.http.put("/v1/bandits/new", json={"dim": 16, "window": 100, "encoder": encoder})
    assert answer.status_code == 400
    assert error_of(answer)["field"].startswith("encoder")
    assert server.http.get("/v1/bandits/new").status_code == 404
    with pytest.raises((InputError, lc.errors.NewerFileError), match=rule):
        lc.open(tmp_path / "a.db", dim=16, encoder=encoder, **MADE)
    assert not (tmp_path / "a.db").exists()


def test_encoder_takes_the_place_of_scales(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="features must be left out where there is an encoder") as raised:
        lc.open(tmp_path / "a.db", encoder=ENCODER, features={"price": {"scale": 2}}, **MADE)
    assert raised.value.field == "features"
    with server.client() as client, pytest.raises(InputError, match="dim must be given, or an encoder"):
        client.create("x", window=100)
    with pytest.raises(InputError, match="must know the scales and levels"):
        lc.open(tmp_path / "a.db", encoder=lc.Encoder(5, actions=["x"]), **MADE)


def test_encoder_is_part_of_the_specification_and_of_the_log(tmp_path: Path) -> None:
    spec = BanditSpec(dim=16, window=100, policy="OTFLinUCB", encoder=ENCODER.spec)
    with Store.open(tmp_path / "a.db") as store:
        assert store.create("b", spec)[1]
        rows = encode_features(store.info("b"), CONTEXT, list(OFFERS.values()))
        store.wait(store.decide("b", rows, list(OFFERS))[1])
    other = lc.Encoder(16, context=["age", "country"], actions={"price": {"scale": 7}, "sku": "hashed"}).fit(SAMPLE)
    with Store.open(tmp_path / "a.db") as store:
        assert not store.create("b", spec)[1]
        assert store.info("b").encoder == ENCODER.spec
        np.testing.assert_array_equal(encode_features(store.info("b"), CONTEXT, list(OFFERS.values())), rows)
        with pytest.raises(ConflictError, match=r"encoder\.actions\.price is NumberFeature"):
            store.create("b", BanditSpec(dim=16, window=100, policy="OTFLinUCB", encoder=other.spec))
        with pytest.raises(ConflictError, match=r"encoder\.dim is 16, not unset"):
            store.create("b", BanditSpec(dim=16, window=100, policy="OTFLinUCB"))


def test_replay_keeps_the_encoder(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", name="b", encoder=ENCODER, **MADE) as bandit:
        for _ in range(3):
            bandit.decide_features(OFFERS, context=CONTEXT)
    with Store.open(tmp_path / "a.db") as store:
        assert replay(store, "b", "c", window=50).rounds == 3
        assert store.info("c").encoder == ENCODER.spec
