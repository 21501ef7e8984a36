"""The table of operations: from it requests are routed and authorised, and the OpenAPI document is written."""

from typing import Any, Literal

from msgspec import Struct

from latecomer.service.bandit_report import BanditReport
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.http.bodies import (
    Activations,
    Bandits,
    CatalogueRequest,
    Conversions,
    Corrections,
    DecisionOutcome,
    Decisions,
    Freeze,
    Readiness,
    Revocations,
    StageReports,
    State,
    Verdicts,
)
from latecomer.service.http.keys import SCOPES, Scope
from latecomer.service.messages import BanditInfo, BanditStats, CatalogueInfo, DecisionAnswer, ImportAnswer, ImportBatch

NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}
BANDIT_NAME = "{name}"
"""The part of a path that is the bandit's name."""
PUBLIC: Literal["public"] = "public"
"""The scope of an operation that needs no key."""
_BANDIT = f"/v1/bandits/{BANDIT_NAME}"
_MOMENT = {"type": "string", "minLength": 10, "maxLength": 40}
_DECISION_ID = {"type": "string", "minLength": 1, "maxLength": 100}
_REQUEST_ID = {"type": "string", "minLength": 1, "maxLength": 200}
_HEADER_ID = {"type": "string", "pattern": "^[!#-~]([ !#-~]{0,193}[!#-~])?$"}


class Operation(Struct, frozen=True, kw_only=True):
    """One method of one path: the key that it needs, its bodies, and the statuses of its answers.

    `scope` has no default: an operation that needs no key has the scope PUBLIC. Where the path names a bandit, the key
    must be for that bandit. Elsewhere it must be for every bandit, unless `for_any_bandit`: then the handler shows only
    what the key may read.
    """

    name: str
    method: str
    path: str
    summary: str
    scope: Scope | Literal["public"]
    gives: Any
    for_any_bandit: bool = False
    statuses: tuple[int, ...] = (200,)
    takes: Any = None
    takes_arrays: bool = False
    media: str = "application/json"
    query: dict[str, tuple[bool, dict[str, Any], str]] = {}
    """By name: whether it is required, its schema, and what it means."""
    headers: dict[str, tuple[bool, dict[str, Any], str]] = {}

    def __post_init__(self) -> None:
        if self.scope not in (*SCOPES, PUBLIC):
            raise ValueError(f"scope of {self.name} must be {PUBLIC} or one of {', '.join(SCOPES)}; got {self.scope!r}")

    def errors(self) -> list[int]:
        """List the statuses of the errors that it may answer with."""
        found = {400, 405, 500}
        if self.scope != PUBLIC:
            found |= {401, 403, 503}
        if BANDIT_NAME in self.path:
            found |= {404}
        if self.takes is not None:
            found |= {408, 409, 413, 415}
        if self is READYZ:
            found |= {503}
        return sorted(found)


def _reports(name: str, path: str, summary: str, takes: Any, *, scope: Scope = "convert") -> Operation:
    """Describe the operation that takes reports of one kind."""
    return Operation(
        name=name,
        method="POST",
        path=f"{_BANDIT}/{path}",
        summary=f"{summary}; a verdict for each.",
        scope=scope,
        takes=takes,
        gives=Verdicts,
    )


