"""Arguments that the delay estimator refuses, with nothing changed."""

from typing import Any

import pytest

from latecomer.delays import DelayEstimate
from latecomer.errors import InputError, NotIdentifiableError


def test_estimate_refuses_to_state_tau() -> None:
    for holder in (DelayEstimate(10), DelayEstimate(10).curve()):
        with pytest.raises(NotIdentifiableError, match=r"τ_m.* is not identifiable from conversions"):
            holder.tau()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": -1}, "window must be at least 0; got -1"),
        ({"window": "7d"}, "window must be a number of at least 0; got '7d'"),
        ({"window": 5, "unit": 0}, "unit must be above 0"),
        ({"window": 5, "prior": 0}, "prior must be above 0"),
        ({"window": 1e9, "unit": 1}, "window must be at most 10,000,000 ticks of unit; got 1,000,000,000: choose a"),
        ({"window": float("inf")}, "window must be at most 10,000,000 ticks of unit"),
    ],
)
def test_estimate_refuses_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DelayEstimate(**arguments)


@pytest.mark.parametrize(
    ("stamps", "message"),
    [
        ((5, 4), "converted must not lie before decided, 5; got 4"),
        ((float("nan"), 4), "decided must be a finite number; got nan"),
        ((1, float("inf")), "converted must be a finite number; got inf"),
        (("1", 2), "decided must be a finite number; got '1'"),
    ],
)
def test_estimate_is_unchanged_by_refused_stamps(stamps: tuple[Any, Any], message: str) -> None:
    estimate = DelayEstimate(5)
    estimate.add(1, 2)
    before = estimate.to_dict()
    with pytest.raises(InputError, match=message):
        estimate.add(*stamps)
    assert estimate.to_dict() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delays": [1]}, "delays must have 4 counts"),
        ({"open": [0, 0, 0, -1]}, "open must be a list of pairs of a tick and a delay"),
        ({"open": [[0, 1], [0, -1]]}, r"open\[1\] must be at least 0"),
        ({"open": [[1, 4]]}, r"up to tick 1; got \[1, 4\]"),
        ({"open": [[-1, 1]]}, r"counted in delays, up to tick 1; got \[\[-1, 1\]\]"),
        ({"fresh": "x"}, "fresh must be a list"),
        ({"now": None}, "now must be a tick"),
        ({"extra": 1}, "data must be what to_dict gave"),
        ({"prior": "c"}, "prior must be a number"),
    ],
)
def test_estimate_from_dict_refuses_damaged_data(change: dict[str, object], message: str) -> None:
    estimate = DelayEstimate(3)
    estimate.add(1, 2)
    with pytest.raises(InputError, match=message):
        DelayEstimate.from_dict({**estimate.to_dict(), **change})
