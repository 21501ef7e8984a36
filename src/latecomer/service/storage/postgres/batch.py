"""A batch: calls that are run on a bandit one after the other, and the row of their events."""

import time
from collections.abc import Sequence

from msgspec import Struct

from latecomer.errors import LatecomerError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.storage.postgres.calls import PendingCall, Repeatable
from latecomer.service.storage.rows import Row, make_row

_RUN_SECONDS = 0.2
"""Seconds that calls are run under one lock, about: well below those after which PostgreSQL ends the session."""


class BatchRow(Struct, frozen=True):
    """The row of a batch, and the rounds that answered requests, by their digests."""

    row: Row
    requests: list[tuple[bytes, int]]


class BanditDeletedError(Exception):
    """The bandit has been deleted."""


class StateLostError(Exception):
    """A call has failed half-way: the bandit's state must be read anew."""


def run_calls(
    bandit: Bandit,
    calls: Sequence[PendingCall],
    known: dict[bytes, LoggedDecision],
    *,
    head: tuple[int, bytes],
    now: int,
    shift: int,
) -> BatchRow | None:
    """Run calls on a bandit; return the row of their events, None where there are none.

    A call gets its `answer`, or its error. Calls that take too long to be run together are left without either.

    Parameters
    ----------
    bandit
        The bandit, with everything up to its head applied.
    calls
        The calls.
    known
        Decisions that answered requests before.
    head
        The number and checksum of the chain's last row.
    now, shift
        The time of the events, and its microseconds ahead of the calendar.
    """
    parts: list[bytes] = []
    total, end = 0, time.perf_counter() + _RUN_SECONDS
    first: dict[bytes, PendingCall] = {}
    requests: list[tuple[bytes, int]] = []
    for call in calls:
        if time.perf_counter() > end:
            break
        digest = call.work.request
        try:
            if call.work.lookup and _repeat(bandit, call, known, first, shift=shift):
                continue
            call.answer, data, count = call.work.run(bandit, now, shift)
        except LatecomerError as error:  # it comes before any change
            call.fail(error)
            continue
        except BaseException as error:
            call.fail(error)
            raise StateLostError(repr(error)) from error
        parts.append(data)
        total += count
        if digest:
            first[digest] = call
            requests.append((digest, bandit.rounds))
    payload = b"".join(parts)
    if not payload:
        return None
    seq, parent = head
    row = make_row(bandit.number, seq + 1, count=total, rounds=bandit.rounds, stamp=now, parent=parent, payload=payload)
    return BatchRow(row, requests)


def _repeat(
    bandit: Bandit,
    call: PendingCall,
    known: dict[bytes, LoggedDecision],
    first: dict[bytes, PendingCall],
    *,
    shift: int,
) -> bool:
    """Answer a request that the log or this batch has answered already; False where there is none such."""
    work = call.work
    if not isinstance(work, Repeatable):
        return False
    if work.lookup in known:
        call.answer = work.repeat(bandit, known[work.lookup], shift)
    elif work.lookup in first:
        earlier = first[work.lookup]
        if isinstance(earlier.work, Repeatable):
            work.call.check_same_body(earlier.work.call.body)
        call.answer = earlier.answer
    else:
        return False
    return True
