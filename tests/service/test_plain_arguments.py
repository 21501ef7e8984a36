"""NumPy's numbers, texts of a subclass and truth values as arguments: taken as Python's own, or refused at once."""

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from store_internals import sqlite_log

import latecomer as lc
from latecomer.errors import InputError, StoreError
from latecomer.service.messages import RankingAnswer
from latecomer.service.tools.verify import verify

ROWS = np.eye(2)
TEXT = np.str_


class Colour(str, enum.Enum):  # noqa: UP042 - the str() of a StrEnum is its text
    """Texts that are members of an enumeration."""

    RED = "red"


def put_two(bandit: Any) -> object:
    return bandit.put_actions({TEXT("a"): [1, 0], Colour.RED: [0, 1]}, withdraw=[TEXT("b")], replace=np.True_)


CALLS: dict[str, Callable[[Any], object]] = {
    "k": lambda bandit: bandit.decide(ROWS, k=np.int64(2)),
    "k of 1": lambda bandit: bandit.decide(ROWS, k=np.int8(1)),
    "a ranking": lambda bandit: bandit.decide_ranking(ROWS, np.int64(2), examination=[np.float32(1), np.float64(0.5)]),
    "k in a batch": lambda bandit: bandit.decide_many([{"actions": ROWS, "k": np.int64(2)}, {"actions": ROWS}]),
    "k of a catalogue": lambda bandit: (put_two(bandit), bandit.decide_catalogue(k=np.int32(2))),
    "ids": lambda bandit: bandit.decide(ROWS, ids=[TEXT("a"), Colour.RED]),
    "deferred": lambda bandit: bandit.activate(
        bandit.decide(ROWS, ids=[TEXT("a"), Colour.RED], deferred=np.True_, request_id=TEXT("r"), subject=TEXT("u"))
    ),
    "exclude": lambda bandit: bandit.decide(ROWS, exclude=[np.int64(1)], request_id=TEXT("r")),
    "pin": lambda bandit: bandit.decide(ROWS, ids=["a", "red"], pin=TEXT("a"), exclude={np.int8(1)}),
    "a pinned index": lambda bandit: bandit.decide(ROWS, pin=np.int64(1)),
    "candidates": lambda bandit: (
        put_two(bandit),
        bandit.decide_catalogue(candidates=[Colour.RED], search=TEXT("exact")),
    ),
    "left out of a catalogue": lambda bandit: (put_two(bandit), bandit.decide_catalogue(exclude=[TEXT("a")])),
    "withdrawn": lambda bandit: (put_two(bandit), bandit.put_actions(withdraw=[TEXT("a")])),
    "a stage": lambda bandit: bandit.stage(bandit.decide(ROWS), TEXT("click"), occurred_at=np.datetime64("now")),
    "a conversion": lambda bandit: bandit.convert(
        TEXT(bandit.decide(ROWS).decision_id), value=np.float16(0.5), conversion_id=TEXT("c")
    ),
    "a revocation": lambda bandit: bandit.revoke(TEXT(bandit.decide(ROWS).decision_id), conversion_id=TEXT("c")),
    "a subject": lambda bandit: (bandit.decide(ROWS, subject=TEXT("u")), bandit.convert(subject=Colour.RED)),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_store_stays_whole(path: Path, case: str) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        CALLS[case](bandit)
        rounds = bandit.decide(ROWS).round
    with lc.open(path) as bandit:
        assert bandit.stats().rounds == rounds
        assert bandit.decide(ROWS).round == rounds + 1
    assert len(list(verify(path))) == 2  # it raises where a row is damaged


def test_features_stay_whole(path: Path) -> None:
    spec: dict[str, Any] = {"dim": np.int64(8), "window": TEXT("7d"), "name": TEXT("b")}
    spec["features"] = {TEXT("price"): {"scale": np.float32(200)}}
    with lc.open(path, **spec) as bandit:
        answer = bandit.decide_features({TEXT("a"): {TEXT("price"): np.int64(5), "colour": Colour.RED}})
        assert answer.action_id == "a"
        explained = bandit.explain(TEXT(answer.decision_id)).actions
        assert explained is not None
        assert explained[0].features == {"price": 5.0, "colour": "red"}
    with lc.open(path, name="b") as bandit:
        assert bandit.stats().rounds == 1


def test_the_id_of_an_import_is_its_text(path: Path) -> None:
    table = {"decided_at": [0.0, 1.0], "action": ["a", "b"], "propensity": [0.5, 0.5], "converted_at": [None, 2.0]}
    log = lc.read_log(pl.DataFrame(table))
    with lc.open(path, dim=2, window="7d") as bandit:
        assert bandit.import_log(log, import_id=TEXT("x")).known == 0
        assert bandit.import_log(log, import_id="x").known == 2


def test_a_store_is_frozen_by_a_truth_value_alone(path: Path) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        frozen: Any = np.True_
        bandit._store.freeze("default", frozen)
        wrong: Any = "no"
        with pytest.raises(InputError, match="frozen must be True or False"):
            bandit._store.freeze("default", wrong)
        assert bandit.stats().frozen


def test_members_of_an_enumeration_are_their_texts(path: Path) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        assert bandit.decide(ROWS, ids=[Colour.RED, "blue"], pin=0).action_id == "red"


def test_a_ranking_of_one_is_a_plain_decision(path: Path) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        one: Any = np.int64(1)
        assert not isinstance(bandit.decide(ROWS, k=one), RankingAnswer)


SPECS: dict[str, dict[str, Any]] = {
    "rounds": {"window": np.int64(9), "activation_timeout": np.int64(5), "returns": np.int64(9)},
    "a policy": {"policy": TEXT("OTFLinUCB"), "parameters": {TEXT("exploration"): np.float32(0.5)}},
    "stages": {"parameters": {"seed": np.int64(1), "stages": [TEXT("click")]}},
    "a reward": {"reward": {"scale": np.int64(200), "unit": TEXT("EUR")}},
    "a challenger": {"challenger": {"policy": TEXT("Uniform"), "share": np.float64(0.5)}},
    "others": {"attribution": TEXT("first"), "grace": TEXT("1d"), "log_offers": np.False_, "retention": TEXT("7d")},
}


@pytest.mark.parametrize("case", SPECS)
def test_a_specification_is_kept_as_plain_numbers_and_texts(path: Path, case: str) -> None:
    with lc.open(path, **{"dim": 2, "window": "7d", **SPECS[case]}) as bandit:
        bandit.decide(ROWS)
    with lc.open(path, **{"dim": 2, "window": "7d", **SPECS[case]}) as bandit:
        assert bandit.stats().rounds == 1


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda bandit: bandit.decide(ROWS, deferred="no"), "deferred"),
        (lambda bandit: bandit.decide(ROWS, k=True), "k"),
        (lambda bandit: bandit.decide(ROWS, k=2.0), "k"),
        (lambda bandit: bandit.decide(ROWS, pin=np.True_), "pin"),
        (lambda bandit: bandit.put_actions({"a": [1, 0]}, replace="no"), "replace"),
        (lambda bandit: bandit.convert_many(5), "conversions"),
        (lambda bandit: bandit.convert_many({"a": 1}), "conversions"),
        (lambda bandit: bandit.convert_many([lc.Conversion("x"), 5]), "[1]"),
        (lambda bandit: bandit.decide_many(5), "requests"),
        (lambda bandit: bandit.decide_many({"actions": ROWS}), "requests"),
    ],
)
def test_a_wrong_kind_names_its_field_and_changes_nothing(
    path: Path, call: Callable[[Any], object], field: str
) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        with pytest.raises(InputError, match="must") as found:
            call(bandit)
        assert found.value.field == field
        assert bandit.decide(ROWS).round == 1


