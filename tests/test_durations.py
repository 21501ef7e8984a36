"""Spans of time that come in: "7d", timedelta, NumPy's and pandas' own."""

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import latecomer as lc
from latecomer.durations import format_duration, parse_duration, parse_window
from latecomer.errors import InputError
from latecomer.experiments.window.grid import LADDER

WEEK = timedelta(days=7)


@pytest.mark.parametrize(
    "window",
    [
        WEEK,
        "7d",
        "7 d",
        "10080 min",
        "10080m",
        "1w",
        "168h",
        "604800s",
        np.timedelta64(7, "D"),
        np.timedelta64(1, "W"),
        np.timedelta64(7 * 86_400 * 10**9, "ns"),
        pd.Timedelta("7D"),
        pd.Timedelta("7D").to_timedelta64(),
    ],
    ids=repr,
)
def test_parse_window_reads_a_week_in_every_form(window: Any) -> None:
    found = parse_window(window)
    assert (found, type(found)) == (WEEK, timedelta)
    policy = lc.OTFLinUCB(2, window)
    assert policy.window == lc.recommended(5, window).window == WEEK
    assert policy.decide(np.eye(2), at=0.0).round == 1


def test_parse_window_takes_whole_rounds() -> None:
    assert parse_window(500) == parse_window(np.int32(500)) == 500  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("7 days", "window must be a whole number and one of s, m, min, h, d, w, such as 7d; got '7 days'"),
        ("500", "window must be a whole number and one of s, m, min, h, d, w, such as 7d; got '500'"),
        ("7  d", "window must be a whole number and one of s, m, min, h, d, w, such as 7d; got '7  d'"),
        ("7D", "window must be a whole number and one of s, m, min, h, d, w, such as 7d; got '7D'"),
        ("40000d", "window must be at most 36500d; got '40000d'"),
        (np.timedelta64("NaT"), "window must be a time of a known length, such as 7d; got"),
        (np.timedelta64(7), "window must be a time of a known length, such as 7d; got"),
        (np.timedelta64(1, "M"), "window must be a time of a known length, such as 7d; got"),
        (np.timedelta64(2**62, "s"), "window must be a time of a known length, such as 7d; got"),
        (pd.NaT, "window must be a number of rounds (an int), or a time such as '7d' or a timedelta; got NaT"),
        (-WEEK, "window must not be negative; got"),
        (np.timedelta64(-1, "s"), "window must not be negative; got"),
        (True, "window must be a number of rounds (an int), or a time such as '7d' or a timedelta; got True"),
        (7.0, "window must be a number of rounds (an int), or a time such as '7d' or a timedelta; got 7.0"),
        (-1, "window must be at least 0"),
    ],
)
def test_parse_window_refuses_what_is_no_window(window: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        lc.recommended(5, window)
    assert str(caught.value).startswith(message)


def test_a_window_that_the_advice_names_can_be_given_back() -> None:
    for seconds in LADDER.tolist():
        assert parse_window(format_duration(seconds)) == timedelta(seconds=seconds)


def test_parse_duration_names_the_argument() -> None:
    with pytest.raises(InputError, match=r"^longest must be a whole number and one of s, m, min, h, d, w, such as 30d"):
        parse_duration("soon", name="longest", such_as="30d")


def test_the_windows_advice_takes_texts_too() -> None:
    law = lc.delays.LogNormal(median=1800, sigma=1.0)
    arguments: dict[str, Any] = {"rate": 200, "dim": 2, "rounds": 60, "runs": 2, "progress": False}
    texts = lc.advise_window(law, longest="4h", horizon="2d", unit=np.timedelta64(1, "s"), **arguments)
    times = lc.advise_window(law, longest=timedelta(hours=4), horizon=timedelta(days=2), **arguments)
    assert texts.to_dict() == times.to_dict()
    with pytest.raises(InputError, match=r"^longest must be a whole number and one of .*, such as 30d; got 'x'"):
        lc.advise_window(law, longest="x", **arguments)


def test_a_policy_saved_with_a_text_is_loaded_with_its_time(tmp_path: Any) -> None:
    policy = lc.OTFLinUCB(2, "36h")
    policy.decide(np.eye(2), at="2026-01-05T12:00:00Z")
    policy.save(tmp_path / "policy")
    assert lc.load(tmp_path / "policy").window == timedelta(hours=36)
