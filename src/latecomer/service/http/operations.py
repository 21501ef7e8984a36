"""The table of operations that the OpenAPI document is written from; a test holds it against the routes."""

from typing import Any

from msgspec import Struct

from latecomer.service.http.keys import Scope
from latecomer.service.http.routes.bandits import Bandits
from latecomer.service.http.routes.conversions import Conversions, Revocations, Verdicts
from latecomer.service.http.routes.decisions import DecisionRequest
from latecomer.service.messages import BanditInfo, BanditSpec, BanditStats, DecisionAnswer

NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}
_BANDIT = "/v1/bandits/{name}"


class State(Struct, frozen=True):
    """How the server is."""

    status: str


class Readiness(Struct, frozen=True, omit_defaults=True):
    """Readiness: changes can be made durable. Bandits that are not served are named, with their damage."""

    status: str
    quarantined: dict[str, str] = {}


class Operation(Struct, frozen=True, kw_only=True):
    """One method of one path: what it takes, what it gives, and what it may answer."""

    name: str
    method: str
    path: str
    summary: str
    gives: Any
    statuses: tuple[int, ...] = (200,)
    takes: Any = None
    takes_arrays: bool = False
    media: str = "application/json"
    scope: Scope | None = None
    query: dict[str, tuple[bool, dict[str, Any], str]] = {}

    def errors(self) -> list[int]:
        """The errors that it may answer with."""
        found = {400, 405, 500}
        if self.scope is not None:
            found |= {401, 403, 503}
        if "{name}" in self.path:
            found |= {404}
        if self.takes is not None:
            found |= {408, 409, 413, 415}
        if self.path == "/readyz":
            found |= {503}
        return sorted(found)


_REQUEST_ID = {"type": "string", "minLength": 1, "maxLength": 200}

OPERATIONS = (
    Operation(
        name="createBandit",
        method="put",
        path=_BANDIT,
        summary="Create a bandit; the same again changes nothing.",
        takes=BanditSpec,
        gives=BanditInfo,
        statuses=(200, 201),
        scope="admin",
    ),
    Operation(
        name="listBandits", method="get", path="/v1/bandits", summary="Every bandit.", gives=Bandits, scope="read"
    ),
    Operation(
        name="getBandit", method="get", path=_BANDIT, summary="What a bandit is.", gives=BanditInfo, scope="read"
    ),
    Operation(
        name="deleteBandit",
        method="delete",
        path=_BANDIT,
        summary="Delete a bandit and all that it has learnt.",
        gives=BanditInfo,
        scope="admin",
        query={"confirm": (True, NAME, "The bandit's name, once more.")},
    ),
    Operation(
        name="getStats",
        method="get",
        path=f"{_BANDIT}/stats",
        summary="What a bandit has learnt, and what happened to it.",
        gives=BanditStats,
        scope="read",
    ),
    Operation(
        name="decide",
        method="post",
        path=f"{_BANDIT}/decisions",
        summary="Choose one of the actions, durably.",
        takes=DecisionRequest,
        takes_arrays=True,
        gives=DecisionAnswer,
        statuses=(201,),
        scope="decide",
        query={"request_id": (False, _REQUEST_ID, "For application/x-npy, which has no room for it.")},
    ),
    Operation(
        name="convert",
        method="post",
        path=f"{_BANDIT}/conversions",
        summary="Report conversions; a verdict for each.",
        takes=Conversions,
        gives=Verdicts,
        scope="convert",
    ),
    Operation(
        name="revoke",
        method="post",
        path=f"{_BANDIT}/revocations",
        summary="Take conversions back; a verdict for each.",
        takes=Revocations,
        gives=Verdicts,
        scope="convert",
    ),
    Operation(name="healthz", method="get", path="/healthz", summary="The process is alive.", gives=State),
    Operation(name="readyz", method="get", path="/readyz", summary="Changes can be made durable.", gives=Readiness),
    Operation(
        name="metrics",
        method="get",
        path="/metrics",
        summary="Numbers for Prometheus.",
        gives=None,
        media="text/plain",
        scope="read",
    ),
    Operation(name="schema", method="get", path="/schema", summary="This document.", gives=dict[str, Any]),
)
