"""Actions and request ids as a notebook has them: frames, rows of NumPy, numbers of orders."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from servers import Server, run_server

from latecomer.errors import InputError

ROWS = [[0.6, 0.0], [0.0, 0.8]]
RULE = "request_id must be a text of 1 to 200 characters; got "


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("tables") / "a.db") as server:
        with server.client() as client:
            client.create("b", dim=2, window=1000, policy="OTFLinUCB")
        yield server


@pytest.mark.parametrize(
    "actions",
    [
        pd.DataFrame(ROWS, columns=["price", "age"]),
        pd.DataFrame(ROWS).astype(object),
        np.array(ROWS, np.float32),
        list(np.array(ROWS)),
        [[np.float32(0.6), np.int64(0)], [0.0, 0.8]],
    ],
    ids=["frame", "frame of objects", "single precision", "list of arrays", "list of scalars"],
)
@pytest.mark.parametrize("ids", [None, ["x", "y"]])
def test_actions_are_sent_as_the_library_takes_them(server: Server, actions: Any, ids: list[str] | None) -> None:
    with server.client() as client:
        found = client.decide("b", actions, ids=ids)
        assert found.action_id == (None if ids is None else ids[found.index])


@pytest.mark.parametrize("actions", [pd.DataFrame({"a": ["x"]}), np.array(["x"]), object(), [[object()]]])
def test_actions_that_are_no_numbers_are_refused_before_they_are_sent(server: Server, actions: Any) -> None:
    with server.client() as client:
        before = client.stats("b").rounds
        with pytest.raises(InputError, match=r"must be (a \(K, d\) array|of numbers)"):
            client.decide("b", actions)
        assert client.stats("b").rounds == before


@pytest.mark.parametrize("request_id", [0, 5, "", np.int64(7), float("nan")])
def test_a_request_id_that_is_no_text_is_refused(server: Server, request_id: Any) -> None:
    """0 and "" were replaced by a new id each time, so that a repeated request was a new decision."""
    features: dict[str, dict[str, Any]] = {"x": {"colour": "red"}}
    with server.client() as client:
        before = client.stats("b").rounds
        for actions in (ROWS, np.array(ROWS)):
            with pytest.raises(InputError, match=RULE):
                client.decide("b", actions, request_id=request_id)
        with pytest.raises(InputError, match=RULE):
            client.decide_features("b", features, request_id=request_id)
        assert client.stats("b").rounds == before
