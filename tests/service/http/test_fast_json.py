"""The fast reader takes what is ordinary, and reads it as the careful one does; the rest it leaves alone."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.service.decision_batch import MAX_DECISIONS
from latecomer.service.http import fast_json
from latecomer.service.http.bodies import DecisionRequest
from latecomer.service.http.body_reader import decode_json
from latecomer.service.http.errors import HTTPError
from latecomer.service.http.fast_json import FastJson, Parts
from latecomer.service.http.rows_kernel import compile_readers, read_one
from latecomer.tiers.tiered_kernel import TieredKernel

READER = FastJson(max_actions=5)


@pytest.fixture(scope="module", autouse=True)
def _code() -> None:
    compile_readers()


def careful(body: bytes) -> tuple[Any, list[str] | None, str | None]:
    request = msgspec.json.decode(body, type=DecisionRequest)
    return np.array(request.actions, np.float64), request.ids, request.request_id


def assert_equal(read: Parts, body: bytes) -> None:
    rows, ids, request_id = careful(body)
    assert read[0].dtype == np.float64
    assert read[0].tobytes() == rows.tobytes()
    assert read[0].shape == rows.shape
    assert read[1:] == (ids, request_id)


def assert_alike(body: bytes, dim: int) -> None:
    read = READER.read(body, dim)
    assert read is not None
    assert_equal(read, body)


USUAL = st.floats(-9.9, 9.9).filter(lambda x: x == 0.0 or abs(x) > 1e-80) | st.integers(-9, 9)
ANY = st.floats() | st.integers() | st.none() | st.lists(st.floats(), max_size=2)
LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def draw_request(data: st.DataObject, numbers: st.SearchStrategy[Any], dim: int, count: int) -> bytes:
    rows = st.lists(st.lists(numbers, min_size=dim, max_size=dim), min_size=count, max_size=count)
    request: dict[str, Any] = {"actions": data.draw(rows)}
    if data.draw(st.booleans()):
        request["ids"] = data.draw(st.lists(LABELS, min_size=count, max_size=count))
    if data.draw(st.booleans()):
        request["request_id"] = data.draw(LABELS)
    layout: dict[str, Any] = data.draw(
        st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])
    )
    return json.dumps(request, **layout).encode()


@given(data=st.data(), dim=st.integers(1, 6), count=st.integers(1, 5))
def test_fast_json_reads_usual_requests_as_msgspec_does(data: st.DataObject, dim: int, count: int) -> None:
    assert_alike(draw_request(data, USUAL, dim, count), dim)


@given(data=st.data(), dim=st.integers(1, 3), count=st.integers(1, 3))
def test_fast_json_reads_no_request_otherwise_than_msgspec(data: st.DataObject, dim: int, count: int) -> None:
    """Any numbers, any of the bytes another, the end cut off: it is read alike, or left."""
    body = bytearray(draw_request(data, USUAL | ANY, dim, count))
    if data.draw(st.booleans()):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.sampled_from(b'[]{}",:. -+0e1\\\n\0\xff'))
    if data.draw(st.booleans()):
        del body[data.draw(st.integers(0, len(body))) :]
    read, listed = READER.read(bytes(body), dim), READER.read_batch(b"[" + body + b"]", dim)
    if read is not None:
        assert_equal(read, bytes(body))
    for parts in listed or ():
        assert_equal(parts, bytes(body))
    assert (read is None) == (listed is None)


@pytest.mark.parametrize("zero", ["-0", "-0.0", "-0e-1", "-0E0", "-0.000e+0", "0", "0.0"])
def test_a_zero_has_the_sign_that_msgspec_gives_it(zero: str) -> None:
    """The digest of a body is of its numbers' bytes, and either reader may read the same request again."""
    request = f'{{"actions": [[{zero}, 1], [0.5,{zero} ]], "request_id": "r"}}'.encode()
    assert_alike(request, 2)
    found = READER.read_batch(b"[" + request + b"]", 2)
    assert found is not None
    assert_equal(found[0], request)


def test_no_more_rows_are_read_than_are_allowed() -> None:
    """Rows beyond those that are allowed are not looked at, and have no room."""
    reader = FastJson(max_actions=5)
    assert reader.read(b'{"actions": [' + b"[1, 2]," * 10_000 + b"[1, 2]]}", 2) is None
    assert len(reader._rows) == 5
    assert reader.read(b'{"actions": [' + b"[1, 2]," * 4 + b"[1, 2]]}", 2) is not None


def test_as_many_lists_are_refused_as_by_the_careful_reader() -> None:
    """Brackets in texts count, as they do there: one rule for both."""
    many = FastJson(max_actions=200_000)
    for count, is_read in ((99_999, True), (100_000, False)):
        body = b'{"actions": [' + b"[1]," * (count - 1) + b"[1]]}"
        assert (many.read(body, 1) is not None) == is_read
        assert (many.read_batch(b"[" + body.replace(b"[1],", b"", 1) + b"]", 1) is not None) == is_read
        if not is_read:
            with pytest.raises(HTTPError, match="at most 100000 lists"):
                decode_json(body, msgspec.json.Decoder(DecisionRequest))


