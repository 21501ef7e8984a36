"""The interface between the store and the log in which its bandits' events are kept.

`storage.sqlite_log.SQLiteLog` is the implementation on one SQLite file. A bandit knows nothing of it: it returns bytes,
and the store appends them here.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import NamedTuple, Protocol

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.idempotency import LoggedDecision


class Ticket(Protocol):
    """The durability of some events: `done` becomes true once they survive a crash, and stays true."""

    @property
    def done(self) -> bool:
        """True once the events are durable."""


class DoneTicket:
    """The ticket of events that are durable already."""

    done = True


class LogRow(Protocol):
    """One commit's events of one bandit, or those of consecutive commits that were compacted into one row."""

    @property
    def bandit(self) -> int:
        """The number of the bandit."""

    @property
    def first(self) -> int:
        """The number of the first commit that the row stands for."""

    @property
    def seq(self) -> int:
        """The number of the last commit that the row stands for."""

    @property
    def count(self) -> int:
        """The number of the row's events."""

    @property
    def rounds(self) -> int:
        """The number of the bandit's rounds after this row."""

    @property
    def stamp(self) -> int:
        """The stamp of the row's latest event."""

    @property
    def payload(self) -> bytes:
        """The row's events, as `bandit.events` packs them."""


class LogStatus(NamedTuple):
    """The state of a log, and its totals since it was opened."""

    failure: str | None
    """The reason why nothing can be written now; None where something can."""
    snapshot_failure: str | None
    """The reason why a snapshot, a compaction or the like has failed; None where none has."""
    commits: int
    events: int
    bytes: int
    commit_seconds: float
    free_bytes: int | None = None
    """The room left on the log's disk; None where the log is on another machine."""


BatchedDecision = tuple[bytes, int, bytes]
"""The digest of a request, empty where there is none; the round that answers it; and the events."""


class Log(Protocol):
    """An ordered, durable log: one chain of rows for each bandit, and one for the store itself.

    An implementation promises:

    - **Order.** A chain's events are in the order of the `append` calls, and its rows are numbered 1, 2, … without
      gaps. What a done ticket covers, and everything appended to that chain before it, survives a crash.
    - **Atomicity.** The events of one `append` are in one row. The request digest of a decision is found
      (`find_decision`) from the moment that `append` returns, and survives a crash exactly when the events do. The two
      rows of `begin_chain` are written in one transaction.
    - **Failure.** A commit that fails is not taken back: waiting callers get `StoreError`, `failure` says why, and it
      is tried again until it succeeds or the log is closed. The store refuses changes while `failure` is set.
    - **Checks.** Every row that is read is checked against its checksum and its parent's; `DamagedFileError` names the
      row. Damage in one chain does not affect another.
    - **Snapshots.** `append` has a snapshot of the bandit taken when one is due, as of exactly the events appended so
      far. A snapshot and the rows after it give the state that all rows give, to the last bit; a damaged snapshot costs
      time and nothing else. Rows that a snapshot or the retention needs are kept.

    Except for `wait`, `wait_async`, `resolve_when_done`, `flush_now`, `read_rows_from` and `close`, methods are called
    with `lock` held and do not wait for the disk, unless they read.
    """

    lock: RLock
    """Guards every change of the store's bandits and of the log."""

    # ---- events ----

    def begin_chain(self, bandit: Bandit, created: bytes, begun: bytes) -> Ticket:
        """Record a bandit's creation in the store's chain, and the first event of its own chain."""

    def append(self, bandit: Bandit, payload: bytes, *, count: int, stamp: int, request: bytes = b"") -> Ticket:
        """Append a bandit's events, which it has applied already; return the ticket to wait for.

        Once they are sure to be tried, `bandit.has_unlogged_change` is cleared; whatever fails later, they are kept.

        Parameters
        ----------
        bandit
            The bandit, with the state after the events.
        payload, count
            The events, and how many they are; none at all give a ticket that is done.
        stamp
            The store's time.
        request
            The digest of the request that the events' decision answers, if any.
        """

    def append_batch(self, bandit: Bandit, made: Sequence[BatchedDecision], *, stamp: int) -> Ticket:
        """Append the decisions of a batch, each with the digest of the request that it answers, if any."""

    def append_replayed(self, bandit: Bandit, payload: Payload, *, count: int, stamp: int) -> Ticket:
        """Append events of another log that a bandit has applied, with the requests that they answer."""

    def append_registry_event(self, payload: bytes, *, stamp: int) -> Ticket:
        """Append an event to the store's own chain."""

    def delete_chain(self, number: int, deleted: bytes, *, stamp: int) -> Ticket:
        """Record a bandit's deletion in the store's chain; remove its rows later."""

    def group(self) -> AbstractContextManager[None]:
        """Hold the lock for several appends, which take less time together; none is waited for before the end."""

    def wait(self, ticket: Ticket, timeout: float | None = None) -> None:
        """Wait in a thread until the ticket is done; `StoreError` where the commit fails."""

    async def wait_async(self, ticket: Ticket) -> None:
        """Wait on an event loop until the ticket is done; `StoreError` where the commit fails."""

    def resolve_when_done(self, ticket: Ticket, futures: "list[asyncio.Future[None]]") -> None:
        """Have futures of an event loop resolved when the ticket is done, with `StoreError` where the commit fails."""

    def flush_now(self) -> None:
        """Commit without waiting for more events."""

    # ---- reading ----

    def read_rows(self, number: int) -> Iterator[LogRow]:
        """Yield a bandit's rows, from the first that has not been pruned; the lock is held for each `next`."""

    def read_rows_from(self, number: int, round: int) -> Iterator[LogRow]:
        """Yield a bandit's durable rows from the one that has a round on, as of one moment; without the lock."""

    def read_secrets(self, number: int) -> list[tuple[int, bytes]]:
        """Return the secrets of decision ids that pruned rows may have had, each with its first round."""

    def find_decision(self, bandit: Bandit, request: bytes) -> tuple[LoggedDecision, Ticket] | None:
        """Return the decision that answered a request; None where there is none, or where it has been pruned."""

    # ---- snapshots and settings ----

    def save_all(self, bandits: Iterable[Bandit], *, now: int) -> None:
        """Order a snapshot of every bandit that has events since its last one; `close` waits for them."""

    def read_setting(self, name: str, default: str) -> str:
        """Return a setting of the store."""

    def write_setting(self, name: str, value: str) -> None:
        """Write a setting, after everything appended so far."""

    @property
    def retention(self) -> int | None:
        """Microseconds that rows stay after their window; None for ever."""

    def set_retention(self, text: str) -> None:
        """Change the retention ("7d", "forever") from now on, and for later openings."""

    # ---- the whole ----

    @property
    def failure(self) -> str | None:
        """The reason why nothing can be written now; None where something can."""

    def find_fault(self) -> str | None:
        """Return why nothing can be written until the store is opened again; None where that is not so."""

    def get_status(self) -> LogStatus:
        """Return the state and the totals."""

    def listen(
        self,
        *,
        on_commit: Callable[[int, int, float], None],
        on_trouble: Callable[[str | None], None],
        on_death: Callable[[], object],
    ) -> None:
        """Set callbacks, called from the log's own thread: see `storage.listeners`."""

    def close(self) -> None:
        """Commit what is left, finish snapshots, and release the files."""
