"""Catalogues, rankings, exclusions, pins and stages on PostgreSQL: what one process does, the others know."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replicas import run_replicas

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.store import Store
from latecomer.service.tools.copy_store import copy_store
from latecomer.service.tools.replay import open_for_replay, replay
from latecomer.service.tools.verify import verify

VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.6, 0.8]}
ROWS, IDS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.5, 0.5]]), ["a", "b", "c", "d"]


def test_processes_share_a_catalogue(database: str, tmp_path: Path) -> None:
    with lc.open(database, dim=2, window="7d") as first, lc.open(database) as second:
        assert first.put_actions(VECTORS).version == 1
        assert (second.catalogue().version, second.catalogue().size) == (1, 3)
        picked = second.decide_catalogue(exclude=["a"], request_id="x")
        assert picked.action_id in ("b", "c")
        assert second.put_actions({"d": [0.0, -1.0]}, withdraw=["a"]).version == 2
        assert first.decide_catalogue(exclude=["a"], request_id="x") == picked
        with pytest.raises(ConflictError):
            first.decide_catalogue(candidates=["b"], request_id="x")
        assert first.decide_catalogue(candidates=["d"]).action_id == "d"
        with pytest.raises(InputError, match="'a'"):
            first.decide_catalogue(candidates=["a"])
        ranking = second.decide_ranking(None, 2, request_id="both")
        assert first.decide_ranking(None, 2, request_id="both") == ranking
        assert first.convert(ranking.ranking[1].decision_id) is lc.Verdict.ACCEPTED
        assert second.stats() == first.stats()
        state = first._store.read_bandit("default").policy.V.tobytes()
    check_copies(database, tmp_path, state)


def test_processes_share_rankings_stages_exclusions_and_pins(database: str, tmp_path: Path) -> None:
    with lc.open(database, dim=2, window="7d") as first, lc.open(database) as second:
        first.decide(ROWS, ids=IDS)
        options: dict[str, Any] = {
            "ids": IDS,
            "request_id": "x",
            "exclude": ["b"],
            "examination": [1.0, 0.5],
            "subject": "ann",
        }
        answer = first.decide_ranking(ROWS, 2, **options)
        assert [entry.round for entry in answer.ranking] == [2, 3]
        assert "b" not in [entry.action_id for entry in answer.ranking]
        assert second.decide_ranking(ROWS, 2, **options) == answer
        with pytest.raises(ConflictError):
            second.decide_ranking(ROWS, **options | {"k": 3, "examination": None})
        pinned = second.decide(ROWS, ids=IDS, pin="c", request_id="p")
        assert (pinned.action_id, pinned.round) == ("c", 4)
        assert first.decide(ROWS, ids=IDS, pin="c", request_id="p") == pinned
        assert second.stage(answer.ranking[1].decision_id, "click") is lc.Verdict.ACCEPTED
        assert first.stage(answer.ranking[1].decision_id, "click") is lc.Verdict.DUPLICATE
        assert first.stage(pinned, "cart") is lc.Verdict.ACCEPTED
        assert second.convert(answer.ranking[1].decision_id) is lc.Verdict.ACCEPTED
        assert first.convert(answer.ranking[1].decision_id) is lc.Verdict.DUPLICATE
        assert first.stats() == second.stats()
        assert {name: found.decisions for name, found in first.stats().stages.items()} == {"click": 1, "cart": 1}
        state = first._store.read_bandit("default").policy.V.tobytes()
        scaled = 0.5 * ROWS[answer.ranking[1].index]
        np.testing.assert_allclose(first._store.read_bandit("default").policy.B, scaled, atol=1e-12)
    with lc.open(database) as third:
        assert third.decide_ranking(ROWS, 2, **options) == answer
    check_copies(database, tmp_path, state)


def test_a_server_and_a_process_share_selections(database: str, tmp_path: Path) -> None:
    with (
        run_replicas(database, tmp_path, 1) as (replica,),
        replica.client() as client,
        lc.open(database, name="shop", dim=2, window="7d") as bandit,
    ):
        assert client.put_actions("shop", VECTORS).size == 3
        assert bandit.catalogue() == client.catalogue("shop")
        picked = client.decide_catalogue("shop", candidates=["b", "c"], request_id="x")
        assert bandit.decide_catalogue(candidates=["b", "c"], request_id="x") == picked
        ranking = bandit.decide_ranking(ROWS, 2, ids=IDS, request_id="y")
        assert client.decide_ranking("shop", ROWS, 2, ids=IDS, request_id="y") == ranking
        assert client.decide("shop", ROWS, ids=IDS, exclude=["a", "b", "d"]).action_id == "c"
        assert client.stage("shop", ranking.ranking[1].decision_id, "click") is lc.Verdict.ACCEPTED
        assert bandit.stage(ranking.ranking[1].decision_id, "click") is lc.Verdict.DUPLICATE
        assert client.stats("shop") == bandit.stats()


def check_copies(database: str, folder: Path, state: bytes) -> None:
    """Check that a replay, a copy and whoever opens the database anew have the state, and that the log is whole."""
    with lc.open(database) as opened:
        assert opened._store.read_bandit("default").policy.V.tobytes() == state
    with open_for_replay(database) as shared:
        replay(shared, "default", "again")
    assert len(list(verify(database))) == 3
    copy_store(database, folder / "copy.db")
    with Store.open(folder / "copy.db") as store:
        for name in ("default", "again"):
            assert store.registry.bandits[name].policy.V.tobytes() == state
