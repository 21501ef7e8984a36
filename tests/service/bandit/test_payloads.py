"""Parsed payloads, compared with a reader that goes byte by byte."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.service.bandit import events
from latecomer.service.bandit.events import Payload

DIM = 2
SIZES = {1: 33 + 10 * DIM, 2: 57 + 10 * DIM, 4: 34, 5: 26, 6: 9, 7: 9, 9: 5, 10: 25, 21: 18, 22: 17}
"""As docs/reference/service-store.md has them; texts (3, 8, 20) have sizes of their own."""


def fixed(kind: int) -> st.SearchStrategy[bytes]:
    size = SIZES[kind] - 1
    return st.binary(min_size=size, max_size=size).map(lambda rest: bytes([kind]) + rest)


TEXTS = st.binary(max_size=300)
EVENT = st.one_of(
    *map(fixed, SIZES),
    TEXTS.map(lambda text: struct.pack("<BH", 3, len(text)) + text),
    TEXTS.map(lambda text: struct.pack("<BI", 8, len(text)) + text),
    TEXTS.map(lambda text: struct.pack("<BI", 20, len(text)) + text),
)


@given(st.lists(EVENT, max_size=30))
def test_payload_finds_every_event(made: list[bytes]) -> None:
    parsed = Payload(b"".join(made), DIM)
    assert parsed.kinds.tolist() == [event[0] for event in made]
    for kind in SIZES:
        mine = [event for event in made if event[0] == kind or (event[0] == 2 and kind == 1)]
        assert parsed.records(kind).tobytes() == b"".join(event[: SIZES[kind]] for event in mine)
        assert [made[number] for number in parsed.numbers(kind)] == mine
    for number, event in enumerate(made):
        if event[0] in (3, 8, 20):
            assert parsed.text(number) == event[3 if event[0] == 3 else 5 :]


@given(st.lists(EVENT, min_size=1, max_size=10), st.data())
def test_truncated_payload_is_refused_by_byte(made: list[bytes], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(made[-1]) - 1))
    begin = sum(map(len, made[:-1]))
    with pytest.raises(ValueError, match=f"no whole event at byte {begin}$"):
        Payload(b"".join(made)[: begin + cut], DIM)


@pytest.mark.parametrize("kind", [0, 14, 255])
def test_payload_of_unknown_kind_is_refused_by_byte(kind: int) -> None:
    with pytest.raises(ValueError, match=r"no whole event at byte 9$"):
        Payload(bytes([events.UNKNOWN]) + bytes(8) + bytes([kind]) * 50, DIM)


def test_empty_payload_has_no_events() -> None:
    parsed = Payload(b"", DIM)
    assert (len(parsed.kinds), len(parsed.records(events.DECISION)), parsed.to_bytes()) == (0, 0, b"")


@given(st.lists(EVENT, min_size=1, max_size=30), st.data())
def test_payload_without_and_replace(made: list[bytes], data: st.DataObject) -> None:
    parsed = Payload(payload := b"".join(made), DIM)
    gone = data.draw(st.sets(st.integers(0, len(made) - 1)))
    kept = [event for number, event in enumerate(made) if number not in gone]
    assert parsed.without(np.array(sorted(gone), np.int64)) == b"".join(kept)
    for kind in (events.DECISION, events.CONVERSION):
        numbers, records = parsed.numbers(kind), parsed.records(kind)
        records["round"] = np.arange(len(records))
        parsed.replace(numbers, records)
        assert parsed.records(kind)["round"].tolist() == list(range(len(records)))
    assert len(parsed.to_bytes()) == len(payload)
    assert parsed.records(events.REVOCATION).tobytes() == Payload(payload, DIM).records(events.REVOCATION).tobytes()


@given(st.lists(st.sampled_from([1, 4, 5]), max_size=40))
def test_split_runs_yields_every_event_once_in_order(families: list[int]) -> None:
    taken = [
        (family, place) for family, part in events.split_runs(np.array(families, np.uint8)) for place in _places(part)
    ]
    assert [family for family, _ in taken] == families
    for family in (1, 4, 5):
        assert [place for mine, place in taken if mine == family] == list(range(families.count(family)))


def _places(part: slice) -> range:
    return range(part.start, part.stop)
