"""Mistakes of new users: each error says the remedy, and nothing is left behind."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.encoding.values import to_plain_actions, to_plain_features
from latecomer.errors import ConflictError, InputError, StoreError
from latecomer.service.bandit.descriptor import check_same_spec, make_descriptor, resolve_spec
from latecomer.service.bandit_spec import BanditSpec, Scale
from latecomer.service.messages import Conversion

ROWS = [[1.0, 0.0], [0.0, 1.0]]
FRAME = pd.DataFrame({"price": [12, 150], "genre": ["crime", "poetry"]})


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 3, 1),
        date(2026, 3, 1),
        timedelta(days=3),
        pd.Timestamp("2026-03-01"),
        pd.Timedelta("3d"),
        np.datetime64("2026-03-01"),
        np.timedelta64(3, "D"),
    ],
    ids=lambda moment: f"{type(moment).__module__}.{type(moment).__name__}",
)
def test_time_as_feature_value_is_refused_by_name(moment: Any) -> None:
    with pytest.raises(InputError, match=r"^action 0: 'seen' must be a number, a text.*: send hours or days"):
        to_plain_actions({"a": {"price": 1.0, "seen": moment}})


def test_missing_time_is_a_missing_value() -> None:
    nothing: Any = {"a": pd.NaT, "b": np.datetime64("NaT"), "c": np.timedelta64("NaT", "D")}
    assert to_plain_features(nothing, "context") == {"a": None, "b": None, "c": None}


def test_unusable_value_is_refused_by_name() -> None:
    wrong: Any = {"bytes": b"x", "rows": np.eye(2), "texts": ["a", 1]}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=f"^context: '{name}' must be a number, a text"):
            to_plain_features({name: value}, "context")


def test_data_frame_without_text_ids_is_refused_with_advice() -> None:
    wrong: Any = FRAME.to_dict("index")
    with pytest.raises(InputError, match=r"^actions must have texts as ids; got 0: .*frame.index.astype\(str\)"):
        to_plain_actions(wrong)
    mended: Any = FRAME.set_index(FRAME.index.astype(str)).to_dict("index")
    assert [id_ for id_, _ in to_plain_actions(mended)] == ["0", "1"]


def test_data_frame_by_columns_is_refused_with_advice() -> None:
    wrong: Any = FRAME.to_dict()
    with pytest.raises(InputError, match=r"^action 0 must have texts as names; got 0: .*to_dict\('index'\)"):
        to_plain_actions(wrong)


@pytest.mark.parametrize(
    ("requested", "differences"),
    [
        (BanditSpec(dim=2, window="7d"), "window is '2d', not '7d';"),
        (BanditSpec(dim=2, window=2), "window is '2d', not 2, grace is '1d', not None;"),
        (BanditSpec(dim=3, window="48h"), "dim is 2, not 3;"),
        (BanditSpec(dim=2, window="2d", policy="LinTS"), "policy is 'recommended', not 'LinTS';"),
        (BanditSpec(dim=2, window="2d", parameters={"ridge": 2.0}), "parameters.ridge is unset, not 2.0;"),
        (
            BanditSpec(dim=5, window="2d", features={"price": Scale(scale=9)}),
            "dim is 2, not 5, features.price is unset, not Scale(scale=9, center=0.0);",
        ),
    ],
)
def test_conflicting_specification_error_lists_differences(requested: BanditSpec, differences: str) -> None:
    mine = BanditSpec(dim=2, window="2d")
    descriptor = make_descriptor(1, "shop", resolve_spec(mine), requested=mine, stamp=0)
    check_same_spec(descriptor, mine)
    check_same_spec(descriptor, BanditSpec(dim=2, window="48h"))
    check_same_spec(descriptor, descriptor.spec)
    with pytest.raises(ConflictError) as raised:
        check_same_spec(descriptor, requested)
    assert str(raised.value).startswith(f"bandit 'shop' exists with another specification: {differences}")


TIMED: dict[str, Any] = {
    "grace": "1d",
    "returns": "90d",
    "activation_timeout": "1h",
    "parameters": {"half_life": "7d", "seed": 1},
    "challenger": {"policy": "LinTS", "parameters": {"half_life": "1w", "draws": 8}},
}


@pytest.mark.parametrize(
    "other",
    [
        {"window": "336h"},
        {"grace": timedelta(days=1)},
        {"returns": "2160 h"},
        {"activation_timeout": "60 min"},
        {"activation_timeout": timedelta(hours=1)},
        {"parameters": {"half_life": "1w", "seed": 1}},
        {"challenger": {"policy": "LinTS", "parameters": {"half_life": "168h", "draws": 8}}},
    ],
)
def test_times_are_compared_by_their_meaning(path: Path, other: dict[str, Any]) -> None:
    with lc.open(path, **{"dim": 2, "window": "2w", **TIMED}) as bandit:
        bandit.decide(np.eye(2))
    with lc.open(path, **{"dim": 2, "window": "2w", **TIMED, **other}) as bandit:
        assert bandit.stats().rounds == 1


def test_a_timeout_of_the_window_is_the_default(path: Path) -> None:
    with lc.open(path, dim=2, window="2w"):
        pass
    with lc.open(path, dim=2, window="14d", activation_timeout="2w"):
        pass


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"activation_timeout": "2h"}, "activation_timeout is '1h', not '2h'"),
        ({"activation_timeout": None}, "activation_timeout is '1h', not None"),
        ({"parameters": {"half_life": "8d", "seed": 1}}, "parameters.half_life is '7d', not '8d'"),
        ({"challenger": {"policy": "LinTS", "parameters": {"half_life": "8d", "draws": 8}}}, "challenger is"),
    ],
)
def test_other_times_are_a_conflict(path: Path, other: dict[str, Any], difference: str) -> None:
    with lc.open(path, **{"dim": 2, "window": "2w", **TIMED}):
        pass
    with pytest.raises(ConflictError, match=difference):
        lc.open(path, **{"dim": 2, "window": "2w", **TIMED, **other})


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"window": "7 days"}, "window must be"),
        ({"window": 5.5}, "window must be"),
        ({"dim": 0}, "dim must be"),
        ({"dim": np.arange(2)}, "plain numbers"),
        ({"parameters": {"ridge": {1, 2j}}}, "plain numbers"),
        ({"policy": "linucb"}, "got 'linucb'; did you mean 'LinUCB'?"),
        ({"policy": "LinUCB", "parameters": {"rigde": 1.0}}, "got 'rigde'; did you mean 'ridge'?"),
        ({"name": "a/b"}, "name must be"),
        ({"features": {"price": {"scale": 0}}}, "'price' must have a scale above 0"),
        ({"features": {"price": {"scale": 1}}}, "dim must be at least 3"),
    ],
)
def test_wrong_specification_leaves_no_file(tmp_path: Path, wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError) as raised:
        lc.open(tmp_path / "x.db", **{"dim": 2, "window": "7d", **wrong})
    assert rule in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_convert_accepts_the_answer_itself(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with lc.open(path, dim=2, window=100, policy="OTFLinUCB") as bandit:
        assert repr(bandit) == f"OpenBandit({str(path)!r}, name='default', rounds=0)"
        answer, other = bandit.decide(ROWS), bandit.decide(ROWS)
        assert bandit.convert(answer) is lc.Verdict.ACCEPTED
        assert bandit.convert(answer.decision_id) is lc.Verdict.DUPLICATE
        assert bandit.revoke(answer) is lc.Verdict.ACCEPTED
        named: Any = other
        assert bandit.convert_many([Conversion(named)]) == [lc.Verdict.ACCEPTED]
        wrong: Any
        with pytest.raises(InputError, match=r"must name its decision_id or its subject; got neither"):
            bandit.convert(None)
        for wrong in (5, answer.round, object()):
            for call in (bandit.convert, bandit.revoke):
                with pytest.raises(InputError, match=r"^decision_id must be a text, as it was given, or the answer"):
                    call(wrong)
        assert repr(bandit) == f"OpenBandit({str(path)!r}, name='default', rounds=2)"
    assert repr(bandit).endswith("rounds=2)")  # also of one that is closed


def test_unreadable_page_is_a_store_error(tmp_path: Path) -> None:
    """The answer of a repeated request is read from the log, whose pages may be damaged since the store was opened."""
    path = tmp_path / "shop.db"
    with lc.open(path, dim=2, window=100, policy="OTFLinUCB") as bandit:
        for i in range(200):
            bandit.decide(ROWS, request_id=f"r{i}")
    whole = path.read_bytes()
    with lc.open(path) as bandit:
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (len(whole) - 4096))
        with pytest.raises(StoreError, match=r"^the log is damaged: .*; restore it from a copy$"):
            bandit.decide(ROWS, request_id="r0")
        path.write_bytes(whole)


def test_keys_before_the_store_exists_are_refused_with_advice(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"

    def add(*more: str) -> tuple[str, str]:
        result = CliRunner().invoke(app, ["keys", "add", "--scope", "read", "--store", str(store), *more])
        assert result.exit_code == 0
        return result.stdout, result.stderr

    key, said = add()
    assert len(key.split()) == 1
    assert said.startswith(f"there is no store {store} yet: ")
    assert "there is no store" not in add("--keys", str(tmp_path / "keys"))[1]
    store.touch()
    assert "there is no store" not in add()[1]
