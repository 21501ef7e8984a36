"""Conversions that name a subject: the decisions that they are credited to, in the library."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.policies.base.subjects import SubjectTable, digest_subject

OFFERS = np.eye(2)


def make(attribution: Any, **more: Any) -> Any:
    policy = lc.OTFLinUCB(2, "10s", grace="5s", attribution=attribution, **more)
    for at, subject in ((0.0, "ann"), (1.0, "bob"), (2.0, "ann")):
        policy.decide(OFFERS, at=at, subject=subject)
    return policy


@pytest.mark.parametrize(("attribution", "rounds"), [("last", [3]), ("first", [1]), ("all", [1, 3])])
def test_a_conversion_is_credited_to_the_decisions_in_whose_window_it_occurred(
    attribution: str, rounds: list[int], tmp_path: Path
) -> None:
    policy = make(attribution)
    assert policy.attribute("ann", at=3.0) == rounds
    assert policy.attribute("ann", at=1.5) == [1], "the other came later"
    assert policy.attribute("ann", at=11.0) == [3], "the first has closed"
    assert policy.attribute("ann", at=14.0) == [3], "all have closed: it is late"
    assert policy.attribute("zoe", at=3.0) == []
    policy.save(tmp_path / "policy")
    loaded: Any = lc.load(tmp_path / "policy")
    for one in (policy, loaded):
        assert one.convert(subject="ann", value=0.5, at=14.0) is lc.Verdict.LATE
        assert one.convert(subject="ann", value=0.5, at=3.0) is lc.Verdict.ACCEPTED
        assert one.convert(subject="ann", at=3.0) is lc.Verdict.DUPLICATE
        assert one.convert(subject="zoe", at=3.0) is lc.Verdict.UNKNOWN
        assert one.state.number("credited") == 0.5 * len(rounds)


def test_windows_in_rounds_go_by_rounds() -> None:
    policy = lc.recommended(2, 2, seed=0)
    for subject in ("ann", "bob", "bob", "bob"):
        policy.decide(OFFERS, subject=subject)
    assert policy.attribute("bob") == [4]
    assert policy.attribute("ann") == [], "its round is forgotten"
    assert policy.convert(subject="bob") is lc.Verdict.ACCEPTED


def test_memory_is_bounded_by_the_window() -> None:
    table = SubjectTable()
    for round_ in range(1, 10_001):
        table.add(digest_subject(str(round_)), round_, kept=round_ - 100)
    assert len(table._rounds) <= 1025
    assert len(table.arrays(9_901)["subjects/rounds"]) == 100


@pytest.mark.parametrize("given", [{}, {"decision": 1, "subject": "ann"}, {"subject": ""}, {"subject": 5}])
def test_bad_targets_are_refused(given: dict[str, Any]) -> None:
    policy = make("last")
    with pytest.raises(InputError) as caught:
        policy.convert(**given)
    assert caught.value.field == "subject"
    with pytest.raises(InputError, match="attribution must be"):
        lc.OTFLinUCB(2, 5, attribution="any")  # type: ignore[arg-type]
    assert policy.state.number("credited") == 0.0
