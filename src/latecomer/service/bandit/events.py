"""Events as bytes: the payload of a log row is events one after the other, little-endian, each led by its kind.

| kind | event | bytes |
| --- | --- | --- |
| 1 | decision: index u32, round i64, stamp i64, score f64, action d × f64, action summary (d + 2) × i16 | 33 + 10d |
| 2 | decision with a request id: the same, the request's digest (16), its body's digest (8) | 57 + 10d |
| 3 | the chosen action's id, after its decision: length u16, UTF-8 | 3 + length |
| 4 | conversion: verdict u8, round i64, stamp i64, occurred i64, value f64 | 34 |
| 5 | revocation: verdict u8, round i64, stamp i64, occurred i64 | 26 |
| 6 | reports of unknown decisions: conversions u32, revocations u32 | 9 |
| 7 | the beginning of a bandit's chain: its uid (8) | 9 |
| 8 | a bandit is created: length u32, JSON | 5 + length |
| 9 | a bandit is deleted: its number u32 | 5 |
| 10 | an id secret: the first round that it is in force for i64, the secret (16) | 25 |
| 11 | the probability of the choice f64, negative where the control made it, after its decision | 9 |
| 12 | the offer (`bandit.offers`), after its decision: length u32, bytes | 5 + length |
| 13 | the offer equals that of an earlier decision: how many rounds earlier u32, after its decision | 5 |
| 20 | a deferred decision (`bandit.deferrals`): length u32, MessagePack | 5 + length |
| 21 | activation: verdict u8, number i64, stamp i64; the decision that it becomes follows | 18 |
| 22 | the digest of the decision's subject (16), after its decision | 17 |
| 23 | a change of the catalogue (`bandit.catalogue`): length u32, MessagePack | 5 + length |
| 24 | a position in a ranking u8, of how many u8, the probability of inclusion f64 or NaN, examination f64 | 19 |
| 25 | the id that the decision got when it was deferred, after its decision: length u32, UTF-8 | 5 + length |
| 30 | the chosen action's place in the request u32, where some were left out, after its decision | 5 |
| 31 | the probabilities of all actions of the request, after its decision: length u32, f64 each | 5 + length |
| 40 | the bandit is frozen, or not any more: 1 or 0 u8, stamp i64 | 10 |
| 50 | conversion with an amount or an id: as 4, its value the amount; credit f64, id's digest (16), joined u8 | 59 |
| 51 | revocation of a conversion by its id: as 5; credit f64, the id's digest (16) | 50 |
| 52 | a stage that a decision has reached: as 5; its name in ASCII, filled up with zeros (32) | 58 |
| 53 | correction of a credit: as 4, its value the amount; credit f64 | 42 |

The action summary is `core.action_summary`: the mean of the actions to choose from, and how they vary. Stamps are the
store's microseconds since 1970; `occurred` is `NOT_GIVEN` where the report does not say. Verdicts are the kernels'
numbers: 0 accepted, 1 duplicate, 2 late, 3 unknown. A credit is what the decision has been credited with since that
report, in [0, 1] and negative for nothing; the digest is zeros where the conversion has no id. `joined` is 1 where it
is the same conversion as the one before it, credited to another decision too.
"""

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.jit import kernel
from latecomer.core.state import Integers
from latecomer.tiers.tiered_kernel import TieredKernel

DECISION, DECISION_WITH_REQUEST, LABEL, CONVERSION, REVOCATION, UNKNOWN, BEGUN, CREATED, DELETED, SECRET = range(1, 11)
PROPENSITY, OFFER, REPEATED_OFFER = range(11, 14)
DEFERRED, ACTIVATION, SUBJECT, CATALOGUE, RANKED, DEFERRED_ID = range(20, 26)
PLACE, PROBABILITIES = 30, 31
FREEZE = 40
PURCHASE, RETURN, STAGE, CORRECTION = range(50, 54)
ANNOTATIONS = (RANKED, PLACE, PROBABILITIES, LABEL, PROPENSITY, OFFER, REPEATED_OFFER, SUBJECT, DEFERRED_ID)
"""Events that say more of the decision before them."""

NOT_GIVEN = -(2**63)
DIGEST, BODY = 16, 8
SECRET_SIZE = 16

pack_decision = struct.Struct("<BIqqd").pack
pack_unknown = struct.Struct("<BII").pack
NOTHING = pack_unknown(UNKNOWN, 0, 0)
"""An event of no effect: an answer that is given again waits for the commit of its first."""
pack_label = struct.Struct("<BH").pack
pack_created = struct.Struct("<BI").pack
pack_propensity = struct.Struct("<Bd").pack
pack_repeated_offer = struct.Struct("<BI").pack
pack_place = struct.Struct("<BI").pack
pack_ranked = struct.Struct("<BBBdd").pack
pack_activation = struct.Struct("<BBqq").pack
pack_freeze = struct.Struct("<BBq").pack
pack_secret = struct.Struct(f"<Bq{SECRET_SIZE}s").pack