CREATE_BANDIT = Operation(
    name="createBandit",
    method="PUT",
    path=_BANDIT,
    summary="Create a bandit; the same again changes nothing.",
    scope="admin",
    takes=BanditSpec,
    gives=BanditInfo,
    statuses=(200, 201),
)
LIST_BANDITS = Operation(
    name="listBandits",
    method="GET",
    path="/v1/bandits",
    summary="Every bandit.",
    scope="read",
    for_any_bandit=True,
    gives=Bandits,
)
GET_BANDIT = Operation(
    name="getBandit", method="GET", path=_BANDIT, summary="What a bandit is.", scope="read", gives=BanditInfo
)
DELETE_BANDIT = Operation(
    name="deleteBandit",
    method="DELETE",
    path=_BANDIT,
    summary="Delete a bandit and all that it has learnt.",
    scope="admin",
    gives=BanditInfo,
    query={"confirm": (True, NAME, "The bandit's name, once more.")},
)
GET_STATS = Operation(
    name="getStats",
    method="GET",
    path=f"{_BANDIT}/stats",
    summary="What a bandit has learnt, and what happened to it.",
    scope="read",
    gives=BanditStats,
)
GET_REPORT = Operation(
    name="getReport",
    method="GET",
    path=f"{_BANDIT}/report",
    summary="A bandit over time: rates, lift over the control, choices, and health.",
    scope="read",
    gives=BanditReport,
    query={
        "from": (False, _MOMENT, "Only decisions from this time on, as 2026-03-01 or 2026-03-01T12:00:00Z."),
        "to": (False, _MOMENT, "Only decisions before this time."),
    },
)
EXPLAIN = Operation(
    name="explainDecision",
    method="GET",
    path=f"{_BANDIT}/explanation",
    summary="Why a decision was made: its actions, scores, propensities and features, and its fate.",
    scope="read",
    gives=DecisionExplanation,
    query={"decision_id": (True, _DECISION_ID, "The id of a decision, as its answer has it.")},
)
DECIDE = Operation(
    name="decide",
    method="POST",
    path=f"{_BANDIT}/decisions",
    summary="Choose one of the actions, durably; or as often as a list has requests.",
    scope="decide",
    takes=Decisions,
    takes_arrays=True,
    gives=DecisionAnswer | list[DecisionOutcome],
    statuses=(201,),
    query={"request_id": (False, _REQUEST_ID, "For application/x-npy, which has no room for it.")},
    headers={"Idempotency-Key": (False, _HEADER_ID, "The request_id, where the body has none.")},
)
PUT_ACTIONS = Operation(
    name="putActions",
    method="PUT",
    path=f"{_BANDIT}/actions",
    summary="Add, change and withdraw actions of the bandit's catalogue; the same again changes nothing.",
    scope="admin",
    takes=CatalogueRequest,
    gives=CatalogueInfo,
)
GET_ACTIONS = Operation(
    name="getActions",
    method="GET",
    path=f"{_BANDIT}/actions",
    summary="The version and the size of a bandit's catalogue.",
    scope="read",
    gives=CatalogueInfo,
)
CONVERT = _reports("convert", "conversions", "Report conversions", Conversions)
REVOKE = _reports("revoke", "revocations", "Take conversions back", Revocations)
CORRECT = _reports("correct", "corrections", "Replace what decisions are credited with", Corrections)
STAGE = _reports("stage", "stages", "Report stages that decisions have reached", StageReports)
ACTIVATE = _reports("activate", "activations", "Report deferred decisions that were shown", Activations, scope="decide")
FREEZE = Operation(
    name="freeze",
    method="PUT",
    path=f"{_BANDIT}/freeze",
    summary="Have a bandit decide without learning, or learn again.",
    scope="admin",
    takes=Freeze,
    gives=Freeze,
)
IMPORT = Operation(
    name="import",
    method="POST",
    path=f"{_BANDIT}/imports",
    summary="Learn from a batch of decisions that others made.",
    scope="admin",
    takes=ImportBatch,
    gives=ImportAnswer,
)
HEALTHZ = Operation(
    name="healthz",
    method="GET",
    path="/healthz",
    summary="The process is alive.",
    scope=PUBLIC,
    gives=State,
)
READYZ = Operation(
    name="readyz",
    method="GET",
    path="/readyz",
    summary="Changes can be made durable.",
    scope=PUBLIC,
    gives=Readiness,
)
METRICS = Operation(
    name="metrics",
    method="GET",
    path="/metrics",
    summary="Numbers for Prometheus.",
    scope="read",
    gives=None,
    media="text/plain",
)
SCHEMA = Operation(
    name="schema",
    method="GET",
    path="/schema",
    summary="This document.",
    scope=PUBLIC,
    gives=dict[str, Any],
)


def _page(
    name: str,
    path: str,
    media: str,
    summary: str,
    *,
    scope: Scope | Literal["public"] = PUBLIC,
    query: dict[str, tuple[bool, dict[str, Any], str]] | None = None,
) -> Operation:
    """Make an operation of the page for people: a text that a browser shows."""
    every = scope != PUBLIC and BANDIT_NAME not in path
    return Operation(
        name=name,
        method="GET",
        path=path,
        summary=summary,
        scope=scope,
        gives=None,
        media=media,
        for_any_bandit=every,
        query=query or {},
    )


PAGE = _page("page", "/", "text/html", "The page for people, without data.")
PAGE_STYLE = _page("pageStyle", "/page/page.css", "text/css", "The style sheet of the page.")
PAGE_SCRIPT = _page("pageScript", "/page/page.js", "text/javascript", "The script of the page.")
PAGE_ICON = _page("pageIcon", "/page/icon.svg", "image/svg+xml", "The icon of the page.")
PAGE_LIST = _page("pageList", "/page/bandits", "text/html", "The bandits, as a part of the page.", scope="read")
PAGE_BANDIT = _page(
    "pageBandit", f"/page/bandits/{BANDIT_NAME}", "text/html", "A bandit, as a part of the page.", scope="read"
)
PAGE_DECISION = _page(
    "pageDecision",
    f"/page/bandits/{BANDIT_NAME}/decision",
    "text/html",
    "A decision, as a part of the page.",
    scope="read",
    query=EXPLAIN.query,
)

OPERATIONS = (
    CREATE_BANDIT, LIST_BANDITS, GET_BANDIT, DELETE_BANDIT, GET_STATS, GET_REPORT, EXPLAIN, DECIDE,
    PUT_ACTIONS, GET_ACTIONS, CONVERT, REVOKE, CORRECT, ACTIVATE, STAGE, FREEZE, IMPORT,
    HEALTHZ, READYZ, METRICS, SCHEMA, PAGE,
    PAGE_STYLE, PAGE_SCRIPT, PAGE_ICON, PAGE_LIST, PAGE_BANDIT, PAGE_DECISION,
)  # fmt: skip
