"""The fast reader takes what is ordinary, and reads it as the careful one does; the rest it leaves alone."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.service.http.bodies import DecisionRequest
from latecomer.service.http.fast_json import FastJson

READER = FastJson(max_actions=5, max_label=200)
BLANKS = 4096 * " "
"""They make a row a long one, whose lists are found and not counted."""


def careful(body: bytes) -> tuple[Any, list[str] | None, str | None]:
    request = msgspec.json.decode(body, type=DecisionRequest)
    return np.array(request.actions, np.float64), request.ids, request.request_id


def assert_alike(body: bytes, dim: int) -> None:
    read = READER.read(body, dim)
    assert read is not None
    rows, ids, request_id = careful(body)
    assert read[0].dtype == np.float64
    assert read[0].tobytes() == rows.tobytes()
    assert read[0].shape == rows.shape
    assert read[1:] == (ids, request_id)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64 - 1)
LABELS = st.text(st.characters(exclude_characters="[", exclude_categories=["Cs"]), min_size=1, max_size=200)


@given(data=st.data(), dim=st.integers(1, 6), count=st.integers(1, 5))
def test_fast_json_reads_usual_requests_as_msgspec_does(data: st.DataObject, dim: int, count: int) -> None:
    rows = st.lists(st.lists(NUMBERS, min_size=dim, max_size=dim), min_size=count, max_size=count)
    request: dict[str, Any] = {"actions": data.draw(rows)}
    if data.draw(st.booleans()):
        request["ids"] = data.draw(st.lists(LABELS, min_size=count, max_size=count))
    if data.draw(st.booleans()):
        request["request_id"] = data.draw(LABELS)
    keys = data.draw(st.permutations(list(request)))
    indent = data.draw(st.sampled_from([None, 1]))
    assert_alike(json.dumps({key: request[key] for key in keys}, indent=indent).encode(), dim)


@pytest.mark.parametrize(
    "number", ["0.1", "1e-400", "5e-324", "-0.0", "1E5", "123456789012345678", "0.30000000000000004"]
)
def test_fast_json_reads_numbers_to_the_last_bit(number: str) -> None:
    assert_alike(f'{{"actions": [[{number}]]}}'.encode(), 1)


@pytest.mark.parametrize(
    "body",
    [
        '{"actions": [[1, [2]]]}',
        '{"actions": [[1, [2, 3]], [4, []]]}',
        '{"actions": [[[1, 2]]]}',
        '{"actions": [1, 2]}',
        '{"actions": [[1], [2, 3]]}',
        '{"actions": [[1, 2, 3]]}',
        '{"actions": [[1, true]]}',
        '{"actions": [[1, null]]}',
        '{"actions": [[1, "2"]]}',
        '{"actions": [[1, 1e999]]}',
        '{"actions": [[1, NaN]]}',
        '{"actions": [[1, 123456789012345678901234567890]]}',
        '{"actions": []}',
        '{"actions": [[]]}',
        '{"actions": {}}',
        '{"actions": null}',
        '{"actions": [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]}',
        '{"actions": [[1, 2]], "actions": [[3, 4]]}',
        '{"actions": [[1, 2]], "more": 1}',
        '{"actions": [[1, 2]], "context": {}}',
        '{"actions": [{"id": "a", "features": {}}]}',
        '{"actions": [[1, 2]], "ids": "a"}',
        '{"actions": [[1, 2]], "ids": [""]}',
        '{"actions": [[1, 2]], "ids": [1]}',
        '{"actions": [[1, 2]], "ids": [["a"]]}',
        '{"actions": [[1, 2]], "ids": null}',
        '{"actions": [[1, 2]], "request_id": ""}',
        '{"actions": [[1, 2]], "request_id": 7}',
        '{"actions": [[1, 2]], "request_id": "[1]"}',
        '{"actions": [[1, 2]], "request_id": "' + "a" * 201 + '"}',
        '{"actions": [[1, 2]]} 1',
        '{"actions": [[1, 2]]',
        "[[1, 2]]",
        "1",
        "",
        '{"ids": ["a"]}',
    ],
)
def test_fast_json_leaves_unusual_bodies_to_msgspec(body: str) -> None:
    assert READER.read(body.encode(), 2) is None
    assert_alike(b'{"actions": [[1, 2]], "request_id": "r"}', 2)  # and the next one is none the worse for it
    assert READER.read(body.replace(",", "," + BLANKS).encode(), 2) is None
    assert_alike(b'{"actions": [[1,' + BLANKS.encode() + b'2]], "request_id": "r"}', 2)


def test_fast_json_leaves_bytes_that_are_not_utf_8() -> None:
    assert READER.read(b'{"actions": [[1, 2]], "request_id": "\xff"}', 2) is None
    assert READER.read(b"[" * 100_000, 2) is None
    assert READER.read(b'\xef\xbb\xbf{"actions": [[1, 2]]}', 2) is None  # nor does the careful one pass over a mark


def test_fast_json_reads_batches_as_it_reads_requests() -> None:
    requests = [
        b'{"actions": [[1, 2], [3, 4]]}',
        b'{"actions": [[0.5, 2e-3]], "ids": ["a"], "request_id": "r"}',
        b'{"request_id": "s", "actions": [[1, 2], [3, 4], [5, 6]]}',
    ]
    found = READER.read_batch(b" [" + b", ".join(requests) + b"]\n", 2)
    assert found is not None
    for parts, request in zip(found, requests, strict=True):
        alone = READER.read(request, 2)
        assert alone is not None
        assert (parts[0].tobytes(), *parts[1:]) == (alone[0].tobytes(), *alone[1:])
    for request in (
        b'{"actions": [[1, [2]]]}',
        b'{"actions": [[1]]}',
        b'{"actions": [[1, 2]], "x": 1}',
        b"7",
        b"[[1]]",
    ):
        assert READER.read_batch(b"[" + requests[0] + b"," + request + b"]", 2) is None
    assert READER.read_batch(b"[" + requests[0] + b",]", 2) is None
    assert READER.read_batch(b"[]", 2) == []
