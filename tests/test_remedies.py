"""Mistakes of a first day: each error names the rule, what was given, and what to do."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import ClockError, DamagedFileError, FileError, InputError
from latecomer.simulation.result import Result

ACTIONS = np.eye(2)


@pytest.fixture(scope="module")
def result() -> Result:
    world = lc.World(theta=[0.5, 0.5], actions=lc.actions.Binary(3), delays=lc.delays.Geometric(mean=5))
    return lc.simulate(world, {"any": lc.Uniform(2, 5)}, horizon=10, runs=2, progress=False)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("given", "name"), [(None, "None"), ({"a": [0.5, 0.5]}, "a dict")])
def test_actions_that_are_no_array_are_named(given: Any, name: str, k: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"k": k} if k > 1 else {}
    with pytest.raises(InputError, match=rf"actions must be a \(K, 2\) array of numbers; got {name}"):
        lc.OTFLinUCB(2, 5).decide(given, **options)
    with lc.open(tmp_path / "a.db", dim=2, window=5) as bandit, pytest.raises(InputError, match=f"got {name}"):
        bandit.decide(given, **options)


@pytest.mark.parametrize(
    ("make", "given", "said"),
    [
        (lc.recommended, {"exploration": 3.0}, r"recommended\(\) chooses exploration itself: use MaturedLinTS"),
        (lc.recommended, {"flor": 0.1}, r"MaturedLinTS\(\) has no parameter 'flor'; did you mean 'floor'\?"),
        (lc.OTFLinUCB, {"widht": "tight"}, r"OTFLinUCB\(\) has no parameter 'widht'; did you mean 'width'\?"),
        (lc.Greedy, {"colour": 1}, r"Greedy\(\) has no parameter 'colour'$"),
    ],
)
def test_a_parameter_that_a_policy_does_not_take_is_named(
    make: Callable[..., object], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        make(2, 5, **given)


def test_a_time_long_ago_is_told_in_days() -> None:
    policy = lc.OTFLinUCB(2, "7d")
    policy.decide(ACTIONS, at=datetime(2026, 11, 19, tzinfo=UTC))
    with pytest.raises(ClockError, match=r"the window, 7 d; got a time 20,776 d before the latest decision, round 1"):
        policy.decide(ACTIONS, at=0)


def test_a_policy_that_is_not_there_is_an_error_of_the_path(tmp_path: Path) -> None:
    for path in (tmp_path / "nope", tmp_path):
        with pytest.raises(InputError, match=f"saved policy; got '{path}' .*: check the path"):
            lc.load(path)


def test_a_result_is_written_as_what_its_name_says(result: Result, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end with \.parquet; got '.*x\.xlsx'"):
        result.write(tmp_path / "x.xlsx")
    assert not list(tmp_path.iterdir())
    for round_ in (0, 11):
        with pytest.raises(InputError, match=f"rounds must be from 1 to the horizon, 10; got {round_}"):
            result.regret_by_round([1, round_])


@pytest.mark.parametrize("contents", [b"print('hello')\n" * 99, b"ts,action\n1,a\n", b"SQLite format 3\0" + b"\0" * 99])
def test_another_file_is_no_store_and_gets_no_lock(contents: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(contents)
    with pytest.raises(DamagedFileError, match=f"{path} is not a Latecomer store: check the path"):
        lc.open(path, dim=2, window=5)
    with pytest.raises(DamagedFileError, match=f"{path} is not a Latecomer store: check the path"):
        lc.open(path)
    assert [found.name for found in tmp_path.iterdir()] == ["other"]
    assert path.read_bytes() == contents


def test_a_store_whose_beginning_is_lost_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    lc.open(path, dim=2, window=5).close()
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])
    with pytest.raises(DamagedFileError, match=r"is damaged: .*; restore it from a copy"):
        lc.open(path)


@pytest.mark.parametrize("more", [{}, {"dim": 2, "window": 5}])
def test_a_folder_that_is_missing_is_named(more: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FileError, match=f"there is no folder {tmp_path / 'none'}: make it, or check the path"):
        lc.open(tmp_path / "none" / "a.db", **more)
