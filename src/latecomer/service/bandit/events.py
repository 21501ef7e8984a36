"""Events as bytes: what a row of the log holds, little-endian, one after the other, each begun by its kind.

| kind | what | bytes |
| --- | --- | --- |
| 1 | decision: index u32, round i64, stamp i64, score f64, chosen action d × f64, offer (d + 2) × i16 | 33 + 10d |
| 2 | decision with a request id: the same, the request's digest (16), its body's digest (8) | 57 + 10d |
| 3 | the chosen action's id, after its decision: length u16, UTF-8 | 3 + length |
| 4 | conversion: verdict u8, round i64, stamp i64, occurred i64, value f64 | 34 |
| 5 | revocation: verdict u8, round i64, stamp i64, occurred i64 | 26 |
| 6 | reports of unknown decisions: conversions u32, revocations u32 | 9 |
| 7 | the beginning of a bandit's chain: its epoch (8) | 9 |
| 8 | a bandit is created: length u32, JSON | 5 + length |
| 9 | a bandit is deleted: its number u32 | 5 |
| 10 | an id secret: the first round that it is in force for i64, the secret (16) | 25 |

The offer is `core.offers.summarise`: the mean of the actions on offer, and how they vary. Stamps are the store's
microseconds since 1970; `occurred` is `NOT_SAID` where the report does not say. Verdicts are the kernels' numbers: 0
accepted, 1 duplicate, 2 late, 3 unknown.
"""

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel_noinline
from latecomer.core.state import Integers

DECISION, DECISION_WITH_REQUEST, LABEL, CONVERSION, REVOCATION, UNKNOWN, BEGUN, CREATED, DELETED, SECRET = range(1, 11)

NOT_SAID = -(2**63)
DIGEST, BODY = 16, 8
SECRET_SIZE = 16

pack_decision = struct.Struct("<BIqqd").pack
pack_unknown = struct.Struct("<BII").pack
pack_label = struct.Struct("<BH").pack
pack_created = struct.Struct("<BI").pack
pack_secret = struct.Struct(f"<Bq{SECRET_SIZE}s").pack

_DECISION = [("kind", "u1"), ("index", "<u4"), ("round", "<i8"), ("stamp", "<i8"), ("score", "<f8")]
_REPORT = [("kind", "u1"), ("verdict", "u1"), ("round", "<i8"), ("stamp", "<i8"), ("occurred", "<i8")]

CONVERSIONS = np.dtype([*_REPORT, ("value", "<f8")])
REVOCATIONS = np.dtype(_REPORT)

Records = npt.NDArray[Any]


@cache
def layout(dim: int) -> dict[int, np.dtype[np.void]]:
    """The records of fixed size, by kind."""
    played = [*_DECISION, ("action", "<f8", (dim,)), ("offer", "<i2", (dim + 2,))]
    return {
        DECISION: np.dtype(played),
        DECISION_WITH_REQUEST: np.dtype([*played, ("request", f"V{DIGEST}"), ("body", f"V{BODY}")]),
        CONVERSION: CONVERSIONS,
        REVOCATION: REVOCATIONS,
        UNKNOWN: np.dtype([("kind", "u1"), ("conversions", "<u4"), ("revocations", "<u4")]),
        BEGUN: np.dtype([("kind", "u1"), ("epoch", "V8")]),
        DELETED: np.dtype([("kind", "u1"), ("number", "<u4")]),
        SECRET: np.dtype([("kind", "u1"), ("round", "<i8"), ("secret", f"V{SECRET_SIZE}")]),
    }


def text_event(kind: int, text: bytes) -> bytes:
    """An event of variable size, as it stands in a payload."""
    return (pack_label if kind == LABEL else pack_created)(kind, len(text)) + text


