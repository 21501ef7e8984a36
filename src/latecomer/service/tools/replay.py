"""Replay a bandit's log into a new bandit of the same store, with another window or policy.

Decisions and their rounds stay as they were; reports get new verdicts, late ones included. The new bandit knows the old
one's decision ids and requests, so that traffic can move to it while conversions are still on their way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from latecomer.errors import DamagedFileError, FileError, InputError
from latecomer.extras import require_packages
from latecomer.service.bandit import events
from latecomer.service.bandit.apply import apply_foreign_payload
from latecomer.service.bandit.descriptor import UNFINISHED_PREFIX, BanditDescriptor
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.log_interface import LogRow, Ticket
from latecomer.service.messages import BanditStats
from latecomer.service.storage.postgres.address import is_address
from latecomer.service.storage.rows import make_row_error
from latecomer.service.store import Store

_MAX_WAITING = 64
"""Rows that may wait to be written."""


class ReplayStore(Protocol):
    """A store as a replay uses it."""

    def find_descriptor(self, name: str, *, partial: bool) -> BanditDescriptor:
        """Return a bandit's descriptor; a quarantined one's only where a part of its log will do."""

    def is_taken(self, name: str) -> bool:
        """Tell whether a bandit has the name."""

    def read_rows(self, number: int) -> Iterator[LogRow]:
        """Yield a bandit's rows, from the first that has not been pruned."""

    def read_secrets(self, number: int) -> list[tuple[int, bytes]]:
        """Return the secrets of decision ids that pruned rows may have had, each with its first round."""

    def create(self, name: str, spec: BanditSpec, *, skipped: int) -> None:
        """Create the new bandit, under a name that no caller can use."""

    def append(self, payload: bytes, *, count: int, stamp: int) -> None:
        """Apply events of the old log to the new bandit, and log them as its own; `ValueError` where they are none."""

    def finish(self) -> BanditStats:
        """Give the new bandit its name, once it is durable; return its statistics."""


def replay(
    store: Store | ReplayStore,
    source: str,
    target: str,
    *,
    partial: bool = False,
    promote: bool = False,
    **changes: Any,
) -> BanditStats:
    """Replay a bandit's log into a new bandit; return the new one's statistics.

    Parameters
    ----------
    store
        The store, as `open_for_replay` opens it; or one that this process owns, which nobody else changes meanwhile.
    source, target
        The bandit to read, and the one to create.
    partial
        Whether to accept the rest of a log that has been pruned, or the rows before a damaged one. Refused otherwise.
    promote
        Whether the old one's challenger becomes the new one's policy, which then has no challenger.
    changes
        `window`, `grace`, `policy` or `parameters` of the new one, where they differ.
    """
    if isinstance(store, Store):
        store = LocalReplay(store)
    descriptor = store.find_descriptor(source, partial=partial)
    if store.is_taken(target):
        raise InputError(f"the new bandit needs a name of its own; {target!r} is taken")
    lacking = _count_lacking_rounds(store, descriptor, partial)
    if promote:
        changes = {**_promote_challenger(descriptor), **{name: value for name, value in changes.items() if value}}
    spec = msgspec.structs.replace(descriptor.spec, **_select_changes(descriptor.spec, changes))
    store.create(target, spec, skipped=descriptor.skipped + lacking)
    secret = _find_secret(store, descriptor, lacking)
    for row in _read_rows(store, descriptor, partial):
        try:
            payload, removed = _translate(row.payload, descriptor.spec.dim, lacking)
            store.append(secret + payload, count=row.count - removed, stamp=row.stamp)
        except ValueError as error:
            raise make_row_error(row.bandit, row.seq, str(error)) from error
        secret = b""
    return store.finish()


@contextmanager
def open_for_replay(path: str | PathLike[str]) -> Iterator[ReplayStore]:
    """Open a store, a file or a database; nothing is pruned. `FileError` where it is not there."""
    if is_address(path):
        require_packages("a store on PostgreSQL", "psycopg")
        from latecomer.service.tools.shared_replay import SharedReplay  # noqa: PLC0415 - it takes psycopg

        with SharedReplay(fspath(path)) as shared:
            yield shared
        return
    if not Path(path).is_file():
        raise FileError(f"{fspath(path)} is not there: check the path")
    with Store.open(path, prune=False) as store:
        yield LocalReplay(store)


