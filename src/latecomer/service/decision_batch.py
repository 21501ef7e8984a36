"""Batches of decisions: many requests of one bandit, one commit, an answer or an error for each in its place.

A request that breaks a rule changes nothing and does not keep the others from being decided. Where the store cannot be
written, the whole batch fails.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from latecomer.errors import InputError, LatecomerError, StoreError
from latecomer.service.log_interface import Ticket
from latecomer.service.messages import DecisionAnswer
from latecomer.validation import short_repr, suggest

if TYPE_CHECKING:
    from latecomer.service.replicated_store import ReplicatedStore
    from latecomer.service.store import Store

MAX_DECISIONS = 1000
"""Requests in one batch."""

Arguments = Mapping[str, Any]
"""The arguments of one decision, as `Store.decide` takes them; or an error, which stays in its place."""
Outcome = DecisionAnswer | Exception

_OPTIONS = ("request_id", "deferred", "subject")
ROWS, FEATURES = ("actions", "ids", *_OPTIONS), ("actions", "context", *_OPTIONS)
"""The arguments of a request in a batch: actions as rows of numbers, or by their features."""


def check_batch_size(count: int) -> None:
    """Raise `InputError` unless a batch has 1 to `MAX_DECISIONS` requests."""
    if not 1 <= count <= MAX_DECISIONS:
        raise InputError(f"a batch must have 1 to {MAX_DECISIONS:,} requests; got {count:,}", field="requests")


def check_request_names(request: object, place: int) -> None:
    """Raise `InputError` unless a request has `actions`, and no argument that its kind of decision does not take."""
    if not isinstance(request, Mapping) or "actions" not in request:
        raise InputError(
            f"request {place} must be a dict with actions; got {short_repr(request)}", field=f"[{place}].actions"
        )
    names = FEATURES if isinstance(request["actions"], Mapping) else ROWS
    unknown = [name for name in request if name not in names]
    if unknown:
        raise InputError(
            f"request {place} must have no arguments but {', '.join(names)}; got {short_repr(unknown[0])}"
            f"{suggest(str(unknown[0]), names)}",
            field=f"[{place}].{unknown[0]}",
        )


def decide_batch(
    store: "Store", name: str, requests: Sequence[Arguments | Exception], *, seconds: float = math.inf
) -> tuple[list[Outcome], list[Ticket]]:
    """Decide in the order of the requests; return the outcomes, and the tickets to wait for before they leave.

    After so many `seconds` no further request is begun: the outcomes are then of the first ones alone.
    """
    end = perf_counter() + seconds
    store.info(name)  # an unknown bandit fails the batch
    tickets: dict[Ticket, None] = {}
    outcomes: list[Outcome] = []
    with store.group():
        for request in requests:
            if perf_counter() > end:
                break
            if isinstance(request, Exception):
                outcomes.append(request)
                continue
            try:
                answer, ticket = store.decide(name, **request)
            except StoreError:
                raise
            except LatecomerError as error:
                outcomes.append(error)
            else:
                outcomes.append(answer)
                tickets[ticket] = None
    return outcomes, list(tickets)


async def decide_shared_batch(
    store: "ReplicatedStore", name: str, requests: Sequence[Arguments | Exception]
) -> list[Outcome]:
    """Decide in the order of the requests on a shared store; the outcomes are durable."""
    await store.find(name)
    futures: list[Any] = []
    for request in requests:
        try:
            futures.append(request if isinstance(request, Exception) else store.decide(name, **request))
        except StoreError:
            raise
        except LatecomerError as error:
            futures.append(error)
    found: list[Any] = await asyncio.gather(
        *(f for f in futures if not isinstance(f, Exception)), return_exceptions=True
    )
    for outcome in found:
        if isinstance(outcome, StoreError) or not isinstance(outcome, DecisionAnswer | LatecomerError):
            raise outcome
    decided = iter(found)
    return [future if isinstance(future, Exception) else next(decided) for future in futures]