class Payload:
    """A payload taken apart; its events have numbers, 0, 1, … in their order.

    Parameters
    ----------
    payload
        The events of a row, or of rows that follow each other. `ValueError` where it ends amid an event or begins one
        of no kind.
    dim
        d; 0 for the store's own chain.
    """

    def __init__(self, payload: bytes, dim: int) -> None:
        self._data = np.frombuffer(payload, np.uint8)
        self._layout = layout(dim)
        self.kinds, self._starts = _apart(self._data, _sizes(dim))
        if self._starts[-1] != len(payload):
            raise ValueError(f"it holds no whole event at byte {self._starts[-1]}")

    def tobytes(self) -> bytes:
        """The payload, with what has been put into it."""
        return self._data.tobytes()

    def numbers(self, kind: int) -> Integers:
        """The numbers of all events of a kind; those with a request id are `DECISION`s too."""
        return np.flatnonzero((self.kinds == kind) | ((self.kinds == DECISION_WITH_REQUEST) & (kind == DECISION)))

    def records(self, kind: int, numbers: Integers | None = None) -> Records:
        """All events of a kind, or some, as an array of their own."""
        starts = self._starts[self.numbers(kind) if numbers is None else numbers]
        found = np.empty((len(starts), self._layout[kind].itemsize), np.uint8)
        _gather(self._data, starts, found)
        return found.view(self._layout[kind])[:, 0]

    def put(self, numbers: Integers, records: Records) -> None:
        """Replace the beginnings of as many events, or all of them."""
        if not self._data.flags.writeable:
            self._data = self._data.copy()
        whole = records.view(np.uint8).reshape(len(records), records.dtype.itemsize)
        _scatter(whole, self._starts[numbers], self._data)

    def text(self, number: int) -> bytes:
        """The text of an event that has one."""
        begin = self._starts[number] + 1 - _sizes(0)[self.kinds[number]]
        return self._data[begin : self._starts[number + 1]].tobytes()

    def without(self, numbers: Integers) -> bytes:
        """The payload without some of its events."""
        if not len(numbers):
            return self.tobytes()
        kept = np.setdiff1d(np.arange(len(self.kinds)), numbers)
        return b"".join(self._data[self._starts[i] : self._starts[i + 1]].tobytes() for i in kept)


def turns(families: npt.NDArray[np.uint8]) -> Iterator[tuple[int, slice]]:
    """Whose turn it is, in their order: the family, and which of its own members.

    >>> [(family, part.start, part.stop) for family, part in turns(np.array([1, 1, 4, 1], np.uint8))]
    [(1, 0, 2), (4, 0, 1), (1, 2, 3)]
    """
    ends = [*(np.flatnonzero(np.diff(families)) + 1).tolist(), len(families)]
    begin, had = 0, dict.fromkeys(families.tolist(), 0)
    for family, end in zip(families[[0, *ends[:-1]]].tolist() if len(families) else (), ends, strict=False):
        first = had[family]
        had[family] = first + end - begin
        yield family, slice(first, had[family])
        begin = end


@cache
def _sizes(dim: int) -> Integers:
    """The bytes of an event by its kind; 0 where there is none such, and minus those of its length where it has one."""
    sizes = np.zeros(256, np.int64)
    for kind, dtype in layout(dim).items():
        sizes[kind] = dtype.itemsize
    sizes[LABEL], sizes[CREATED] = -2, -4
    return sizes


@kernel_noinline
def _apart(data: npt.NDArray[np.uint8], sizes: Integers) -> tuple[npt.NDArray[np.uint8], Integers]:
    """The kinds of the events, where each begins, and, last, where the last whole one ends."""
    most = len(data) // 3  # an event has at least 3 bytes
    kinds, starts = np.empty(most, np.uint8), np.empty(most + 1, np.int64)
    at = count = 0
    while at < len(data):
        end = at + sizes[data[at]]
        if end < at:
            begin = at + 1 + at - end
            length = np.int64(0)
            for place in range(min(begin, len(data)) - 1, at, -1):
                length = length << 8 | np.int64(data[place])
            end = begin + length
        if end == at or end > len(data):
            break
        kinds[count], starts[count] = data[at], at
        at, count = end, count + 1
    starts[count] = at
    return kinds[:count].copy(), starts[: count + 1].copy()


@kernel_noinline
def _gather(data: npt.NDArray[np.uint8], starts: Integers, found: npt.NDArray[np.uint8]) -> None:
    for i in range(len(found)):
        for j in range(found.shape[1]):
            found[i, j] = data[starts[i] + j]


@kernel_noinline
def _scatter(found: npt.NDArray[np.uint8], starts: Integers, data: npt.NDArray[np.uint8]) -> None:
    for i in range(len(found)):
        for j in range(found.shape[1]):
            data[starts[i] + j] = found[i, j]
