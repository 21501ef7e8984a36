"""What if the window were 3 days, or the policy another: a bandit's log, folded into a new bandit of the same file.

Decisions stay what they were, and their rounds too; reports are judged anew, late ones included. The new bandit knows
the old one's decision ids and requests, so that traffic can move over to it while conversions are still on their way.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from latecomer.errors import DamagedFileError, FileError, InputError
from latecomer.service.bandit import events
from latecomer.service.bandit.descriptor import UNFINISHED, BanditDescriptor
from latecomer.service.bandit.events import Payload
from latecomer.service.messages import BanditSpec, BanditStats
from latecomer.service.storage.recovery import read_descriptors
from latecomer.service.storage.rows import Row, damaged, first_row, rows
from latecomer.service.storage.snapshots import newest_secrets
from latecomer.service.store import Store

_AHEAD = 64
"""Rows that may wait to be written."""


def replay(store: Store, source: str, target: str, *, partial: bool = False, **changes: Any) -> BanditStats:
    """Replay a bandit's log into a new one; what became of it.

    Parameters
    ----------
    store
        The owner of the file; nobody else writes meanwhile.
    source, target
        The bandit to read, and the one to make.
    partial
        Whether what is left will do: the end of a log that has been pruned, and what comes before a damaged row.
        Refused without it.
    changes
        `window`, `policy` or `parameters` of the new one, where they differ.
    """
    connection = store.reader
    alive, _ = read_descriptors(connection, {})
    descriptor = next((descriptor for descriptor in alive.values() if descriptor.name == source), None)
    store.describe(source) if partial else store.info(source)
    if descriptor is None or target in {info.name for info in store.bandits()}:
        raise InputError(f"the new bandit needs a name of its own; {target!r} is taken")
    first, lacks = _beginning(connection, descriptor, partial)
    spec = msgspec.structs.replace(descriptor.spec, **_given(descriptor.spec, changes))
    store.create(target, spec, skipped=descriptor.skipped + lacks)
    tickets, before = [], _secret_before(connection, descriptor, lacks)
    for row in _readable(rows(connection, descriptor.number, after=first.first - 1, before=first.before), partial):
        try:
            payload, gone = _heirs(row.payload, descriptor.spec.dim, lacks)
            ticket = store.adopt(UNFINISHED + target, before + payload, count=row.count - gone, stamp=row.stamp)
        except ValueError as error:
            raise damaged(row.bandit, row.seq, str(error)) from error
        before = b""
        tickets.append(ticket)
        if len(tickets) > _AHEAD:
            store.wait(tickets.pop(0))
    for ticket in tickets:
        store.wait(ticket)
    store.finish(target)
    return store.stats(target)


def _readable(found: Iterator[Row], partial: bool) -> Iterator[Row]:
    """Rows up to the first that is damaged, where that will do."""
    try:
        yield from found
    except DamagedFileError:
        if not partial:
            raise


def _given(spec: BanditSpec, changes: dict[str, Any]) -> dict[str, Any]:
    """What was given; another policy has other parameters, so the old ones' are not taken over."""
    given = {name: value for name, value in changes.items() if value is not None}
    if given.get("policy", spec.policy) != spec.policy:
        given.setdefault("parameters", {})
    return given


def _beginning(connection: Any, descriptor: BanditDescriptor, partial: bool) -> tuple[Row, int]:
    """The first row that is left, and how many rounds came before it."""
    first = first_row(connection, descriptor.number)
    if first is None:
        raise FileError(f"the log of {descriptor.name!r} has no row left to replay")
    if first.first == 1:
        return first, 0
    if not partial:
        raise FileError(
            f"the log of {descriptor.name!r} has been pruned, its first rounds are gone: --partial begins with the rest"
        )
    for row in rows(connection, descriptor.number, after=first.first - 1, before=None):
        decided = Payload(row.payload, descriptor.spec.dim).records(events.DECISION)
        if len(decided):
            return first, int(decided["round"][0]) - 1  # not `row`, which may be bound with those before it meanwhile
    raise FileError(f"the log of {descriptor.name!r} has no decision left to replay")


def _secret_before(connection: Any, descriptor: BanditDescriptor, lacks: int) -> bytes:
    """The id secret that was in force before the first round that is left, as an event."""
    known = [secret for first, secret in newest_secrets(connection, descriptor.number) if first <= lacks]
    return events.pack_secret(events.SECRET, 1, known[-1]) if known else b""


def _heirs(payload: bytes, dim: int, lacks: int) -> tuple[bytes, int]:
    """Events of the old one as the new one could have had them, and how many it could not.

    It has begun by itself, and lacks its first rounds.
    """
    told = Payload(payload, dim)
    gone = [told.numbers(events.BEGUN)]
    for kind in (events.DECISION, events.CONVERSION, events.REVOCATION, events.SECRET) if lacks else ():
        numbers = told.numbers(kind)
        records = told.records(kind)
        records["round"] -= lacks
        told.put(numbers, records)
        gone.append(numbers[records["round"] <= 0])
    left_out = np.concatenate(gone)
    return told.without(left_out), len(left_out)
