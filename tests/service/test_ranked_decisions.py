"""Rankings in a store: k decisions of one request, after restarts, in a replay, over HTTP and by both clients."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fake_clocks import state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.client.aio import AsyncClient
from latecomer.errors import ConflictError, InputError
from latecomer.policies.recommended import PROPENSITIES
from latecomer.service.bandit.events import Payload
from latecomer.service.messages import RankingAnswer
from latecomer.service.storage.rows import GENESIS, read_rows
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.5, 0.5]])
IDS = ["a", "b", "c", "d"]


def test_a_ranking_survives_a_restart_a_replay_and_is_repeated(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with lc.open(path, dim=2, window="7d") as bandit:
        bandit.decide(ROWS, ids=IDS)
        options = {"ids": IDS, "request_id": "x", "exclude": ["b"], "examination": [1.0, 0.5], "subject": "ann"}
        answer = bandit.decide_ranking(ROWS, 2, **options)
        assert [entry.position for entry in answer.ranking] == [1, 2]
        assert [entry.round for entry in answer.ranking] == [2, 3]
        assert [entry.action_id for entry in answer.ranking] == [IDS[entry.index] for entry in answer.ranking]
        assert "b" not in [entry.action_id for entry in answer.ranking]
        assert (answer.decision_id, answer.index) == (answer.ranking[0].decision_id, answer.ranking[0].index)
        assert 0.0 < (answer.propensity or 0.0) <= (answer.ranking[0].propensity or 0.0) <= 1.0
        assert bandit.decide_ranking(ROWS, 2, **options) == answer
        for changed in ({"k": 3, "examination": None}, {"k": 2, "examination": [1.0, 0.4]}):
            with pytest.raises(ConflictError):
                bandit.decide_ranking(ROWS, **({"k": 2} | options | changed))
        assert bandit.convert(answer.ranking[1].decision_id) is lc.Verdict.ACCEPTED
        assert bandit.convert(answer.ranking[1].decision_id) is lc.Verdict.DUPLICATE
        assert bandit.stats().rounds == 3
        found = bandit.explain(answer.ranking[1].decision_id)
        assert [action.action_id for action in found.actions if action.is_chosen] == [answer.ranking[1].action_id]
        scaled = 0.5 * ROWS[answer.ranking[1].index]
        np.testing.assert_allclose(bandit._store.read_bandit("default").policy.B, scaled, atol=1e-12)
        before = state_of(bandit._store, "default")  # type: ignore[arg-type]
    assert len(list(verify(path))) > 1
    with Store.open(path) as store:
        assert state_of(store, "default") == before
        replay(store, "default", "again", window="3d")
        twin, first = (store.registry.bandits[name].policy for name in ("again", "default"))
        assert twin.V.tobytes() == first.V.tobytes()
    with lc.open(path) as bandit:
        assert bandit.decide_ranking(ROWS, 2, **options) == answer


def test_k_of_a_decision_is_a_ranking_in_a_store_as_over_http(tmp_path: Path) -> None:
    """The same seed gives the same ranking by `decide` and `decide_ranking` of `lc.open`, over HTTP, in the library."""
    spec: dict[str, Any] = {"dim": 2, "window": 100, "parameters": {"seed": 3}}
    catalogue = dict(zip(IDS, ROWS, strict=True))
    found, logs = [], []
    for name in ("a.db", "b.db"):
        with lc.open(tmp_path / name, **spec) as bandit:
            bandit.put_actions(catalogue)
            decide: Any = bandit.decide if name == "a.db" else bandit.decide_ranking
            first = decide(ROWS, k=2, ids=IDS, examination=[1.0, 0.5])
            second = bandit.decide_catalogue(k=3) if name == "a.db" else bandit.decide_ranking(None, 3)
            assert isinstance(second, RankingAnswer)
            assert not isinstance(bandit.decide(ROWS), RankingAnswer)
            found.append([_describe(first), _describe(second)])
            with pytest.raises(InputError, match="k must be at most") as refused:
                bandit.decide(ROWS, k=5)
            assert refused.value.field == "k"
        logs.append(_read_kinds(tmp_path / name))
    assert logs[0] == logs[1]
    with run_server(tmp_path / "c.db") as server:
        server.http.put("/v1/bandits/x", json=spec).raise_for_status()
        put = [{"id": id_, "vector": row.tolist()} for id_, row in catalogue.items()]
        server.http.put("/v1/bandits/x/actions", json={"actions": put}).raise_for_status()
        bodies = {"actions": ROWS.tolist(), "ids": IDS, "k": 2, "examination": [1.0, 0.5]}, {"k": 3}
        answers = [server.http.post("/v1/bandits/x/decisions", json=body).content for body in bodies]
        found.append([_describe(msgspec.json.decode(answer, type=RankingAnswer)) for answer in answers])
    assert found[0] == found[1] == found[2]
    propensities: Any = PROPENSITIES
    ranked: Any = lc.recommended(2, 100, seed=3, **propensities).decide(ROWS, k=2, examination=[1.0, 0.5])
    assert [entry[0] for entry in found[0][0]] == list(ranked.indices)
    assert [entry[2] for entry in found[0][0]] == list(ranked.propensities)


def _describe(answer: RankingAnswer) -> list[tuple[int, str | None, float | None]]:
    return [(entry.index, entry.action_id, entry.propensity) for entry in answer.ranking]


def _read_kinds(path: Path) -> list[int]:
    """Return the kinds of all events of the log."""
    connection = connect(path, write=False)
    payloads = [row.payload for row in read_rows(connection, 1, after=0, parent=GENESIS)]
    connection.close()
    return [int(kind) for payload in payloads for kind in Payload(payload, 2).kinds]


def test_bad_rankings_change_nothing_over_http_and_clients_rank(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        client.create("x", dim=2, window="1d")
        client.put_actions("x", dict(zip(IDS, ROWS, strict=True)))
        for body, field in (
            ({"actions": ROWS.tolist(), "k": 5}, "k"),
            ({"actions": ROWS.tolist(), "k": 0}, "k"),
            ({"actions": ROWS.tolist(), "k": 2, "examination": [1.0]}, "examination"),
            ({"actions": ROWS.tolist(), "k": 2, "examination": [1.0, 2.0]}, "examination"),
            ({"actions": ROWS.tolist(), "k": 2, "deferred": True}, "deferred"),
            ({"k": 5}, "k"),
        ):
            bad = server.http.post("/v1/bandits/x/decisions", json=body)
            assert (bad.status_code, error_of(bad)["field"]) == (400, field), body
        client.create("capped", dim=2, window="1d", parameters={"ceiling": 0.6})
        bad = server.http.post("/v1/bandits/capped/decisions", json={"actions": ROWS.tolist(), "k": 2})
        assert (bad.status_code, error_of(bad)["field"]) == (400, "k")
        assert client.stats("capped").rounds == client.stats("x").rounds == 0
        answer = client.decide_ranking("x", ROWS, 3, ids=IDS)
        assert sorted({entry.index for entry in answer.ranking}) == sorted(entry.index for entry in answer.ranking)
        assert client.convert("x", answer.ranking[2].decision_id) is lc.Verdict.ACCEPTED
        among = client.decide_ranking("x", None, 2, exclude=["a"])
        assert {entry.action_id for entry in among.ranking} < {"b", "c", "d"}
        features = {"p": {"price": 1.0}, "q": {"price": 0.5}, "r": {"price": 0.1}}
        client.create("named", dim=8, window="1d", features={"price": {"scale": 1}})
        answers: list[Any] = [
            client.decide("x", ROWS, k=2),
            client.decide("x", ROWS.tolist(), ids=IDS, k=2, examination=[1.0, 0.5]),
            client.decide("x", ROWS, examination=[0.5]),
            client.decide_catalogue("x", k=3, exclude=["a"]),
            client.decide_features("named", features, k=2),
        ]
        assert all(isinstance(answer, RankingAnswer) for answer in answers)
        assert [len(answer.ranking) for answer in answers] == [2, 2, 1, 3, 2]
        assert not isinstance(client.decide("x", ROWS, k=1), RankingAnswer)
        with pytest.raises(InputError, match="k must be at most 4"):
            client.decide("x", ROWS, k=5)
        outcomes = client.decide_many("x", [{"actions": ROWS.tolist(), "k": 2}, {"actions": ROWS.tolist(), "k": 9}])
        assert isinstance(outcomes[0], RankingAnswer)
        assert len(outcomes[0].ranking) == 2
        assert isinstance(outcomes[1], InputError)

        async def rank() -> int:
            async with AsyncClient(server.url) as other:
                ranked: Any = [await other.decide("x", ROWS, k=2), await other.decide_catalogue("x", k=2)]
                ranked.append(await other.decide_features("named", features, k=2))
                assert [len(answer.ranking) for answer in ranked] == [2, 2, 2]
                found = await other.decide_ranking("x", {"p": {"price": 1.0}, "q": {"price": 0.5}}, 2)
                return len(found.ranking)

        with pytest.raises(InputError):
            asyncio.run(rank())  # a bandit of two dimensions takes no features