@pytest.mark.parametrize("count", [1, 900])
def test_a_list_is_read_alike_with_pythons_lock_and_without(count: int) -> None:
    """Short lists are read by a kernel that keeps it."""
    request = b'{"actions": [[0.25, 1.5], [3, 4]], "request_id": "' + 100 * b"r" + b'"}'
    found = READER.read_batch(b"[" + b",".join(count * [request]) + b"]", 2)
    assert found is not None
    assert len(found) == count
    assert_equal(found[-1], request)


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
        '{"actions": [[1, 2]], "request_id": "' + "a" * 201 + '"}',
        '{"actions": [[1, 2]]} 1',
        '{"actions": [[1, 2]]',
        "[[1, 2]]",
        "1",
        "",
        " ",
        '{"ids": ["a"]}',
        '{"request_id": "r", "actions": [[1, 2]]}',
        '{"actions": [[1, 2],]}',
        '{"actions": [[1, 2,]]}',
        '{"actions": [[1, 2]],}',
        '{"actions": [[1, 2]] "request_id": "r"}',
        '{"actions": [[1, 2]], "request_id": "r"',
        '{"actions": [[1, 2]], "ids": ["a"], "actions": [[3, 4]]}',
        '{"Actions": [[1, 2]]}',
        "{actions: [[1, 2]]}",
        '{"actions" [[1, 2]]}',
    ],
)
def test_fast_json_leaves_unusual_bodies_to_msgspec(body: str) -> None:
    assert READER.read(body.encode(), 2) is None
    assert_alike(b'{"actions": [[1, 2]], "request_id": "r"}', 2)  # and the next one is none the worse for it


def test_fast_json_leaves_bytes_that_are_not_utf_8() -> None:
    assert READER.read(b'{"actions": [[1, 2]], "request_id": "\xff"}', 2) is None
    assert READER.read(b"[" * 100_000, 2) is None
    assert READER.read(b'\xef\xbb\xbf{"actions": [[1, 2]]}', 2) is None  # nor does the careful one pass over a mark


def test_fast_json_reads_batches_as_it_reads_requests() -> None:
    requests = [
        b'{"actions": [[1, 2], [3, 4]]}',
        b'{"actions": [[0.5, 2e-3]], "ids": ["a"], "request_id": "r"}',
        b'{"actions": [[1, 2]], "ids": []}',
        b'{"actions": [[1, 2], [3, 4], [5, 6]], "request_id": "}]\\" [{"}',
    ]
    found = READER.read_batch(b" [" + b" , ".join(requests) + b"]\n", 2)
    assert found is not None
    for parts, request in zip(found, requests, strict=True):
        assert_equal(parts, request)
    for request in (
        b'{"actions": [[1, [2]]]}',
        b'{"actions": [[1]]}',
        b'{"actions": [[1, 2]], "x": 1}',
        b'{"actions": [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]}',
        b'{"actions": [[1, 2]], "ids": ["]}',
        b'{"actions": [[1, 2]],}',
        b"7",
        b"[[1]]",
        b"",
    ):
        assert READER.read_batch(b"[" + requests[0] + b"," + request + b"]", 2) is None
    for body in (b"[]", b"[" + requests[0], requests[0], b"[" + requests[0] + b"] 1"):
        assert READER.read_batch(body, 2) is None
    assert READER.read_batch(b"[" + b",".join(requests[:1] * MAX_DECISIONS) + b"]", 2) is not None
    assert READER.read_batch(b"[" + b",".join(requests[:1] * (MAX_DECISIONS + 1)) + b"]", 2) is None


def test_what_has_been_read_stays_when_the_next_body_is_read() -> None:
    """The reader has one room for all, of any dimension."""
    first, batch = READER.read(b'{"actions": [[1, 2]]}', 2), READER.read_batch(b'[{"actions": [[3, 4]]}]', 2)
    assert READER.read(b'{"actions": [[5], [6], [7]]}', 1) is not None
    assert READER.read_batch(b'[{"actions": [[8, 9], [8, 9]]}]', 2) is not None
    assert first is not None
    assert batch is not None
    assert first[0].tolist() == [[1.0, 2.0]]
    assert batch[0][0].tolist() == [[3.0, 4.0]]


def test_without_machine_code_everything_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until many bytes were left: then it is asked for, once for so many."""
    asked: list[TieredKernel] = []
    monkeypatch.setattr(read_one, "is_compiled", False)
    monkeypatch.setattr(fast_json, "request", asked.extend)
    reader, body = FastJson(max_actions=5), b'{"actions": [[1, 2]]' + 100_000 * b" " + b"}"
    assert [reader.read(body, 2) for _ in range(10)] == 10 * [None]
    assert asked == []
    assert [reader.read(body, 2) for _ in range(20)] == 20 * [None]
    assert asked == 2 * [read_one]
