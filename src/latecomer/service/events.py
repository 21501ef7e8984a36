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

The offer is `core.offers.summarise`: the mean of the actions on offer, and how they vary. Stamps are the desk's
microseconds since 1970; `occurred` is `NOT_SAID` where the report does not say. Verdicts are the kernels' numbers: 0
accepted, 1 duplicate, 2 late, 3 unknown.
"""

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

DECISION, ASKED, LABEL, CONVERSION, REVOCATION, UNKNOWN, BEGUN, CREATED, DELETED = range(1, 10)

NOT_SAID = -(2**63)
DIGEST, BODY = 16, 8
BEGUN_SIZE = 9

pack_decision = struct.Struct("<BIqqd").pack
pack_unknown = struct.Struct("<BII").pack
pack_label = struct.Struct("<BH").pack
pack_created = struct.Struct("<BI").pack

_VARIABLE = {LABEL: struct.Struct("<xH"), CREATED: struct.Struct("<xI")}
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
        ASKED: np.dtype([*played, ("request", f"V{DIGEST}"), ("body", f"V{BODY}")]),
        CONVERSION: CONVERSIONS,
        REVOCATION: REVOCATIONS,
        UNKNOWN: np.dtype([("kind", "u1"), ("conversions", "<u4"), ("revocations", "<u4")]),
        BEGUN: np.dtype([("kind", "u1"), ("epoch", "V8")]),
        DELETED: np.dtype([("kind", "u1"), ("number", "<u4")]),
    }


def text_event(kind: int, text: bytes) -> bytes:
    """An event of variable size, as it stands in a payload."""
    return (pack_label if kind == LABEL else pack_created)(kind, len(text)) + text


def runs(payload: bytes, dim: int) -> Iterator[tuple[int, Records | bytes]]:
    """The events of a payload: records of one kind in a row as one array, texts one by one.

    Raises `ValueError` where the bytes end amid an event or begin one of no kind.
    """
    kinds, at = np.frombuffer(payload, np.uint8), 0
    while at < len(payload):
        kind = payload[at]
        if kind in _VARIABLE:
            begin = at + _VARIABLE[kind].size
            (length,) = _VARIABLE[kind].unpack(payload[at:begin].ljust(_VARIABLE[kind].size, b"\xff"))
            at = begin + length
            if at > len(payload):
                raise ValueError("it ends amid a text")
            yield kind, payload[begin:at]
            continue
        dtype = layout(dim).get(kind)
        if dtype is None or at + dtype.itemsize > len(payload):
            raise ValueError(f"it holds no whole event at byte {at}")
        count = _run_length(kinds[at :: dtype.itemsize], kind, (len(payload) - at) // dtype.itemsize)
        yield kind, np.frombuffer(payload, dtype, count, at)
        at += count * dtype.itemsize


def _run_length(starts: npt.NDArray[np.uint8], kind: int, limit: int) -> int:
    """How many records of that kind begin one after the other; looks further only as far as they go on."""
    length, reach = 1, 16
    while length < limit:
        others = np.flatnonzero(starts[length : min(limit, length + reach)] != kind)
        if len(others):
            return length + int(others[0])
        length, reach = min(limit, length + reach), reach * 4
    return length
