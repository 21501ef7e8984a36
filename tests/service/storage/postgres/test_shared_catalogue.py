"""A catalogue, rankings, stages, exclusions and limits on a database that processes share."""

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.messages import RankingAnswer
from latecomer.service.tools.replay import open_for_replay, replay
from latecomer.service.tools.verify import verify

VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.6, 0.8]}
ROWS = np.array(list(VECTORS.values()))


def test_processes_share_a_catalogue_and_rankings(database: str) -> None:
    with (
        lc.open(database, dim=2, window=20, policy="OTFLinTS", parameters={"draws": 8}) as first,
        lc.open(database) as second,
    ):
        assert first.put_actions(VECTORS).version == 1
        assert second.put_actions({"d": [0.0, -1.0]}, withdraw=["a"]).version == 2
        made = [first.decide_catalogue(exclude=["b"]) for _ in range(6)]
        assert {answer.action_id for answer in made} <= {"c", "d"}
        (ranked,) = found = second.decide_many([{"k": 3}])
        assert isinstance(ranked, RankingAnswer), found
        assert sorted(str(entry.action_id) for entry in ranked.ranking) == ["b", "c", "d"]
        assert [entry.propensity for entry in ranked.ranking] == pytest.approx([1.0] * 3)
        assert first.convert(ranked.ranking[2].decision_id) is lc.Verdict.ACCEPTED
        assert second.convert(ranked.ranking[2].decision_id) is lc.Verdict.DUPLICATE
        assert second.stage(made[0], "click") == "accepted"
        assert first.stage(made[0], "click") == "duplicate"
        assert first.decide(ROWS, exclude=[0, 1]).index == 2
        assert second.decide(ROWS, pin=1).index == 1
        with pytest.raises(InputError, match="candidates must be in the catalogue"):
            second.decide_catalogue(candidates=["a"])
        assert first.stats() == second.stats()
        assert first.stats().rounds == 6 + 3 + 2
    assert any(line.startswith("default: rows 1") for line in verify(database))
    with open_for_replay(database) as store:
        again = replay(store, "default", "again", window=30)
        assert (again.rounds, again.conversions["accepted"], again.stages["click"].decisions) == (11, 1, 1)


def test_processes_share_limits(database: str) -> None:
    parameters = {"limits": {"b": {"floor": 1.0}}}
    with lc.open(database, dim=2, window=20, policy="LinUCB", parameters=parameters) as shop:
        assert shop.decide(ROWS, ids=["a", "b", "c"]).action_id == "b"
        shop.put_actions(VECTORS)
        assert shop.decide_catalogue().action_id == "b"