class LocalReplay:
    """A replay in a store that this process owns; nobody else changes it meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store, self._log = store, store.log
        self._target = ""
        self._tickets: list[Ticket] = []
        self.read_rows, self.read_secrets = store.log.read_rows, store.log.read_secrets

    def find_descriptor(self, name: str, *, partial: bool) -> BanditDescriptor:
        """Return a bandit's descriptor."""
        (self._store.describe if partial else self._store.info)(name)
        descriptor = self._store.registry.find_descriptor(name)
        assert descriptor is not None  # noqa: S101 - it has just been described
        return descriptor

    def is_taken(self, name: str) -> bool:
        """Tell whether a bandit has the name."""
        return name in {info.name for info in self._store.list_bandits()}

    def create(self, name: str, spec: BanditSpec, *, skipped: int) -> None:
        """Create the new bandit."""
        self._store.create(name, spec, skipped=skipped)
        self._target = name

    def append(self, payload: bytes, *, count: int, stamp: int) -> None:
        """Apply a row of the old log to the new bandit, and log it as the new one's own."""
        with self._log.lock:
            self._store.check_open()
            bandit = self._store.registry.get(UNFINISHED_PREFIX + self._target)
            applied = apply_foreign_payload(bandit, payload, stamp)
            self._tickets.append(self._log.append_replayed(bandit, applied, count=count, stamp=stamp))
        if len(self._tickets) > _MAX_WAITING:
            self._store.wait(self._tickets.pop(0))

    def finish(self) -> BanditStats:
        """Give the new bandit its name; without that, it is removed when the store is next opened."""
        for ticket in self._tickets:
            self._store.wait(ticket)
        with self._log.lock:
            renamed = self._store.registry.finish(self._target)
            ticket = self._log.append_registry_event(renamed, stamp=self._store.clock.now())
        self._store.wait(ticket)
        return self._store.stats(self._target)


def _read_rows(store: ReplayStore, descriptor: BanditDescriptor, partial: bool) -> Iterator[LogRow]:
    """Yield the rows that are left; where a part will do, up to the first damaged one."""
    try:
        yield from store.read_rows(descriptor.number)
    except DamagedFileError:
        if not partial:
            raise


def _select_changes(spec: BanditSpec, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes that were given; with another policy, parameters and challenger are dropped."""
    given = {name: value for name, value in changes.items() if value is not None}
    if given.get("policy", spec.policy) != spec.policy:
        given.setdefault("parameters", {})
    if "policy" in given:
        given["challenger"] = None
    if isinstance(given.get("window", spec.window), int) or isinstance(spec.window, int):
        given.setdefault("grace", None)  # it goes with windows in time
    if isinstance(given.get("window", spec.window), int) != isinstance(spec.window, int):
        given.setdefault("activation_timeout", None)  # it is in the unit of the window
        given.setdefault("returns", None)
    return given


def _promote_challenger(descriptor: BanditDescriptor) -> dict[str, Any]:
    """Return the changes that make the challenger the policy."""
    challenger = descriptor.spec.challenger
    if challenger is None:
        raise InputError(f"{descriptor.name!r} has no challenger to promote: give the policy", field="promote")
    return {"policy": challenger.policy, "parameters": challenger.parameters}


def _count_lacking_rounds(store: ReplayStore, descriptor: BanditDescriptor, partial: bool) -> int:
    """Return the number of rounds before the first row that is left."""
    is_first = True
    for row in store.read_rows(descriptor.number):
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


def _find_secret(store: ReplayStore, descriptor: BanditDescriptor, lacking: int) -> bytes:
    """Return the id secret that was in force before the first round that is left, as an event."""
    known = [secret for first, secret in store.read_secrets(descriptor.number) if first <= lacking]
    return events.pack_secret(events.SECRET, 1, known[-1]) if known else b""


def _translate(data: bytes, dim: int, lacking: int) -> tuple[bytes, int]:
    """Return events of the old bandit as the new one's, and the number of events that are left out.

    The new one has begun by itself, and lacks the first rounds: numbers of rounds are smaller by as many.
    """
    payload = Payload(data, dim)
    removed = [payload.numbers(events.BEGUN)]
    for kind in (events.DECISION, *events.REPORTS, events.STAGE, events.SECRET) if lacking else ():
        numbers = payload.numbers(kind)
        records = payload.records(kind)
        records["round"] -= lacking
        payload.replace(numbers, records)
        removed.append(numbers[records["round"] <= 0])
    left_out = np.concatenate(removed)
    return payload.without(left_out), len(left_out)
