"""Arrays in NumPy's format: whatever the bytes are, an array that NumPy reads alike or a refusal, and no warning."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from servers import run_server

from latecomer.service.http.errors import HTTPError
from latecomer.service.http.npy import parse_npy

FORM = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }"
DATA = np.array([0.25, 0.5, 0.75]).tobytes()


def npy(header: str | bytes, data: bytes = DATA, *, version: int = 1, length: int | None = None) -> bytes:
    """A file with that header, which says `length` of it."""
    text = header.encode() if isinstance(header, str) else header
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + size.to_bytes(2 if version == 1 else 4, "little") + text + data


FAULTS = {
    "a truth value in the shape": npy(FORM.replace("(1,", "(True,")),
    "900 parentheses": npy("(" * 900),
    "a number as Python 2 wrote it": npy(FORM.replace("(1,", "(1L,")),
    "an escape that Python warns of": npy(FORM.replace("<f8", "\\d")),
    "900 brackets": npy("{'descr': " + "[" * 900),
    "a sum": npy("1" + "+1" * 400),
    "a type of many fields": npy(FORM.replace("'<f8'", "[('a', '<f8')]")),
    "a comparison that Python warns of": npy("1is 1"),
    "NUL": npy("\0" * 64),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_bad_npy_header_is_refused(case: str) -> None:
    with pytest.raises(HTTPError) as caught:
        parse_npy(FAULTS[case])
    assert caught.value.status == 400


def test_bad_npy_headers_get_400_and_the_log_stays_json(tmp_path: Any) -> None:
    with run_server(tmp_path / "a.db") as server:
        server.http.put("/v1/bandits/b", json={"dim": 2, "window": 100}).raise_for_status()
        for case, body in FAULTS.items():
            kind = {"Content-Type": "application/x-npy"}
            answer = server.http.post("/v1/bandits/b/decisions", content=body, headers=kind)
            assert answer.status_code == 400, case
    assert [line for line in server.lines if not line.startswith("{")] == []
    assert not server.logged("a request failed")


@pytest.mark.parametrize(
    "header",
    [
        FORM,
        FORM + " " * 58 + "\n",
        '{"shape": (1, 3), "descr": "<f8", "fortran_order": False}\n',
        "{'fortran_order':False,'descr':'<f8','shape':(1,3)}",
        " { 'shape' : ( 1 ,\t3, ) , 'descr' : '<f8' , 'fortran_order' : False , }\n",
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_npy_headers_of_other_writers_are_read(header: str, version: int) -> None:
    np.testing.assert_array_equal(parse_npy(npy(header, version=version)), [[0.25, 0.5, 0.75]])


def test_a_parsed_npy_array_is_writable_and_native() -> None:
    array = parse_npy(npy(FORM))
    assert (array.dtype, array.flags.owndata, array.flags.writeable) == (np.dtype(np.float64), True, True)


# ---- whatever the bytes are ----

PUNCTUATION = list("{}()[],: \n\t\v'\"\\#;=*.\0é")
WORDS = [
    *("True", "False", "None", "'descr'", "'fortran_order'", "'shape'", "'<f8'", "'>f8'", "'O'", "'|V8'", "lambda:0"),
    *("1", "3", "(1, 3)", "(1,)", "()", "-1", "1L", "0x1", "1_0", "1e0", "01", "9" * 30, "b'a'", "'\\x'"),
]
TOKENS = st.sampled_from(PUNCTUATION + WORDS)
KEYS = st.sampled_from(["'descr'", "'fortran_order'", "'shape'", '"shape"', "'x'", "shape", "1", "None", "''"])
SHAPES = [
    *("(1, 3)", "(1,3,)", "(3, 1)", "(3,)", "()", "(0, 3)", "(-1, -3)", "(True, 3)", "(1L, 3)", "(1.0, 3)"),
    *("(1, 3, 1)", "[1, 3]", "((1, 3))"),
]
TYPES = ["'<f8'", '"<f8"', "'<f4'", "'>f8'", "'O'", "[('a', '<f8')]"]
VALUES = st.sampled_from(SHAPES + TYPES + ["False", "True", "0", "None"])
PAIRS = st.lists(st.tuples(KEYS, VALUES), max_size=5).map(
    lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}\n"
)
HEADERS = st.one_of(PAIRS, st.lists(TOKENS, max_size=40).map("".join), st.text(max_size=60))
FILES = st.builds(
    npy,
    HEADERS,
    st.one_of(st.just(DATA), st.binary(max_size=40)),
    version=st.sampled_from([1, 1, 1, 2, 3, 9]),
    length=st.one_of(st.none(), st.integers(0, 2**16 - 1)),
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A whole file with a few bytes changed, put in or taken out."""
    body = bytearray(npy(FORM + " " * draw(st.integers(0, 60)) + "\n", version=draw(st.sampled_from([1, 2]))))
    for _ in range(draw(st.integers(0, 6))):
        start, gone = draw(st.integers(0, len(body))), draw(st.integers(0, 3))
        body[start : start + gone] = draw(st.one_of(st.binary(max_size=3), TOKENS.map(str.encode)))
    return bytes(body)


BODIES = st.one_of(FILES, mutated(), st.binary(max_size=200), st.binary(max_size=100).map(b"\x93NUMPY".__add__))


def check_that_it_is_an_array_or_a_refusal(body: bytes) -> None:
    """A warning would be an error: the suite turns it into one."""
    refused = None
    try:
        found = parse_npy(body)
    except HTTPError as refusal:
        refused = refusal
    if refused is None:
        assert_read_alike(found, body)
    else:
        assert (refused.status, len(refused.message) < 500) == (400, True)


def assert_read_alike(found: npt.NDArray[np.float64], body: bytes) -> None:
    expected = np.load(io.BytesIO(body), allow_pickle=False)
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@given(body=BODIES)
@example(body=npy(FORM))
@settings(deadline=None)
def test_any_bytes_are_an_array_or_an_http_error(body: bytes) -> None:
    check_that_it_is_an_array_or_a_refusal(body)


@pytest.mark.soak
@given(body=BODIES)
@settings(max_examples=200_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_are_an_array_or_an_http_error_at_length(body: bytes) -> None:
    check_that_it_is_an_array_or_a_refusal(body)
