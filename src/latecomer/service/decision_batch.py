"""Batches of decisions: many requests of one bandit, one commit, an answer or an error for each in its place.

A request that breaks a rule changes nothing and does not keep the others from being decided. Where the store cannot be
written, the whole batch fails.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from latecomer.errors import InputError, LatecomerError, StoreError
from latecomer.policies.base.action_validation import explain_inadmissible
from latecomer.service.bandit.decision_call import DecisionCall, check_decision_call
from latecomer.service.bandit.decision_run import MANY, join_rows
from latecomer.service.log_interface import Ticket
from latecomer.service.messages import DecisionAnswer
from latecomer.validation import list_items, short_repr, suggest

if TYPE_CHECKING:
    from latecomer.service.replicated_store import ReplicatedStore
    from latecomer.service.store import Store

MAX_DECISIONS = 1000
"""Requests in one batch."""

Arguments = Mapping[str, Any]
"""The arguments of one decision, as `Store.decide` takes them; or an error, which stays in its place."""
Outcome = DecisionAnswer | Exception
_NOT_YET = AssertionError("a request of a batch has got no outcome")
_FIRST_RUN, _LONGEST_RUN = MANY, 250
"""Requests that are decided together, at first and at most; in between as many as their pace leaves time for."""

_OPTIONS = ("request_id", "deferred", "subject", "exclude", "pin", "k", "examination")
ROWS, FEATURES = ("actions", "ids", *_OPTIONS), ("actions", "context", *_OPTIONS)
CATALOGUE = ("context", "candidates", "search", "exclude", "request_id", "deferred", "subject", "k", "examination")
"""The arguments of a request in a batch: actions as rows of numbers, by their features, or of the catalogue."""


def list_requests(requests: Iterable[Any]) -> list[Any]:
    """Return the requests of a batch as a list; each is checked in its place."""
    return list_items("requests", requests, object, "dicts, the arguments of a decision each")


def check_batch_size(count: int) -> None:
    """Raise `InputError` unless a batch has 1 to `MAX_DECISIONS` requests."""
    if not 1 <= count <= MAX_DECISIONS:
        raise InputError(f"a batch must have 1 to {MAX_DECISIONS:,} requests; got {count:,}", field="requests")


def check_request_names(request: object, place: int) -> None:
    """Raise `InputError` where a request has an argument that its kind of decision does not take."""
    if not isinstance(request, Mapping):
        raise InputError(f"request {place} must be a dict; got {short_repr(request)}", field=f"[{place}].actions")
    names: tuple[str, ...] = CATALOGUE
    if "actions" in request:
        names = FEATURES if isinstance(request["actions"], Mapping) else ROWS
    unknown = [name for name in request if name not in names]
    if unknown:
        raise InputError(
            f"request {place} must have no arguments but {', '.join(names)}; got {short_repr(unknown[0])}"
            f"{suggest(str(unknown[0]), names)}",
            field=f"[{place}].{unknown[0]}",
        )


def decide_batch(
    store: "Store", name: str, requests: Sequence[Arguments | DecisionCall | Exception], *, seconds: float = math.inf
) -> tuple[list[Outcome], list[Ticket]]:
    """Decide in the order of the requests; return the outcomes, and the tickets to wait for before they leave.

    After so many `seconds` no further request is begun: the outcomes are then of the first ones alone.
    """
    with store.group():
        batch, began, done = _Batch(store, name), perf_counter(), 0  # an unknown bandit fails the batch
        while done < len(requests):
            taken = perf_counter() - began
            if taken > seconds:
                break
            size = _FIRST_RUN if not done else int(min((seconds - taken) * done / max(taken, 1e-6), _LONGEST_RUN)) or 1
            batch.add(requests[done : done + size])
            done += size
    return batch.outcomes, list(dict.fromkeys(ticket for ticket in batch.tickets if ticket is not None))


def decide_group(
    store: "Store", name: str, requests: Sequence[Arguments | DecisionCall]
) -> list[tuple[Outcome, Ticket | None]]:
    """Decide in the order of requests that came each by itself; return each outcome with its own ticket, if any."""
    with store.group():
        batch = _Batch(store, name)
        batch.add(requests)
    return list(zip(batch.outcomes, batch.tickets, strict=True))


class _Batch:
    """A batch that is under way, with the store's lock held: the outcomes so far, and their tickets."""

    def __init__(self, store: "Store", name: str) -> None:
        self._store, self._bandit = store, store.registry.get(name)
        self.outcomes: list[Outcome] = []
        self.tickets: list[Ticket | None] = []
        """The ticket of each outcome; None for an error."""

    def add(self, requests: Sequence[Arguments | DecisionCall | Exception]) -> None:
        """Decide the next requests: runs of plain ones together, others by themselves, all in their order.

        A call has only its dimension to be checked: its bandit may be another than when it was made.
        """
        run: list[DecisionCall] = []
        places: list[int] = []
        digests: set[bytes] = set()
        first = len(self.outcomes)
        self.outcomes += [_NOT_YET] * len(requests)
        self.tickets += [None] * len(requests)
        for place, request in enumerate(requests, start=first):
            try:
                if isinstance(request, Exception):
                    self.outcomes[place] = request
                    continue
                call = self._check(request)
                if _is_special(call) or call.request in digests:
                    self._decide_run(run, places)
                    run, places, digests = [], [], set()
                    self._take(place, *self._store.run(self._bandit, call))
                elif not self._repeat(place, call):
                    run.append(call)
                    places.append(place)
                    if call.request:
                        digests.add(call.request)
            except StoreError:
                raise
            except LatecomerError as error:
                self.outcomes[place] = error
        self._decide_run(run, places)

    def _check(self, request: Arguments | DecisionCall) -> DecisionCall:
        dim = self._bandit.dim
        if isinstance(request, DecisionCall):
            return request if request.rows.shape[1] == dim else check_decision_call(dim, request.rows, request.ids)
        return check_decision_call(dim, **request)

    def _take(self, place: int, outcome: Outcome, ticket: Ticket) -> None:
        self.outcomes[place], self.tickets[place] = outcome, ticket

    def _repeat(self, place: int, call: DecisionCall) -> bool:
        """Answer a request that the log has answered before; False where it is new."""
        if not call.request:
            return False
        known = self._store.log.find_decision(self._bandit, call.request)
        if known is None:
            self._bandit.deferrals.check_free(call.request_id, call.request, self._store.clock.now())
            return False
        self._take(place, call.repeat(self._bandit, known[0], shift=self._store.clock.shift), known[1])
        return True

    def _decide_run(self, calls: list[DecisionCall], places: list[int]) -> None:
        """Decide plain requests together; a set that is not admissible becomes its error."""
        if not calls:
            return
        state, rows = self._bandit.policy.state, join_rows(calls)
        if not state.is_admissible(rows):
            fit = [state.is_admissible(call.rows) for call in calls]
            for call, place, is_fit in zip(calls, places, fit, strict=True):
                if not is_fit:
                    self.outcomes[place] = explain_inadmissible(call.rows)
            calls, places = list(compress(calls, fit)), list(compress(places, fit))
            if not calls:
                return
            rows = join_rows(calls)
        store, bandit = self._store, self._bandit
        store.check_open()
        now = store.clock.now()
        try:
            made = bandit.decide_run(calls, rows, now=now, shift=store.clock.shift)
            answered = [(call.request, answer.round, data) for call, (answer, data) in zip(calls, made, strict=True)]
            ticket = store.log.append_batch(bandit, answered, stamp=now)
        except BaseException as error:
            store.check_unlogged_change(bandit, error)
            raise
        for place, (answer, _) in zip(places, made, strict=True):
            self._take(place, answer, ticket)


def _is_special(call: DecisionCall) -> bool:
    """Tell whether a call must be decided by itself."""
    return call.deferred or call.pick is not None or call.examination is not None or call.probabilities


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
