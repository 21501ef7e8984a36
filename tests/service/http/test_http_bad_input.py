"""Whatever is sent: a 4xx in the one shape, at once, in little memory, and nothing has changed."""

import gzip
import io
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from servers import Server, error_of, run_server

ROWS = [[0.6, 0.0], [0.0, 0.8]]
DEEP, DIGITS = "[" * 100_000, "9" * 5_000
DECISIONS, CONVERSIONS = "/v1/bandits/b/decisions", "/v1/bandits/b/conversions"
MEGABYTE = 1 << 20
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("bad") / "a.db", LATECOMER_MAX_BANDITS="2") as server:
        assert server.http.put("/v1/bandits/b", json={"dim": 2, "window": 100}).status_code == 201
        server.http.post(DECISIONS, json={"actions": ROWS}).raise_for_status()
        yield server


def peak(server: Server) -> int:
    """The most memory that the server has had since the last call."""
    process = Path(f"/proc/{server.process.pid}")
    most = int((process / "status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    (process / "clear_refs").write_text("5")
    return most


def facts(server: Server) -> tuple[Any, Any]:
    return server.http.get("/v1/bandits/b/stats").json(), server.http.get("/v1/bandits").json()


def npy(array: Any, **arguments: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **arguments)
    return file.getvalue()


def actions(text: str) -> str:
    return f'{{"actions": {text}}}'


BODIES: dict[str, tuple[str, str | bytes, int]] = {
    "nothing": (DECISIONS, "", 400),
    "not JSON": (DECISIONS, "actions=1", 400),
    "cut short": (DECISIONS, '{"actions": [[0.6', 400),
    "an array where an object goes": (DECISIONS, "[]", 400),
    "depth": (DECISIONS, DEEP, 400),
    "depth in actions": (DECISIONS, actions(DEEP), 400),
    "depth in a field nobody knows": (DECISIONS, f'{{"x": {DEEP}', 400),
    "depth of objects": (DECISIONS, '{"context": ' * 100_000, 400),
    "digits": (DECISIONS, actions(f"[[{DIGITS}, 0]]"), 400),
    "NaN": (DECISIONS, actions("[[NaN, 0]]"), 400),
    "1e999": (DECISIONS, actions("[[1e999, 0]]"), 400),
    "-Infinity": (DECISIONS, actions("[[-Infinity, 0]]"), 400),
    "null": (DECISIONS, actions("[[null, 0]]"), 400),
    "text for a number": (DECISIONS, actions('[["0.6", 0]]'), 400),
    "invalid UTF-8": (DECISIONS, b'{"actions": [[0.6, 0]], "request_id": "\xff\xfe"}', 400),
    "a lone surrogate": (DECISIONS, b'{"actions": [[0.6, 0]], "request_id": "\\ud800"}', 400),
    "too few columns": (DECISIONS, actions("[[0.6]]"), 400),
    "too many columns": (DECISIONS, actions("[[0.6, 0, 0]]"), 400),
    "ragged": (DECISIONS, actions("[[0.6, 0], [0.6]]"), 400),
    "no action": (DECISIONS, actions("[]"), 400),
    "empty rows": (DECISIONS, actions("[[], []]"), 400),
    "100,000 actions": (DECISIONS, actions(str([[0.5, 0.5]] * 100_000)), 400),
    "a norm above 1": (DECISIONS, actions("[[3, 4]]"), 400),
    "an unknown field": (DECISIONS, json.dumps({"actions": ROWS, "K": 2}), 400),
    "too few ids": (DECISIONS, json.dumps({"actions": ROWS, "ids": ["x"]}), 400),
    "a long id": (DECISIONS, json.dumps({"actions": ROWS, "request_id": "x" * 100_000}), 400),
    "rows and features": (DECISIONS, json.dumps({"actions": [ROWS[0], {"id": "x", "features": {}}]}), 400),
    "features and rows": (DECISIONS, json.dumps({"actions": [{"id": "x", "features": {}}, ROWS[0]]}), 400),
    "context without features": (DECISIONS, json.dumps({"actions": ROWS, "context": {"a": 1}}), 400),
    "products beyond number": (
        DECISIONS,
        json.dumps(
            {
                "context": {str(i): 1 for i in range(9_000)},
                "actions": [{"id": "x", "features": {"a": [str(i) for i in range(9_000)]}}],
            }
        ),
        400,
    ),
    "nested features": (DECISIONS, json.dumps({"actions": [{"id": "x", "features": {"a": {"b": 1}}}]}), 400),
    "no conversion": (CONVERSIONS, "[]", 400),
    "10,001 conversions": (CONVERSIONS, json.dumps([{"decision_id": "x"}] * 10_001), 400),
    "a value above 1": (CONVERSIONS, '{"decision_id": "x", "value": 1.5}', 400),
    "a huge value": (CONVERSIONS, f'{{"decision_id": "x", "value": {DIGITS}}}', 400),
    "a number for an id": (CONVERSIONS, '{"decision_id": 1}', 400),
    "a time without sense": (CONVERSIONS, '{"decision_id": "x", "occurred_at": "soon"}', 400),
    "year 0": (CONVERSIONS, '{"decision_id": "x", "occurred_at": "0000-01-01T00:00:00Z"}', 400),
    "depth in a list": (CONVERSIONS, DEEP, 400),
    "2 MB of empty lists": (DECISIONS, actions(f"[{','.join(['[]'] * 690_000)}]"), 400),
    "2 MB of numbers": (DECISIONS, actions(f"[[{','.join('1' * 1_000_000)}]]"), 400),
    "2 MB of conversions": (CONVERSIONS, f"[{','.join(['{}'] * 690_000)}]", 400),
    "50 MB": (DECISIONS, b" " * 50 * MEGABYTE, 413),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_bad_body_changes_nothing(server: Server, case: str) -> None:
    path, body, status = BODIES[case]
    peak(server)
    before, memory = facts(server), server.memory
    content = body.encode() if isinstance(body, str) else body
    start = time.monotonic()
    try:
        answer = server.http.post(path, content=content, headers=JSON)
    except httpx.WriteError:  # refused while it was still being sent
        assert status == 413
    else:
        assert answer.status_code == status, answer.text[:300]
        error_of(answer)
    assert time.monotonic() - start < 1
    assert peak(server) - memory < 100 * MEGABYTE
    assert facts(server) == before


SPECS: dict[str, str] = {
    "no window": '{"dim": 2}',
    "dim 0": '{"dim": 0, "window": 1}',
    "a huge dim": '{"dim": 1000000000, "window": 1}',
    "dim of 5,000 digits": f'{{"dim": {DIGITS}, "window": 1}}',
    "window of 5,000 digits": f'{{"dim": 2, "window": {DIGITS}}}',
    "a negative window": '{"dim": 2, "window": -1}',
    "a fraction of a round": '{"dim": 2, "window": 1.5}',
    "a window in fortnights": '{"dim": 2, "window": "2 fortnights"}',
    "an unknown policy": '{"dim": 2, "window": 1, "policy": "os.system"}',
    "an unknown parameter": '{"dim": 2, "window": 1, "parameters": {"clock": 1}}',
    "a parameter of 5,000 digits": f'{{"dim": 2, "window": 1, "parameters": {{"ridge": {DIGITS}}}}}',
    "a deep parameter": f'{{"dim": 2, "window": 1, "parameters": {{"ridge": {DEEP}',
    "a parameter 1e999": '{"dim": 2, "window": 1, "parameters": {"ridge": 1e999}}',
    "a seed that is a list": '{"dim": 2, "window": 1, "parameters": {"seed": [[]]}}',
    "a negative seed": '{"dim": 2, "window": 1, "parameters": {"seed": -1}}',
    "delta 0": '{"dim": 2, "window": 1, "parameters": {"delta": 0}}',
}


@pytest.mark.parametrize("case", SPECS)
def test_a_bad_specification_creates_no_bandit(server: Server, case: str) -> None:
    before = facts(server)
    start = time.monotonic()
    answer = server.http.put("/v1/bandits/new", content=SPECS[case], headers=JSON)
    assert answer.status_code == 400, answer.text
    error_of(answer)
    assert time.monotonic() - start < 1
    assert facts(server) == before


@pytest.mark.parametrize(
    "name", ["../b", "..%2Fb", "%2e%2e%2fb", "b%00", "%00", "b%0a", ".b", "x" * 65, "b%ff", "b%20", "é", "b;drop"]
)
def test_a_bad_bandit_name_is_refused(server: Server, name: str) -> None:
    before = facts(server)
    for method, path in (("PUT", ""), ("GET", ""), ("GET", "/stats"), ("POST", "/decisions"), ("DELETE", "")):
        status, body = raw(
            server, f"{method} /v1/bandits/{name}{path}", b'{"dim": 2, "window": 1, "actions": [[0, 0]]}'
        )
        assert 400 <= status < 500, (method, path)
        assert set(json.loads(body)) == {"error"}
    assert facts(server) == before


def raw(server: Server, line: str, body: bytes) -> tuple[int, bytes]:
    """Sent as it stands: a client would tidy the path up."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = f"{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        got = b""
        while part := connection.recv(65536):
            got += part
    head_, _, rest = got.partition(b"\r\n\r\n")
    return int(head_.split()[1]), rest


ARRAYS: dict[str, bytes] = {
    "not an array": b"x" * 100,
    "nothing": b"",
    "a pickle": npy(np.array([{"a": 1}], dtype=object), allow_pickle=True),
    "single precision": npy(np.zeros((2, 2), np.float32)),
    "big-endian": npy(np.zeros((2, 2), ">f8")),
    "columns first": npy(np.asfortranarray(np.random.default_rng(0).random((2, 2)))),
    "one row": npy(np.zeros(2)),
    "three axes": npy(np.zeros((1, 2, 2))),
    "no action": npy(np.zeros((0, 2))),
    "too many actions": npy(np.zeros((1001, 2))),
    "wrong d": npy(np.zeros((2, 3))),
    "NaN": npy(np.full((2, 2), np.nan)),
    "cut short": npy(np.zeros((2, 2)))[:-1],
    "a byte too many": npy(np.zeros((2, 2))) + b"x",
    "a shape beyond memory": npy(np.zeros((2, 2))).replace(b"(2, 2)", b"(2, 9" + b"9" * 18 + b")"),
    "a negative shape": npy(np.zeros((2, 2))).replace(b"(2, 2)", b"(-2,-2)"),
    "a header that is code": npy(np.zeros((2, 2))).replace(b"(2, 2)", b"exit()"),
    "a header of another version": npy(np.zeros((2, 2))).replace(b"NUMPY\x01", b"NUMPY\x09"),
    "a header as long as 4 GB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
}


@pytest.mark.parametrize("case", ARRAYS)
def test_a_bad_array_changes_nothing(server: Server, case: str) -> None:
    before, memory = facts(server), server.memory
    answer = server.http.post(DECISIONS, content=ARRAYS[case], headers={"Content-Type": "application/x-npy"})
    assert answer.status_code == 400, answer.text
    error_of(answer)
    assert server.memory - memory < 100 * MEGABYTE
    assert facts(server) == before


def test_a_compressed_body_is_refused(server: Server) -> None:
    bomb, memory = gzip.compress(b" " * 100 * MEGABYTE), server.memory
    answer = server.http.post(DECISIONS, content=bomb, headers={"Content-Encoding": "gzip"} | JSON)
    assert (answer.status_code, error_of(answer)["code"]) == (415, "unsupported_media_type")
    assert server.memory - memory < 50 * MEGABYTE


def test_a_chunked_body_beyond_the_limit_is_refused(server: Server) -> None:
    memory = server.memory
    try:
        answer = server.http.post(DECISIONS, content=(b" " * 65536 for _ in range(2000)), headers=JSON)
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        pass  # closed while we were still sending: which of the three depends on who is faster
    else:
        assert (answer.status_code, error_of(answer)["code"]) == (413, "too_large")
    assert server.memory - memory < 50 * MEGABYTE


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x", "application/jsonp"]
)
def test_other_content_types_are_refused(server: Server, kind: str) -> None:
    answer = server.http.post(DECISIONS, content=json.dumps({"actions": ROWS}), headers={"Content-Type": kind})
    assert (answer.status_code, error_of(answer)["code"]) == (415, "unsupported_media_type")
    answer = server.http.post(CONVERSIONS, content=npy(np.eye(2)), headers={"Content-Type": "application/x-npy"})
    assert answer.status_code == 415
    answer = server.http.post(DECISIONS, content=json.dumps({"actions": ROWS}))  # no type at all
    assert answer.status_code == 415


def test_max_bandits_limits_the_bandits(server: Server) -> None:
    assert server.http.put("/v1/bandits/second", json={"dim": 2, "window": 1}).status_code == 201
    answer = server.http.put("/v1/bandits/third", json={"dim": 2, "window": 1})
    assert (answer.status_code, "max_bandits" in error_of(answer)["message"]) == (400, True)
    assert server.http.put("/v1/bandits/second", json={"dim": 2, "window": 1}).status_code == 200
    server.http.delete("/v1/bandits/second?confirm=second").raise_for_status()


def test_bad_input_never_logs_a_failed_request(server: Server) -> None:
    assert not server.logged("a request failed")
