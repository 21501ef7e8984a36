"""Logged offers: the actions that a decision was made among, so that other policies can be evaluated on the log.

An offer has the rows in single precision, or the features by name where the rows come from those, and the ids. It is
compressed where that pays: rows of few nonzero numbers and texts, not dense rows. An offer equal to that of a recent
decision is logged as its distance, five bytes.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.service.bandit import events

LONGEST_REPEAT = 1_000
"""Rounds that an equal offer may lie back: pruning a log leaves at most so many decisions without their offers."""
_RAW, _DEFLATED = b"\x00", b"\x01"
_ROWS_ALONE = _RAW + b"\x92"
"""The first bytes of an offer that is not compressed and has two parts, ids and rows."""
_LEVEL = 1

ROW_TYPE = np.dtype("<f4")
"""The numbers of rows as an offer has them."""
Features = Mapping[str, Any]
Described = tuple[Features, Sequence[Features]]
"""The features of the context, and of each action."""


class Offer(Struct, frozen=True, array_like=True):
    """The actions of one decision: `rows` or, where features were given, `context` and `features`.

    Of a decision among a catalogue: its `version`, the `ids` of the candidates where those were given, and the ids that
    were excluded.
    """

    ids: Sequence[str] | None = None
    rows: bytes = b""
    context: dict[str, Any] | None = None
    features: Sequence[dict[str, Any]] | None = None
    version: int | None = None
    excluded: Sequence[str] = ()

    def read_rows(self, dim: int) -> npt.NDArray[np.float32]:
        """Return the rows, (K, d); `ValueError` where they do not fit."""
        return np.frombuffer(self.rows, ROW_TYPE).reshape(-1, dim)


_decoder = msgspec.msgpack.Decoder(Offer)


def pack_offer(actions: Array, ids: Sequence[str] | None, described: Described | None) -> bytes:
    """Return an offer as bytes; `described` are the context and the actions' features, where rows come from them."""
    if described is None:
        return pack_rows(ids, actions.astype(ROW_TYPE).tobytes())
    return _deflate(msgspec.msgpack.encode((ids, b"", *described)))


def pack_rows(ids: Sequence[str] | None, rows: bytes) -> bytes:
    """Return the offer of actions whose rows, in single precision, are given as bytes."""
    data = msgspec.msgpack.encode((ids, rows))
    return _deflate(data) if data.count(0) * 8 > len(data) else _RAW + data


def _deflate(data: bytes) -> bytes:
    """Compress an offer where that makes it shorter."""
    packed = zlib.compress(data, _LEVEL, wbits=-zlib.MAX_WBITS)
    return _DEFLATED + packed if len(packed) < len(data) else _RAW + data


def pack_catalogue_offer(
    version: int, candidates: Sequence[str] | None, excluded: Sequence[str], context: Features | None
) -> bytes:
    """Return the offer of a decision among a catalogue as bytes."""
    return _RAW + msgspec.msgpack.encode((candidates, b"", context, None, version, excluded))


def unpack_offer(data: bytes) -> Offer:
    """Return the offer that `pack_offer` packed; `ValueError` where it is none."""
    try:
        plain = zlib.decompress(data[1:], wbits=-zlib.MAX_WBITS) if data[:1] == _DEFLATED else data[1:]
        return _decoder.decode(plain)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"it has an offer that cannot be read: {error}") from None


class _ContextAlone(Struct, array_like=True):
    """An offer of which only the context is decoded."""

    ids: msgspec.Raw
    rows: msgspec.Raw
    context: dict[str, Any] | None = None
    features: msgspec.Raw = msgspec.Raw()


_context_decoder = msgspec.msgpack.Decoder(_ContextAlone)


def read_contexts(payload: events.Payload) -> dict[int, dict[str, Any] | int]:
    """Return the logged contexts by the place of their decision; for a repeated offer, the distance to its round."""
    if not payload.present & {events.OFFER, events.REPEATED_OFFER}:
        return {}
    decisions = payload.numbers(events.DECISION)
    found: dict[int, dict[str, Any] | int] = {}
    numbers = payload.numbers(events.OFFER)
    numbers = numbers[(payload.peek_texts(numbers, 2) != np.frombuffer(_ROWS_ALONE, np.uint8)).any(axis=1)]
    for place, number in zip((np.searchsorted(decisions, numbers) - 1).tolist(), numbers.tolist(), strict=True):
        context = read_context(payload.text(number))
        if context:
            found[place] = context
    numbers = payload.numbers(events.REPEATED_OFFER)
    distances = payload.records(events.REPEATED_OFFER)["distance"].tolist()
    found.update(zip((np.searchsorted(decisions, numbers) - 1).tolist(), distances, strict=True))
    return dict(sorted(found.items()))


def read_context(data: bytes) -> dict[str, Any] | None:
    """Return the context of a packed offer, where it has one."""
    if data[:2] == _ROWS_ALONE:
        return None
    try:
        plain = zlib.decompress(data[1:], wbits=-zlib.MAX_WBITS) if data[:1] == _DEFLATED else data[1:]
        return _context_decoder.decode(plain).context
    except (zlib.error, msgspec.MsgspecError):
        return None  # no state depends on it; an export says so


class OfferWriter:
    """Writes the offers of one bandit, an equal one by its distance."""

    def __init__(self) -> None:
        self._last, self._round = b"", 0

    def pack(self, round: int, offer: bytes) -> bytes:
        """Return the event of the offer of a round."""
        distance = round - self._round
        if offer == self._last and 0 < distance <= LONGEST_REPEAT:
            return events.pack_repeated_offer(events.REPEATED_OFFER, distance)
        self._last, self._round = offer, round
        return events.pack_text(events.OFFER, offer)


class OfferReader:
    """Reads the offers of a log in the order of its rounds; keeps those that a later one may refer to."""

    def __init__(self) -> None:
        self._recent: dict[int, Offer] = {}

    def add(self, round: int, data: bytes) -> Offer:
        """Return the offer of a round that has its own."""
        offer = unpack_offer(data)
        while self._recent and (oldest := next(iter(self._recent))) < round - LONGEST_REPEAT:  # rounds ascend
            del self._recent[oldest]
        self._recent[round] = offer
        return offer

    def find(self, round: int, distance: int) -> Offer | None:
        """Return the offer that a round shares with an earlier one; None where that one has been pruned."""
        return self._recent.get(round - distance)
