"""A bandit's catalogue: versions that survive restarts, replays and pruning; decisions among it; both clients."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.client.aio import AsyncClient
from latecomer.errors import ConflictError, InputError
from latecomer.policies.base.search import ExactSearch
from latecomer.service.action_index import IndexKeeper, IndexSearch
from latecomer.service.bandit.catalogue import Actions, Catalogue
from latecomer.service.open_bandit import OpenBandit
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.6, 0.8]}


def open_bandit(path: Path, **spec: Any) -> OpenBandit:
    return lc.open(path, dim=2, window="7d", **spec)


def contents(store: Any, name: str) -> dict[str, Any]:
    catalogue = store.registry.bandits[name].catalogue
    return {id_: catalogue.vectors[place].tolist() for id_, place in catalogue.places.items()}


def test_versions_survive_a_restart_a_replay_and_verify(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_bandit(path, policy="OTFLinTS") as bandit:
        assert bandit.put_actions(VECTORS).version == 1
        assert bandit.put_actions(VECTORS).version == 1  # the same again changes nothing
        first = bandit.decide_catalogue(exclude=["a", "gone long ago"])
        assert first.action_id in ("b", "c")
        info = bandit.put_actions({"b": [0.5, 0.5], "d": [0.0, -1.0]}, withdraw=["a"])
        assert (info.version, info.size, info.added, info.changed, info.withdrawn) == (2, 3, 1, 1, 1)
        bandit.decide_catalogue(candidates=["d"], request_id="x", subject="ann")
    assert len(list(verify(path))) > 1
    with Store.open(path) as store:
        wanted = contents(store, "default")
        replay(store, "default", "again", window="3d")
        assert contents(store, "again") == wanted
        assert wanted == {"b": [0.5, 0.5], "c": pytest.approx([0.6, 0.8]), "d": [0.0, -1.0]}
        before = state_of(store, "default")
    with lc.open(path) as bandit:
        assert isinstance(bandit._store, Store)
        assert state_of(bandit._store, "default") == before
        assert bandit.decide_catalogue(candidates=["d"], request_id="x", subject="ann").round == 2
        with pytest.raises(ConflictError):
            bandit.decide_catalogue(candidates=["c"], request_id="x", subject="ann")
        found = bandit.explain(first)
        assert sorted(str(action.action_id) for action in found.actions) == ["b", "c"]
        theta = bandit._store.read_bandit("default").policy.theta_hat
        shown = {action.action_id: action.estimate for action in found.actions}
        assert shown["b"] == pytest.approx(float(theta @ [0.0, 1.0]))  # as it was then
        assert len(bandit.report().recent) == 2


def test_an_offer_of_a_large_catalogue_is_a_few_bytes_of_the_log(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (3000, 2))
    with open_bandit(tmp_path / "a.db", policy="LinTS") as bandit:
        bandit.put_actions({str(place): row for place, row in enumerate(rows)})
        bytes_before = bandit._store.health.bytes
        for _ in range(20):
            bandit.decide_catalogue()
        assert (bandit._store.health.bytes - bytes_before) / 20 < 200


@pytest.mark.parametrize("policy", ["recommended", "OTFLinUCB", "OTFLinTS", "Uniform"])
def test_every_policy_decides_among_a_catalogue(tmp_path: Path, policy: str) -> None:
    with open_bandit(tmp_path / "a.db", policy=policy) as bandit:
        bandit.put_actions(VECTORS)
        answers = bandit.decide_many([{"exclude": ["b"]}, {"candidates": ["c", "a"]}, {"candidates": ["q"]}, {}])
        assert [getattr(answer, "action_id", None) in ("a", "c") for answer in answers[:2]] == [True, True]
        assert isinstance(answers[2], InputError)
        assert answers[2].field == "candidates[0]"
        deferred = bandit.decide_catalogue(deferred=True)
        assert bandit.activate(deferred) is lc.Verdict.ACCEPTED
        assert (deferred.propensity is None) == (policy == "OTFLinTS")
        if policy in ("recommended", "OTFLinUCB"):
            with pytest.raises(InputError, match="sampled θ̃") as caught:
                bandit.decide_catalogue(search="approximate")
            assert caught.value.field == "search"


@pytest.mark.parametrize(
    ("more", "needed"),
    [
        (
            {"parameters": {"draws": 4}, "challenger": {"policy": "Uniform", "share": 0.5}},
            "a bandit without a challenger",
        ),
        ({"parameters": {"draws": 4, "ceiling": 0.7}}, "without a ceiling or limits"),
        ({"parameters": {"draws": 4, "limits": {"a": {"ceiling": 0.5}}}}, "without a ceiling or limits"),
        ({"policy": "OTFLinUCB"}, "sampled θ̃"),
    ],
)
def test_an_approximate_search_is_refused_where_every_action_is_judged(
    tmp_path: Path, more: dict[str, Any], needed: str
) -> None:
    spec: dict[str, Any] = {"dim": 2, "window": 50, "policy": "OTFLinTS"} | more
    with lc.open(tmp_path / "a.db", **spec) as bandit:
        bandit.put_actions(VECTORS)
        for arguments in ({}, {"candidates": ["a"]}, {"k": 2}):
            with pytest.raises(InputError, match=needed) as caught:
                bandit.decide_catalogue(search="approximate", **arguments)
            assert caught.value.field == "search"
        assert bandit.stats().rounds == 0
        assert bandit.decide_catalogue().round == 1


def test_features_are_encoded_in_the_context_of_the_decision(tmp_path: Path) -> None:
    encoder = lc.Encoder(8, context={"hour": ["day", "night"]}, actions={"price": {"scale": 10}, "kind": ["x", "y"]})
    goods = {"cheap": {"price": 1.0, "kind": "x"}, "dear": {"price": 9.0, "kind": "y"}, "odd": {"price": 5.0}}
    with lc.open(tmp_path / "a.db", window="7d", encoder=encoder, policy="OTFLinTS") as bandit:
        bandit.put_actions(goods)
        answer = bandit.decide_catalogue(context={"hour": "night"})
        choice = bandit._store.read_bandit("default").policy
        expected = encoder.encode({"hour": "night"}, list(goods.values()))
        np.testing.assert_allclose(choice.V - np.eye(8), np.outer(*[expected[answer.index]] * 2), atol=1e-12)
        assert bandit.explain(answer).context == {"hour": "night"}
        for arguments, field in (({"context": {"moon": "full"}}, "context"), ({"search": "approximate"}, "search")):
            with pytest.raises(InputError) as caught:
                bandit.decide_catalogue(**arguments)
            assert caught.value.field == field
        with pytest.raises(InputError) as caught:
            bandit.put_actions({"new": {"colour": "red"}})
        assert caught.value.field == "actions[0]"
        assert bandit.put_actions({"v": np.eye(8)[0]}, replace=True).size == 1


def test_changes_are_undone_exactly() -> None:
    generator = np.random.default_rng(3)
    catalogue, changes = Catalogue(2), []
    versions: list[dict[str, Any]] = [{}]
    for _ in range(200):
        ids = generator.choice(list("abcdefgh"), generator.integers(0, 5), replace=False).tolist()
        rows = generator.uniform(-0.7, 0.7, (len(ids), 2)).astype(np.float32)
        gone = [id_ for id_ in generator.choice(list("abcdefgh"), 2).tolist() if id_ not in ids]
        put = Actions(ids, rows.tobytes()) if ids else Actions()
        change = catalogue.make_change(put, gone, replace=bool(ids) and generator.random() < 0.2)
        catalogue.apply(change)
        changes.append(change)
        versions.append({id_: catalogue.vectors[place].tolist() for id_, place in catalogue.places.items()})
        total = catalogue.vectors.astype(np.float64).sum(axis=0)
        np.testing.assert_allclose(catalogue._total, total, atol=1e-9)
    view = catalogue.share()
    for change, wanted in zip(reversed(changes), reversed(versions[:-1]), strict=True):
        view.undo(change)
        assert {id_: view.vectors[place].tolist() for id_, place in view.places.items()} == wanted
    assert {id_: catalogue.vectors[p].tolist() for id_, p in catalogue.places.items()} == versions[-1]


def test_an_index_finds_the_best_after_changes() -> None:
    generator = np.random.default_rng(1)
    catalogue = Catalogue(16)
    rows = generator.standard_normal((4000, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1).max() * 1.01
    ids = [str(place) for place in range(4000)]
    catalogue.apply(catalogue.make_change(Actions(ids, rows.tobytes()), (), replace=False))
    catalogue.index = keeper = IndexKeeper()
    keeper.refresh(catalogue)
    best = ExactSearch(catalogue.vectors, catalogue.summarise(np.empty(0, np.int64)))
    thetas = generator.standard_normal((40, 16))
    gone = [ids[place] for place in best.find_best(thetas[:5], 1)[:, 0].tolist()]
    put = Actions(["new"], (thetas[7] / np.linalg.norm(thetas[7])).astype(np.float32).tobytes())
    catalogue.apply(catalogue.make_change(put, sorted(set(gone)), replace=False))
    keeper.wait()
    assert keeper.current is not None
    excluded = np.array(
        sorted({catalogue.places[ids[p]] for p in best.find_best(thetas[8:9], 1)[0] if ids[p] in catalogue.places})
    )
    exact = ExactSearch(catalogue.vectors, catalogue.summarise(excluded), excluded)
    search = IndexSearch(catalogue, keeper.current, excluded)
    wanted, found = exact.find_best(thetas, 3), search.find_best(thetas, 3)
    assert (wanted[:, 0] == found[:, 0]).mean() >= 0.97
    assert (wanted == found).mean() >= 0.95
    assert catalogue.ids[found[7, 0]] == "new"
    listed, searched = (lc.OTFLinTS(16, 100, seed=2) for _ in range(2))  # a ranking takes the candidates of the scan
    same = [listed.rank_by_search(exact, 5).indices == searched.rank_by_search(search, 5).indices for _ in range(20)]
    assert np.mean(same) >= 0.9
    assert not set(excluded.tolist()) & set(searched.rank_by_search(search, 50).indices or ())


def test_an_index_follows_its_actions_to_other_places() -> None:
    generator, catalogue = np.random.default_rng(3), Catalogue(4)
    ids = [str(place) for place in range(700)]
    rows = 0.3 * generator.uniform(-1.0, 1.0, (700, 4)).astype(np.float32)
    catalogue.apply(catalogue.make_change(Actions(ids, rows.tobytes()), (), replace=False))
    catalogue.index = keeper = IndexKeeper()
    keeper.refresh(catalogue)
    keeper.wait()
    assert keeper.current is not None
    gone, new = set[str](), 700
    for _ in range(60):
        put = [str(generator.integers(new)) for _ in range(3)] + [str(new)]
        withdraw = [str(generator.integers(new)) for _ in range(4)]
        new += 1
        put = [id_ for id_ in dict.fromkeys(put) if id_ not in withdraw]
        vectors = 0.3 * generator.uniform(-1.0, 1.0, (len(put), 4)).astype(np.float32)
        catalogue.apply(catalogue.make_change(Actions(put, vectors.tobytes()), withdraw, replace=False))
        gone |= set(withdraw)
        thetas = generator.standard_normal((2, 4))
        found = np.concatenate(keeper.current.scan(thetas, 700))  # a scan may leave one out, two do not
        assert {catalogue.ids[place] for place in found.tolist()} == set(ids) - gone
        nothing = np.empty(0, np.int64)
        exact = ExactSearch(catalogue.vectors, catalogue.summarise(nothing))
        search = IndexSearch(catalogue, keeper.current, nothing)
        np.testing.assert_array_equal(search.find_best(thetas, 2), exact.find_best(thetas, 2))


def test_http_and_both_clients(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        client.create("x", dim=2, window="1d", policy="OTFLinTS")
        body: dict[str, Any]
        for body, field in (
            ({"actions": [{"id": "a", "vector": [1.0]}]}, "actions[0]"),
            ({"actions": [{"id": "a", "vector": [1.0, 1.0]}]}, "actions[0]"),
            ({"actions": [{"id": "a"}]}, "actions[0]"),
            ({"actions": [{"id": "a", "vector": [1.0, 0.0]}] * 2}, "actions[1].id"),
            ({"actions": [{"id": "", "vector": [1.0, 0.0]}]}, "actions[0].id"),
            ({"actions": [{"id": "a", "vector": [1.0, 0.0]}], "withdraw": ["a"]}, "withdraw[0]"),
            ({"replace": True}, "actions"),
            ({"withdrawn": ["a"]}, "withdrawn"),
        ):
            bad = server.http.put("/v1/bandits/x/actions", json=body)
            assert (bad.status_code, error_of(bad).get("field")) == (400, field), body
        empty = server.http.post("/v1/bandits/x/decisions", json={})
        assert (empty.status_code, error_of(empty)["field"]) == (400, "actions")
        assert client.catalogue("x").version == 0
        assert client.put_actions("x", VECTORS, withdraw=["z"]).added == 3
        assert server.http.put("/v1/bandits/none/actions", json={}).status_code == 404
        answer = client.decide_catalogue("x", exclude=["a"], subject="ann")
        assert answer.action_id in ("b", "c")
        for body, field in (
            ({"candidates": ["q"]}, "candidates[0]"),
            ({"candidates": []}, "candidates"),
            ({"exclude": ["a", "b", "c"]}, "exclude"),
            ({"search": "quick"}, "search"),
            ({"ids": ["a"]}, "ids"),
            ({"context": {"hour": "noon"}}, "context"),
            ({"actions": [[1.0, 0.0]], "exclude": ["a"]}, "exclude"),
            ({"actions": [[1.0, 0.0]], "search": "approximate"}, "search"),
        ):
            bad = server.http.post("/v1/bandits/x/decisions", json=body)
            assert (bad.status_code, error_of(bad)["field"]) == (400, field), body
        assert client.stats("x").rounds == 1
        outcomes = client.decide_many("x", [{"candidates": ["b"]}, {"exclude": ["a", "b", "c"]}])
        assert getattr(outcomes[0], "action_id", None) == "b"
        assert isinstance(outcomes[1], InputError)
        assert client.explain("x", answer).actions[0].action_id in ("b", "c")

        async def use() -> None:
            async with AsyncClient(server.url) as other:
                assert (await other.put_actions("x", {}, withdraw=["a"])).withdrawn == 1
                assert (await other.catalogue("x")).size == 2
                assert (await other.decide_catalogue("x", search="approximate")).action_id in ("b", "c")

        asyncio.run(use())
