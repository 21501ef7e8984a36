"""Queries of reports: the range of time, the decision; and what the server says of itself."""

from datetime import datetime
from typing import TYPE_CHECKING

from latecomer.errors import InputError
from latecomer.service.bandit_report import ServiceReport
from latecomer.service.http.errors import invalid
from latecomer.service.http.operations import DECIDE, EXPLAIN
from latecomer.service.http.query import check_query, query_param
from latecomer.service.http.request import Request
from latecomer.timestamps import parse_datetime

if TYPE_CHECKING:
    from latecomer.service.http.context import AppContext


def read_moment(request: Request, name: str) -> datetime | None:
    """Return the time of a query, None where it is not given."""
    text = query_param(request, name)
    if text is None:
        return None
    try:
        return parse_datetime(text, name=name)
    except InputError as error:
        raise invalid(str(error), name) from None


def read_decision_id(request: Request) -> str:
    """Return the decision id of a query."""
    check_query(request, EXPLAIN)
    found = query_param(request, "decision_id")
    if not found:
        raise invalid("decision_id must be given: the id of a decision, as its answer has it", "decision_id")
    return found


async def describe_service(context: "AppContext") -> ServiceReport:
    """Return how many decisions this server has made, how long they took, and how many replicas there are."""
    count, median, late = context.metrics.read_latency("POST", DECIDE.path, 201, (0.5, 0.99))
    return ServiceReport(
        decisions=count, median_seconds=median, p99_seconds=late, replicas=await context.access.count_replicas()
    )
