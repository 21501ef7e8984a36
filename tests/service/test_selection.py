"""Actions excluded or pinned by a request: decided among the others, answered by the request's own places."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.messages import DecisionAnswer
from latecomer.service.tools.export import export

ROWS = np.array([[0.9, 0.0], [0.0, 0.9], [0.5, 0.5], [0.1, 0.2]])
IDS = ["a", "b", "c", "d"]
SPEC: dict[str, Any] = {"dim": 2, "window": "7d", "parameters": {"seed": 5, "draws": 8, "floor": 0.2}}


def decide_both(path: Path, kept: list[int], **options: Any) -> tuple[list[DecisionAnswer], list[DecisionAnswer]]:
    """Decide with options, and among the rows that they leave."""
    with lc.open(path / "a.db", name="left-out", **SPEC) as bandit:
        found = [bandit.decide(ROWS, ids=IDS, **options) for _ in range(12)]
        fates = bandit._store.explain("left-out", found[3].decision_id)
        assert [action.action_id for action in fates.actions or []] == [IDS[place] for place in kept]
    with lc.open(path / "a.db", name="never-there", **SPEC) as bandit:
        return found, [bandit.decide(ROWS[kept], ids=[IDS[place] for place in kept]) for _ in range(12)]


@pytest.mark.parametrize(
    ("options", "kept"),
    [({"exclude": ["b", 3]}, [0, 2]), ({"exclude": []}, [0, 1, 2, 3]), ({"pin": "c"}, [2]), ({"pin": 1}, [1])],
)
def test_a_decision_is_made_among_the_remaining_actions(
    tmp_path: Path, options: dict[str, Any], kept: list[int]
) -> None:
    found, alone = decide_both(tmp_path, kept, **options)
    for one, other in zip(found, alone, strict=True):
        assert (one.index, one.action_id) == (kept[other.index], other.action_id)
        assert (one.score, one.propensity, one.round) == (other.score, other.propensity, other.round)
    if len(kept) == 1:
        assert {answer.propensity for answer in found} == {1.0}
    else:
        assert len({answer.index for answer in found}) > 1


def test_the_answer_is_repeated_with_its_place(tmp_path: Path) -> None:
    for deferred in (False, True):
        with lc.open(tmp_path / f"{deferred}.db", **SPEC) as bandit:
            options: dict[str, Any] = {"request_id": "r", "exclude": [0, 1], "deferred": deferred}
            first = bandit.decide(ROWS, ids=IDS, **options)
            assert first.index in (2, 3)
            assert first.action_id == IDS[first.index]
            assert bandit.decide(ROWS, ids=IDS, **options) == first
            with pytest.raises(ConflictError, match="another body"):
                bandit.decide(ROWS, ids=IDS, **options | {"exclude": [0]})
        with lc.open(tmp_path / f"{deferred}.db") as bandit:
            assert bandit.decide(ROWS, ids=IDS, **options) == first
            if deferred:
                assert bandit.activate(first) is lc.Verdict.ACCEPTED
            assert bandit.convert(first) is lc.Verdict.ACCEPTED
            assert bandit.stats().rounds == 1


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "all": ({"exclude": [0, 1, 2, 3]}, "exclude"),
    "beyond": ({"exclude": [4]}, "exclude"),
    "negative": ({"pin": -1}, "pin"),
    "a name": ({"exclude": ["x"]}, "exclude"),
    "a text for a list": ({"exclude": "ab"}, "exclude"),
    "a truth value": ({"pin": True}, "pin"),
    "both": ({"exclude": ["a"], "pin": 0}, "pin"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_names_its_field_and_changes_nothing(tmp_path: Path, case: str) -> None:
    options, field = BAD[case]
    with lc.open(tmp_path / "a.db", **SPEC) as bandit:
        with pytest.raises(InputError) as error:
            bandit.decide(ROWS, ids=IDS, **options)
        assert error.value.field == field
        outcome = bandit.decide_many([{"actions": ROWS, "ids": IDS, **options}, {"actions": ROWS, "pin": 2}])
        assert isinstance(outcome[0], InputError)
        assert isinstance(outcome[1], DecisionAnswer)
        assert outcome[1].index == 2
        assert bandit.stats().rounds == 1


@pytest.mark.parametrize("options", [{}, {"exclude": ["a"]}, {"pin": "a"}, {"deferred": True}, {"k": 2}])
def test_two_actions_cannot_have_one_id(path: Path, options: dict[str, Any]) -> None:
    """By its id an action is left out, pinned and limited: the second one would be chosen all the same."""
    limits = {"seed": 5, "draws": 8, "limits": {"a": {"ceiling": 0.05}}}
    with lc.open(path, name="limited", dim=2, window="7d", parameters=limits) as bandit:
        ids = ["a", "b", "c", "b"]
        with pytest.raises(InputError, match=r"ids must be different: .*; got 'b' twice") as found:
            bandit.decide(ROWS, ids=ids, **options)
        assert found.value.field == "ids"
        outcomes = bandit.decide_many([{"actions": ROWS, "ids": ids, **options}, {"actions": ROWS, "ids": IDS}])
        assert [type(outcome) for outcome in outcomes] == [InputError, DecisionAnswer]
        assert bandit.stats().rounds == 1


def test_features_are_left_out_with_their_actions(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", dim=8, window=50, parameters={"seed": 0}) as bandit:
        actions = {"red": {"price": 0.1}, "blue": {"price": 0.2}, "green": {"price": 0.3}}
        found = {bandit.decide_features(actions, exclude=["blue"]).action_id for _ in range(20)}
        assert found == {"red", "green"}
        assert bandit.decide_features(actions, pin="blue").index == 1


@pytest.mark.parametrize("policy", ["OTFLinTS", "WaitingLinTS", "ImputedLinTS", "LogisticLinTS"])
def test_a_pinned_action_has_propensity_1_where_others_have_none(tmp_path: Path, policy: str) -> None:
    """Also in a batch, where decisions are made in columns."""
    with lc.open(tmp_path / "a.db", dim=2, window="7d", policy=policy, parameters={"seed": 1}) as bandit:
        assert bandit.decide(ROWS, ids=IDS, pin="b").propensity == 1.0
        assert bandit.decide(ROWS, ids=IDS, pin="b", deferred=True).propensity == 1.0
        requests = [{"actions": ROWS, **({"pin": 1} if i % 2 else {})} for i in range(12)]
        answers: Any = bandit.decide_many(requests)
        assert [answer.propensity for answer in answers] == [None, 1.0] * 6
    table = next(frame for kind, frame in export(tmp_path / "a.db", "default") if kind == "decisions")
    assert table["propensity"].to_list() == [1.0, *[None, 1.0] * 6]