_DECISION = [("kind", "u1"), ("index", "<u4"), ("round", "<i8"), ("stamp", "<i8"), ("score", "<f8")]
_REPORT = [("kind", "u1"), ("verdict", "u1"), ("round", "<i8"), ("stamp", "<i8"), ("occurred", "<i8")]

CONVERSIONS = np.dtype([*_REPORT, ("value", "<f8")])
REVOCATIONS = np.dtype(_REPORT)
_CREDIT = [("credit", "<f8"), ("conversion", f"V{DIGEST}")]
PURCHASES = np.dtype([*CONVERSIONS.descr, *_CREDIT, ("joined", "u1")])
RETURNS = np.dtype([*_REPORT, *_CREDIT])
CORRECTIONS = np.dtype([*CONVERSIONS.descr, _CREDIT[0]])
STAGES = np.dtype([*_REPORT, ("stage", "S32")])
REPORTS = (CONVERSION, REVOCATION, PURCHASE, RETURN, CORRECTION)
"""Events of conversions, and of what takes them back or corrects them."""

Records = npt.NDArray[Any]


@cache
def get_layout(dim: int) -> dict[int, np.dtype[np.void]]:
    """Return the dtypes of events of fixed size, by kind."""
    decision = [*_DECISION, ("action", "<f8", (dim,)), ("summary", "<i2", (dim + 2,))]
    return {
        DECISION: np.dtype(decision),
        DECISION_WITH_REQUEST: np.dtype([*decision, ("request", f"V{DIGEST}"), ("body", f"V{BODY}")]),
        CONVERSION: CONVERSIONS,
        REVOCATION: REVOCATIONS,
        PURCHASE: PURCHASES,
        RETURN: RETURNS,
        STAGE: STAGES,
        CORRECTION: CORRECTIONS,
        UNKNOWN: np.dtype([("kind", "u1"), ("conversions", "<u4"), ("revocations", "<u4")]),
        BEGUN: np.dtype([("kind", "u1"), ("uid", "V8")]),
        DELETED: np.dtype([("kind", "u1"), ("number", "<u4")]),
        SECRET: np.dtype([("kind", "u1"), ("round", "<i8"), ("secret", f"V{SECRET_SIZE}")]),
        PROPENSITY: np.dtype([("kind", "u1"), ("signed", "<f8")]),
        REPEATED_OFFER: np.dtype([("kind", "u1"), ("distance", "<u4")]),
        RANKED: np.dtype(
            [("kind", "u1"), ("position", "u1"), ("size", "u1"), ("included", "<f8"), ("examination", "<f8")]
        ),
        PLACE: np.dtype([("kind", "u1"), ("place", "<u4")]),
        SUBJECT: np.dtype([("kind", "u1"), ("digest", "V16")]),
        FREEZE: np.dtype([("kind", "u1"), ("frozen", "u1"), ("stamp", "<i8")]),
        ACTIVATION: np.dtype([("kind", "u1"), ("verdict", "u1"), ("number", "<i8"), ("stamp", "<i8")]),
    }


_NONE = np.empty(0, np.int64)


def pack_text(kind: int, text: bytes) -> bytes:
    """Return an event that consists of a length and bytes: a label, a creation or an offer."""
    return (pack_label if kind == LABEL else pack_created)(kind, len(text)) + text


