"""From a file to bandits: which ones there are, and each one's newest snapshot moved on by the rows after it."""

import apsw
import msgspec

from latecomer.errors import InputError
from latecomer.service import events
from latecomer.service.bandit import Bandit
from latecomer.service.births import Birth
from latecomer.service.log import DESK, GENESIS, Row, damaged, row_at, rows, seq_of
from latecomer.service.snapshots import keys, newest, thaw
from latecomer.service.writer import Heads


def births(connection: apsw.Connection, heads: Heads) -> tuple[dict[int, Birth], int]:
    """The bandits that live, by number, and the next free number: a fold over the desk's own chain."""
    alive: dict[int, Birth] = {}
    free = 1
    for row in rows(connection, DESK, after=0, before=GENESIS):
        try:
            free = max(free, _fold(alive, row) + 1)
        except (ValueError, KeyError, msgspec.MsgspecError) as error:
            raise damaged(DESK, row.seq, str(error)) from error
        heads[DESK] = (row.seq, row.checksum)
    return alive, free


def _fold(alive: dict[int, Birth], row: Row) -> int:
    """Move the list by one row; the largest number that it names."""
    largest = 0
    for kind, run in events.runs(row.payload, 0):
        if kind == events.CREATED and isinstance(run, bytes):
            birth = msgspec.json.decode(run, type=Birth)
            alive[birth.number] = birth
            largest = max(largest, birth.number)
        elif kind == events.DELETED and not isinstance(run, bytes):
            for number in run["number"].tolist():
                del alive[number]
    return largest


def bandit_of(connection: apsw.Connection, birth: Birth, heads: Heads) -> Bandit:
    """A bandit as the log leaves it; refuses, naming the row, what is missing or damaged."""
    number, found = birth.number, newest(connection, birth.number)
    seq, before, bandit = 0, GENESIS, None
    if found is not None:
        seq, before, snapshot = found
        anchor = row_at(connection, number, seq)
        if anchor is None or anchor.checksum != before:
            raise damaged(number, seq, "a snapshot stands on it, and it is missing or another")
        bandit = thaw(birth, snapshot, f"the snapshot at row {seq} of chain {number}")
    bandit = bandit or Bandit(birth, birth.learner())
    for row in rows(connection, number, after=seq, before=before):
        fold(bandit, row)
        seq, before = row.seq, row.checksum
    if seq < max([1, *map(seq_of, keys(connection, number))]):
        raise damaged(number, seq + 1, "it is missing")
    heads[number] = (seq, before)
    return bandit


def fold(bandit: Bandit, row: Row) -> None:
    """Move a bandit by one row."""
    try:
        bandit.fold(row.payload, row.stamp)
    except (ValueError, InputError) as error:
        raise damaged(row.bandit, row.seq, str(error)) from error
    if bandit.rounds != row.rounds:
        raise damaged(row.bandit, row.seq, f"it should end with round {row.rounds}, and ends with {bandit.rounds}")


def latest_stamp(bandits: list[Bandit]) -> int:
    """The latest stamp of any event."""
    return max((bandit.stamp for bandit in bandits), default=0)
