"""Changes of credits in a log: conversions with amounts or ids, and their returns, in the order of their reports."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from latecomer.core.conversions import ACCEPTED, REVOKED
from latecomer.service.bandit import events
from latecomer.service.bandit.reports import compute_arrivals

CHANGES = (events.PURCHASE, events.RETURN, events.CORRECTION)
"""Reports that change the credit of a decision that may have had another; the log has the credit after each."""
_KINDS = (*CHANGES, events.REVOCATION)


class CreditChange(Struct, frozen=True):
    """The credit that a decision has from a report on, negative for none, and when the report arrived."""

    round: int
    credit: float
    arrival: int
    is_conversion: bool


def changes_credits(payload: events.Payload) -> bool:
    """Tell whether a payload has reports that change the credit of a decision that may have had another."""
    return not payload.present.isdisjoint(CHANGES)


def read_credit_changes(payload: events.Payload) -> Iterator[CreditChange]:
    """Yield the accepted changes of a payload that has any; revocations of whole decisions are among them.

    A payload of plain conversions and revocations alone has none.
    """
    if not changes_credits(payload):
        return
    numbers = [payload.numbers(kind) for kind in _KINDS]
    changes = [change for kind in _KINDS for change in _read_kind(payload, kind)]
    order = np.argsort(np.concatenate(numbers), kind="stable")
    yield from (found for place in order.tolist() if (found := changes[place]) is not None)


def _read_kind(payload: events.Payload, kind: int) -> Iterator[CreditChange | None]:
    """Yield a change for each event of a kind; None where it was not accepted."""
    records = payload.records(kind)
    arrivals = compute_arrivals(records["occurred"], records["stamp"]).tolist()
    credits = [REVOKED] * len(records) if kind == events.REVOCATION else records["credit"].tolist()
    for round_, verdict, credit, arrival in zip(
        records["round"].tolist(), records["verdict"].tolist(), credits, arrivals, strict=True
    ):
        is_conversion = kind == events.PURCHASE
        yield CreditChange(round_, credit, arrival, is_conversion) if verdict == ACCEPTED else None
