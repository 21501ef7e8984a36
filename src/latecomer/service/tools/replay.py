"""Replay a bandit's log into a new bandit of the same store, with another window or policy.

Decisions and their rounds stay as they were; reports get new verdicts, late ones included. The new bandit knows the old
one's decision ids and requests, so that traffic can move to it while conversions are still on their way.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from latecomer.errors import DamagedFileError, FileError, InputError
from latecomer.service.bandit import events
from latecomer.service.bandit.apply import apply_foreign_payload
from latecomer.service.bandit.descriptor import UNFINISHED_PREFIX, BanditDescriptor
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.log_interface import Log, LogRow, Ticket
from latecomer.service.messages import BanditStats
from latecomer.service.storage.rows import make_row_error
from latecomer.service.store import Store

_MAX_WAITING = 64
"""Rows that may wait to be written."""


def replay(store: Store, source: str, target: str, *, partial: bool = False, **changes: Any) -> BanditStats:
    """Replay a bandit's log into a new bandit; return the new one's statistics.

    Parameters
    ----------
    store
        The store; nobody else changes it meanwhile.
    source, target
        The bandit to read, and the one to create.
    partial
        Whether to accept the rest of a log that has been pruned, or the rows before a damaged one. Refused otherwise.
    changes
        `window`, `policy` or `parameters` of the new one, where they differ.
    """
    store.describe(source) if partial else store.info(source)
    descriptor = store.registry.find_descriptor(source)
    if descriptor is None or target in {info.name for info in store.list_bandits()}:
        raise InputError(f"the new bandit needs a name of its own; {target!r} is taken")
    lacking = _count_lacking_rounds(store.log, descriptor, partial)
    spec = msgspec.structs.replace(descriptor.spec, **_select_changes(descriptor.spec, changes))
    store.create(target, spec, skipped=descriptor.skipped + lacking)
    tickets, secret = [], _find_secret(store.log, descriptor, lacking)
    for row in _read_rows(store.log, descriptor, partial):
        try:
            payload, removed = _translate(row.payload, descriptor.spec.dim, lacking)
            tickets.append(_append(store, target, secret + payload, count=row.count - removed, stamp=row.stamp))
        except ValueError as error:
            raise make_row_error(row.bandit, row.seq, str(error)) from error
        secret = b""
        if len(tickets) > _MAX_WAITING:
            store.wait(tickets.pop(0))
    for ticket in tickets:
        store.wait(ticket)
    _finish(store, target)
    return store.stats(target)


def _append(store: Store, target: str, payload: bytes, *, count: int, stamp: int) -> Ticket:
    """Apply a row of the old log to the new bandit, and log it as the new one's own."""
    with store.log.lock:
        store.check_open()
        bandit = store.registry.get(UNFINISHED_PREFIX + target)
        applied = apply_foreign_payload(bandit, payload, stamp)
        return store.log.append_replayed(bandit, applied, count=count, stamp=stamp)


def _finish(store: Store, target: str) -> None:
    """Give the new bandit its name; without that, it is removed when the store is next opened."""
    with store.log.lock:
        renamed = store.registry.finish(target)
        ticket = store.log.append_registry_event(renamed, stamp=store.clock.now())
    store.wait(ticket)


def _read_rows(log: Log, descriptor: BanditDescriptor, partial: bool) -> Iterator[LogRow]:
    """Yield the rows that are left; where a part will do, up to the first damaged one."""
    try:
        yield from log.read_rows(descriptor.number)
    except DamagedFileError:
        if not partial:
            raise


def _select_changes(spec: BanditSpec, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes that were given; with another policy, the old one's parameters are dropped."""
    given = {name: value for name, value in changes.items() if value is not None}
    if given.get("policy", spec.policy) != spec.policy:
        given.setdefault("parameters", {})
    return given


def _count_lacking_rounds(log: Log, descriptor: BanditDescriptor, partial: bool) -> int:
    """Return the number of rounds before the first row that is left."""
    is_first = True
    for row in log.read_rows(descriptor.number):
        if is_first and row.first == 1:
            return 0
        if is_first and not partial:
            raise FileError(
                f"the log of {descriptor.name!r} has been pruned, its first rounds are gone: --partial begins with the "
                "rest"
            )
        is_first = False
        decided = Payload(row.payload, descriptor.spec.dim).records(events.DECISION)
        if len(decided):
            return int(decided["round"][0]) - 1
    missing = "row" if is_first else "decision"
    raise FileError(f"the log of {descriptor.name!r} has no {missing} left to replay")


def _find_secret(log: Log, descriptor: BanditDescriptor, lacking: int) -> bytes:
    """Return the id secret that was in force before the first round that is left, as an event."""
    known = [secret for first, secret in log.read_secrets(descriptor.number) if first <= lacking]
    return events.pack_secret(events.SECRET, 1, known[-1]) if known else b""


def _translate(data: bytes, dim: int, lacking: int) -> tuple[bytes, int]:
    """Return events of the old bandit as the new one's, and the number of events that are left out.

    The new one has begun by itself, and lacks the first rounds: numbers of rounds are smaller by as many.
    """
    payload = Payload(data, dim)
    removed = [payload.numbers(events.BEGUN)]
    for kind in (events.DECISION, events.CONVERSION, events.REVOCATION, events.SECRET) if lacking else ():
        numbers = payload.numbers(kind)
        records = payload.records(kind)
        records["round"] -= lacking
        payload.replace(numbers, records)
        removed.append(numbers[records["round"] <= 0])
    left_out = np.concatenate(removed)
    return payload.without(left_out), len(left_out)
