"""The usual decision requests as a kernel reads them: {"actions": [[…], …], …}, alone or in a list.

Rows of numbers go to a matrix; what follows them in a request is left to another reader, by its places. Whatever is not
of this form, or has a number that takes another way, is left as a whole.
"""

from typing import Any

import numpy as np

from latecomer.core.jit import kernel, kernel_holding_gil, kernel_noinline
from latecomer.core.state import Array, Integers
from latecomer.service.http.decimal_numbers import POWERS, SCALES, Text, Unsigned, byte_at, read_number, word_at
from latecomer.tiers.tiered_kernel import Job, TieredKernel

_KEY = int.from_bytes(b'"actions', "little")
_QUOTE, _COLON, _COMMA, _BACKSLASH = 0x22, 0x3A, 0x2C, 0x5C
_OPEN, _CLOSE, _BEGIN, _END = 0x5B, 0x5D, 0x7B, 0x7D


@kernel
def skip_blanks(text: Text, place: int) -> int:
    """Return the place of the next character that is no blank."""
    while (
        byte_at(text, place) == 0x20
        or byte_at(text, place) == 0x0A
        or byte_at(text, place) == 0x0D
        or byte_at(text, place) == 0x09
    ):
        place += 1
    return place


@kernel_noinline
def read_rows(text: Text, place: int, rows: Array, count: int, powers: Unsigned, scales: Array) -> tuple[int, int]:
    """Read a list of rows; return the place after it, or −1, and how many rows there are by then."""
    is_row = byte_at(text, place) == _OPEN
    place += 1
    while is_row:
        place = skip_blanks(text, place)
        is_row = byte_at(text, place) == _OPEN and count < rows.shape[0]
        column = 0
        while is_row and column < rows.shape[1]:
            place, number = read_number(text, skip_blanks(text, place + 1), powers, scales)
            is_row = place >= 0
            if is_row:
                rows[count, column] = number
                place = skip_blanks(text, place)
                column += 1
                is_row = byte_at(text, place) == (_COMMA if column < rows.shape[1] else _CLOSE)
        if is_row:
            count += 1
            place = skip_blanks(text, place + 1)
            is_row = byte_at(text, place) == _COMMA
            if byte_at(text, place) == _CLOSE:
                return place + 1, count
            place += 1
    return -1, count


@kernel_noinline
def read_request(text: Text, place: int, rows: Array, count: int, powers: Unsigned, scales: Array) -> tuple[int, int]:
    """Read a request up to its rows; return the place after them, or −1, and how many rows there are by then."""
    if byte_at(text, place) != _BEGIN:
        return -1, count
    place = skip_blanks(text, place + 1)
    if word_at(text, place) != _KEY or byte_at(text, place + 8) != _QUOTE:
        return -1, count
    place = skip_blanks(text, place + 9)
    if byte_at(text, place) != _COLON:
        return -1, count
    place, count = read_rows(text, skip_blanks(text, place + 1), rows, count, powers, scales)
    return skip_blanks(text, place) if place >= 0 else -1, count


@kernel_noinline
def find_end(text: Text, place: int) -> int:
    """Return the place after the object that a place lies in, or −1; lists and strings in it are passed over."""
    depth, is_string = 1, False
    while depth > 0 and place < len(text):
        character = byte_at(text, place)
        if character == _QUOTE:
            is_string = not is_string
        elif is_string:
            if character == _BACKSLASH:
                place += 1
        elif character == _BEGIN:
            depth += 1
        elif character == _END:
            depth -= 1
        place += 1
    return place if depth == 0 else -1


@kernel_holding_gil
def read_one_holding_gil(text: Text, rows: Array, powers: Unsigned, scales: Array) -> tuple[int, int]:
    """Read a request; return its rows, 0 where it is left alone, and the place of what follows them, 0 for nothing."""
    place, count = read_request(text, skip_blanks(text, 0), rows, 0, powers, scales)
    if place >= 0 and byte_at(text, place) == _COMMA:
        return count, place + 1
    if place < 0 or byte_at(text, place) != _END or skip_blanks(text, place + 1) != len(text):
        return 0, 0
    return count, 0


@kernel
def read_many(text: Text, rows: Array, ends: Integers, places: Integers, powers: Unsigned, scales: Array) -> int:
    """Read a list of requests; return how many there are, 0 where it is left alone.

    Request i has the rows from the end of the one before it to ends[i]; `places` has where what follows them begins and
    ends, with the closing bracket.
    """
    place, count, done = skip_blanks(text, 0), 0, 0
    is_next = byte_at(text, place) == _OPEN
    while is_next and done < ends.shape[0]:
        place, count = read_request(text, skip_blanks(text, place + 1), rows, count, powers, scales)
        if place < 0:
            return 0
        begin = end = place + 1
        if byte_at(text, place) == _COMMA:
            end = find_end(text, begin)
            if end < 0:
                return 0
        elif byte_at(text, place) != _END:
            return 0
        ends[done], places[done, 0], places[done, 1] = count, begin, end
        done += 1
        place = skip_blanks(text, end)
        is_next = byte_at(text, place) == _COMMA
    return done if byte_at(text, place) == _CLOSE and skip_blanks(text, place + 1) == len(text) else 0


@kernel_holding_gil
def read_many_holding_gil(
    text: Text, rows: Array, ends: Integers, places: Integers, powers: Unsigned, scales: Array
) -> int:
    """Read a list of requests, as `read_many` does."""
    return read_many(text, rows, ends, places, powers, scales)


def compile_readers() -> None:
    """Compile the readers, in a process that does it for another."""
    for reader in READERS:
        reader.compile()


_JOB = Job(__name__, compile_readers.__name__, {})
_TEXT = np.frombuffer(b" ", np.uint8)  # which cannot be written to: that is another type
_NUMBERS, _PAIRS = np.ones(1, np.int64), np.ones((1, 2), np.int64)
read_one = TieredKernel(
    read_one_holding_gil, lambda: (_TEXT, np.ones((1, 1)), POWERS, SCALES), label="the reader of requests", job=_JOB
)


def _make_list() -> tuple[Any, ...]:
    return _TEXT, np.ones((1, 1)), _NUMBERS, _PAIRS, POWERS, SCALES


read_list = TieredKernel(read_many, _make_list, label="the reader of batches", job=_JOB)
read_short_list = TieredKernel(read_many_holding_gil, _make_list, label="the reader of batches", job=_JOB)
READERS = (read_one, read_list, read_short_list)
