"""The readers of bodies look at no byte beyond the zero that ends a text, whatever the text is.

The text lies directly before a page that cannot be read, in a process of its own: one byte too far ends it.
"""

import ctypes
import faulthandler
import json
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from signal import SIGSEGV
from typing import Any

import numpy as np
import pytest

from latecomer.service.http.decimal_numbers import POWERS, SCALES
from latecomer.service.http.rows_kernel import compile_readers, read_list, read_one, read_short_list

PAGE = mmap.PAGESIZE
PARTS = [
    *(b'{"actions', b'"actions"', b'"actions":[[', b"[[", b"],[", b"]]", b"]}", b'"ids":["a"]', b'"request_id":"}{"'),
    *(
        b"0.12345678",
        b"0.1234567812345678",
        b"-0",
        b"1e-",
        b"9.",
        b"1e-99",
        b"8" * 30,
        b"\\",
        b'\\"',
        b'"',
        b"\xff" * 8,
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _code() -> None:
    compile_readers()


@contextmanager
def guarded_page() -> Iterator[int]:
    """Give the address of a page that cannot be read, after one that can."""
    memory = mmap.mmap(-1, 2 * PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(begin + PAGE, PAGE, 0) == 0
    yield begin + PAGE


def run_in_child(work: Callable[[int], None]) -> int:
    """Return the status of a process that does this with the address of a guarded page."""
    child = os.fork()
    if not child:
        faulthandler.disable()
        status = 1
        try:
            with guarded_page() as page:
                work(page)
                status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def put_before(page: int, body: bytes) -> Any:
    """Copy a body and the zero after it to the end of the page before; return it as the readers take it."""
    address = page - len(body) - 1
    ctypes.memmove(address, body + b"\0", len(body) + 1)
    memory: Any = (ctypes.c_char * len(body)).from_address(address)
    text = np.frombuffer(memory, np.uint8)
    text.flags.writeable = False
    return text


def make_body(random: Random) -> bytes:
    numbers = [random.choice((0, -0.0, 7, round(random.random(), random.randrange(18)))) for _ in range(6)]
    request: dict[str, Any] = {"actions": [numbers[i : i + 2] for i in range(0, random.choice((2, 4, 6)), 2)]}
    if random.random() < 0.5:
        request |= {"ids": ["a", 'b"}'], "request_id": "r"}
    body: Any = request if random.random() < 0.5 else [request] * random.randrange(1, 4)
    return json.dumps(body, indent=random.choice((None, 1))).encode()


def damage(random: Random, body: bytes) -> bytes:
    """Return a body with some bytes replaced, inserted or taken out, or cut off; perhaps as it is."""
    found = bytearray(body)
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        place = random.randrange(len(found) + 1)
        found[place : place + random.choice((0, 1, 9))] = random.choice((b"", random.choice(PARTS)))
    return bytes(found[: random.randrange(1, len(found) + 2)] if random.random() < 0.5 else found)


def read_many_bodies(page: int) -> None:
    random, read = Random(5), 0  # noqa: S311
    rows, ends, places = np.empty((4, 2)), np.empty(3, np.int64), np.empty((3, 2), np.int64)
    for _ in range(4_000):
        body = damage(random, make_body(random))
        if body:
            text = put_before(page, body)
            read += read_one.call(text, rows, POWERS, SCALES)[0] > 0
            for reader in (read_list, read_short_list):
                read += reader.call(text, rows, ends, places, POWERS, SCALES) > 0
    assert read > 500


def cut_at_every_place(page: int) -> None:
    rows, ends, places = np.empty((4, 2)), np.empty(3, np.int64), np.empty((3, 2), np.int64)
    request = b' {"actions": [[0.1234567812345678, -1e-05], [7,0.5]] , "ids": ["a\\"", "b"], "request_id": "\\\\"} '
    for body in (request, b"[" + request + b"," + request + b"]"):
        for end in range(1, len(body) + 1):
            text = put_before(page, body[:end])
            read_one.call(text, rows, POWERS, SCALES)
            for reader in (read_list, read_short_list):
                reader.call(text, rows, ends, places, POWERS, SCALES)


@pytest.mark.parametrize("work", [cut_at_every_place, read_many_bodies])
def test_no_reader_looks_beyond_the_zero_after_a_text(work: Callable[[int], None]) -> None:
    assert run_in_child(work) == 0


def look_beyond(page: int) -> None:
    ctypes.string_at(page - 1, 2)


def test_a_byte_beyond_it_would_end_the_process() -> None:
    """As the other tests rely on."""
    assert os.WTERMSIG(run_in_child(look_beyond)) == SIGSEGV
