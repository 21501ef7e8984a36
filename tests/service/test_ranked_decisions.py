"""Rankings in a store: k decisions of one request, after restarts, in a replay, over HTTP and by both clients."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from fake_clocks import state_of
from servers import error_of, run_server

import latecomer as lc
from latecomer.client.aio import AsyncClient
from latecomer.errors import ConflictError, InputError
from latecomer.service.messages import RankingAnswer
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
        assert client.stats("x").rounds == 0
        answer = client.decide_ranking("x", ROWS, 3, ids=IDS)
        assert sorted({entry.index for entry in answer.ranking}) == sorted(entry.index for entry in answer.ranking)
        assert client.convert("x", answer.ranking[2].decision_id) is lc.Verdict.ACCEPTED
        among = client.decide_ranking("x", None, 2, exclude=["a"])
        assert {entry.action_id for entry in among.ranking} < {"b", "c", "d"}
        outcomes = client.decide_many("x", [{"actions": ROWS.tolist(), "k": 2}, {"actions": ROWS.tolist(), "k": 9}])
        assert isinstance(outcomes[0], RankingAnswer)
        assert len(outcomes[0].ranking) == 2
        assert isinstance(outcomes[1], InputError)

        async def rank() -> int:
            async with AsyncClient(server.url) as other:
                found = await other.decide_ranking("x", {"p": {"price": 1.0}, "q": {"price": 0.5}}, 2)
                return len(found.ranking)

        with pytest.raises(InputError):
            asyncio.run(rank())  # a bandit of two dimensions takes no features