@pytest.mark.parametrize("name", ["returns", "activation_timeout"])
def test_a_negative_time_is_named(path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be at least 0") as found:
        lc.open(path, dim=2, window="7d", **{name: -1})  # type: ignore[arg-type]
    assert found.value.field == name
    assert not path.exists()


@pytest.mark.parametrize("name", ["create", "log_offers"])
def test_a_text_is_no_truth_value(path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be True or False; got 'no'"):
        lc.open(path, dim=2, window="7d", **{name: "no"})  # type: ignore[arg-type]
    assert not path.exists()


def test_conversions_may_be_made_one_by_one(path: Path) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        ids = [bandit.decide(ROWS).decision_id for _ in range(3)]
        verdicts = bandit.convert_many(lc.Conversion(id_) for id_ in ids)
        assert verdicts == [lc.Verdict.ACCEPTED] * 3


def test_a_row_that_could_not_be_read_again_is_never_written(path: Path) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        bandit.decide(ROWS)
        writer = sqlite_log(bandit._store).writer
        wrong: tuple[dict[str, Any], ...] = ({"count": np.int64(1)}, {"rounds": np.int64(2)}, {"stamp": 1.0})
        for numbers in wrong:
            with pytest.raises(TypeError, match="must be of type int"):
                writer.append(1, b"", **({"count": 1, "rounds": 2, "stamp": 1} | numbers))
    with lc.open(path) as bandit:
        assert bandit.stats().rounds == 1


def test_a_change_whose_row_is_refused_stops_the_store_and_not_the_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lc.open(path, dim=2, window="7d") as bandit:
        kept = bandit.decide(ROWS)
        writer = sqlite_log(bandit._store).writer
        append: Any = writer.append
        monkeypatch.setattr(
            writer, "append", lambda *given, count, **rest: append(*given, count=np.int64(count), **rest)
        )
        with pytest.raises(TypeError, match="must be of type int"):
            bandit.decide(ROWS)
        with pytest.raises(StoreError, match="open the store again"):
            bandit.decide(ROWS)
    with lc.open(path) as bandit:
        assert bandit.convert(kept) is lc.Verdict.ACCEPTED