class Payload:
    """A parsed payload; its events are numbered 0, 1, … in their order.

    Parameters
    ----------
    payload
        The events of a row, or of consecutive rows. `ValueError` where it ends inside an event, or has an event of no
        known kind.
    dim
        d; 0 for the store's own chain.
    """

    def __init__(self, payload: bytes, dim: int) -> None:
        self._data = np.frombuffer(payload, np.uint8)
        self._layout = get_layout(dim)
        self.kinds, self._starts = _find_events.prepare(len(payload) // 16)(self._data, _get_sizes(dim))
        if self._starts[-1] != len(payload):
            raise ValueError(f"it holds no whole event at byte {self._starts[-1]}")
        self.present = frozenset(self.kinds.tolist())
        """The kinds of events that it has"""
        self._numbers: dict[int, Integers] = {}

    def to_bytes(self) -> bytes:
        """Return the payload, with the replacements that were made."""
        return self._data.tobytes()

    def numbers(self, kind: int) -> Integers:
        """Return the numbers of all events of a kind; `DECISION` includes those with a request id."""
        found = self._numbers.get(kind)
        if found is None:
            wanted = {DECISION, DECISION_WITH_REQUEST} if kind == DECISION else {kind}
            is_found = [self.kinds == present for present in wanted & self.present]
            found = self._numbers[kind] = np.flatnonzero(sum(is_found)) if is_found else _NONE
        return found

    def records(self, kind: int, numbers: Integers | None = None) -> Records:
        """Return all events of a kind, or those with the given numbers, as an array of records."""
        chosen = self.numbers(kind) if numbers is None else numbers
        if not len(chosen):
            return np.empty(0, self._layout[kind])
        starts = self._starts[chosen]
        found = np.empty((len(starts), self._layout[kind].itemsize), np.uint8)
        _gather_records.prepare(found.size // 16)(self._data, starts, found)
        return found.view(self._layout[kind])[:, 0]

    def replace(self, numbers: Integers, records: Records) -> None:
        """Overwrite the events with the given numbers by these records."""
        if not self._data.flags.writeable:
            self._data = self._data.copy()
        whole = records.view(np.uint8).reshape(len(records), records.dtype.itemsize)
        _scatter_records.prepare(whole.size // 16)(whole, self._starts[numbers], self._data)

    def text(self, number: int) -> bytes:
        """Return the bytes of a label, a creation or an offer."""
        begin = self._starts[number] + 1 - _get_sizes(0)[self.kinds[number]]
        return self._data[begin : self._starts[number + 1]].tobytes()

    def texts(self, numbers: Integers) -> list[bytes]:
        """Return the bytes of labels, creations or offers: `text` of each."""
        if not len(numbers):
            return []
        data, begins = self._data.tobytes(), self._starts[numbers] + 1 - _get_sizes(0)[self.kinds[numbers]]
        return [data[i:j] for i, j in zip(begins.tolist(), self._starts[numbers + 1].tolist(), strict=True)]

    def peek_texts(self, numbers: Integers, size: int) -> npt.NDArray[np.uint8]:
        """Return the first bytes of labels, creations or offers, a row for each; they must have so many."""
        begins = self._starts[numbers] + 1 - _get_sizes(0)[self.kinds[numbers]]
        found: npt.NDArray[np.uint8] = self._data[np.minimum(begins[:, None] + np.arange(size), len(self._data) - 1)]
        return found

    def without(self, numbers: Integers) -> bytes:
        """Return the payload without the events of the given numbers."""
        if not len(numbers):
            return self.to_bytes()
        kept = np.setdiff1d(np.arange(len(self.kinds)), numbers)
        return b"".join(self._data[self._starts[i] : self._starts[i + 1]].tobytes() for i in kept)


def split_runs(kinds: npt.NDArray[np.uint8]) -> Iterator[tuple[int, slice]]:
    """Split events into runs of one kind; yield the kind, and the run as a slice of that kind's own events.

    >>> [(kind, part.start, part.stop) for kind, part in split_runs(np.array([1, 1, 4, 1], np.uint8))]
    [(1, 0, 2), (4, 0, 1), (1, 2, 3)]
    """
    ends = [*(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    begin, seen = 0, dict.fromkeys(kinds.tolist(), 0)
    for kind, end in zip(kinds[[0, *ends[:-1]]].tolist() if len(kinds) else (), ends, strict=False):
        first = seen[kind]
        seen[kind] = first + end - begin
        yield kind, slice(first, seen[kind])
        begin = end


@cache
def _get_sizes(dim: int) -> Integers:
    """Return the bytes of an event by kind: 0 for no such kind, and minus the bytes of the length field of a text."""
    sizes = np.zeros(256, np.int64)
    for kind, dtype in get_layout(dim).items():
        sizes[kind] = dtype.itemsize
    sizes[LABEL] = -2
    sizes[[CREATED, OFFER, DEFERRED, CATALOGUE, DEFERRED_ID, PROBABILITIES]] = -4
    return sizes


@kernel
def _find(data: npt.NDArray[np.uint8], sizes: Integers) -> tuple[npt.NDArray[np.uint8], Integers]:
    """Return the kinds of the events, and where each begins; the last offset is where the last whole event ends."""
    most = len(data) // 3  # an event has at least 3 bytes
    kinds, starts = np.empty(most, np.uint8), np.empty(most + 1, np.int64)
    at = count = 0
    while at < len(data):
        end = at + sizes[data[at]]
        if end < at:
            begin = at + 1 + at - end
            length = 0
            for place in range(min(begin, len(data)) - 1, at, -1):
                length = length * 256 + int(data[place])
            end = begin + length
        if end == at or end > len(data):
            break
        kinds[count], starts[count] = data[at], at
        at, count = end, count + 1
    starts[count] = at
    return kinds[:count].copy(), starts[: count + 1].copy()


@kernel
def _gather(data: npt.NDArray[np.uint8], starts: Integers, found: npt.NDArray[np.uint8]) -> None:
    for i in range(len(found)):
        for j in range(found.shape[1]):
            found[i, j] = data[starts[i] + j]


@kernel
def _scatter(found: npt.NDArray[np.uint8], starts: Integers, data: npt.NDArray[np.uint8]) -> None:
    for i in range(len(found)):
        for j in range(found.shape[1]):
            data[starts[i] + j] = found[i, j]


_BYTES, _PLACES = np.ones(1, np.uint8), np.ones(1, np.int64)
_find_events = TieredKernel(_find, lambda: (_BYTES, _PLACES), label="the reader of events")
_gather_records = TieredKernel(
    _gather, lambda: (_BYTES, _PLACES, np.ones((1, 1), np.uint8)), label="the reader of events"
)
_scatter_records = TieredKernel(
    _scatter, lambda: (np.ones((1, 1), np.uint8), _PLACES, _BYTES), label="the writer of events"
)
