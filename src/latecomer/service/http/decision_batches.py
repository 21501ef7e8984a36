"""Batches of decisions over HTTP: a list of requests, each parsed on its own, and an outcome for each."""

import asyncio
from collections.abc import Callable

import msgspec

from latecomer.errors import InputError
from latecomer.service.bandit.decision_call import DecisionCall
from latecomer.service.decision_batch import MAX_DECISIONS, Arguments, Outcome
from latecomer.service.http.bodies import DecisionOutcome
from latecomer.service.http.body_reader import LARGE_BODY, decode_json
from latecomer.service.http.error_responses import find_status
from latecomer.service.http.errors import HTTPError, invalid, make_problem
from latecomer.service.http.fast_json import FastJson, Parts
from latecomer.service.http.pending_decision import ParsedDecision
from latecomer.service.http.request import Request
from latecomer.service.http.settings import Settings
from latecomer.service.messages import MAX_ID_LENGTH, BanditInfo, DecisionAnswer

_HEADER = b"idempotency-key"
_PLACE = len(f"/{MAX_DECISIONS}")
_ON_THE_LOOP = 1 << 21
"""Bytes of a batch of plain rows up to which it is parsed on the loop, a millisecond for each megabyte or two: a thread
would hold Python's lock as long."""
_decoder: "msgspec.json.Decoder[list[msgspec.Raw]]" = msgspec.json.Decoder(list[msgspec.Raw])

ParseOne = Callable[[bytes, BanditInfo, Settings, str | None], ParsedDecision]
"""Parses one request of any format; the text is its request id where it has none of its own."""


def is_batch(body: bytes) -> bool:
    """Tell whether a body of JSON is a list."""
    return body.lstrip()[:1] == b"["


def read_idempotency_key(request: Request) -> str | None:
    """Return the header `Idempotency-Key`, with or without the quotes of RFC 8941; None where it is not there."""
    found = [value for name, value in request.headers if name == _HEADER]
    if not found:
        return None
    if len(found) > 1:
        raise invalid("Idempotency-Key must be there once", "Idempotency-Key")
    text = found[0].decode("latin-1").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    most = MAX_ID_LENGTH - _PLACE
    if not 1 <= len(text) <= most or not text.isascii() or not text.isprintable():
        raise invalid(f"Idempotency-Key must be 1 to {most} printable ASCII characters", "Idempotency-Key")
    return text


def use_key(decision: ParsedDecision, key: str) -> ParsedDecision:
    """Return a decision whose request id is the key; refuse it where it has another."""
    if decision.request_id is None:
        return msgspec.structs.replace(decision, request_id=key)
    if decision.request_id != key:
        raise invalid("request_id must equal Idempotency-Key, or be left out where that is given", "request_id")
    return decision


class BatchParser:
    """Parses lists of requests; a request that breaks a rule becomes its error, in its place.

    Parameters
    ----------
    limits
        The server's settings.
    parse_one
        Parses a request of any format.
    check
        Checks what the fast parser has read.
    """

    def __init__(
        self, limits: Settings, parse_one: ParseOne, *, check: Callable[[ParsedDecision], ParsedDecision]
    ) -> None:
        self._limits, self._parse_one, self._check = limits, parse_one, check
        self._fast_json = FastJson(max_actions=limits.max_actions)

    async def parse(self, body: bytes, info: BanditInfo, key: str | None) -> list[Arguments | DecisionCall | Exception]:
        """Return the arguments of each decision, or its error; `key` and its place is the id of one without."""
        if len(body) <= _ON_THE_LOOP:
            plain = self._fast_json.read_batch(body, info.dim)
            if plain is not None:
                return self._check_plain(plain, key)
        if len(body) > LARGE_BODY:
            return await asyncio.to_thread(self._parse, body, info, key)
        return self._parse(body, info, key)

    def _check_plain(self, plain: list[Parts], key: str | None) -> list[Arguments | DecisionCall | Exception]:
        found: list[Arguments | DecisionCall | Exception] = []
        for place, (rows, ids, request_id) in enumerate(plain):
            if request_id is None and key is not None:
                request_id = f"{key}/{place}"  # noqa: PLW2901
            if ids is None and request_id is None:
                found.append(DecisionCall(rows, None))
                continue
            if ids is not None and len(ids) != len(rows):
                try:
                    self._check(ParsedDecision(rows, ids, request_id))
                except HTTPError as error:
                    found.append(error)
                    continue
            found.append({"actions": rows, "ids": ids, "request_id": request_id})
        return found

    def _parse(self, body: bytes, info: BanditInfo, key: str | None) -> list[Arguments | DecisionCall | Exception]:
        requests = decode_json(body, _decoder)
        if not 1 <= len(requests) <= MAX_DECISIONS:
            raise invalid(f"a batch must have 1 to {MAX_DECISIONS:,} requests; got {len(requests):,}")
        fast_json = FastJson(max_actions=self._limits.max_actions)
        found: list[Arguments | DecisionCall | Exception] = []
        for place, raw in enumerate(requests):
            id_ = None if key is None else f"{key}/{place}"
            try:
                found.append(self._parse_request(bytes(raw), info, id_, fast_json).arguments())
            except (HTTPError, InputError) as error:
                found.append(error)
        return found

    def _parse_request(self, body: bytes, info: BanditInfo, id_: str | None, fast_json: FastJson) -> ParsedDecision:
        parts = fast_json.read(body, info.dim)
        if parts is None:
            return self._parse_one(body, info, self._limits, id_)
        rows, ids, request_id = parts
        return self._check(ParsedDecision(rows, ids, id_ if request_id is None else request_id))


def to_outcomes(outcomes: list[Outcome]) -> list[DecisionOutcome]:
    """Return the bodies of answers and errors."""
    return [
        DecisionOutcome(decision=outcome) if isinstance(outcome, DecisionAnswer) else _to_error(outcome)
        for outcome in outcomes
    ]


def _to_error(error: Exception) -> DecisionOutcome:
    if not isinstance(error, HTTPError):
        error = HTTPError(find_status(error), str(error), field=getattr(error, "field", None))
    return DecisionOutcome(error=make_problem(error))
