"""The calls for decisions: actions as rows of numbers, as an array, or by their features."""

import io
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.client.protocol import Call, bandit_path, encode_json
from latecomer.encoding.values import FeatureRow, to_plain_actions, to_plain_features
from latecomer.errors import ConflictError, InputError, ServiceError
from latecomer.service.decision_batch import MAX_DECISIONS, check_request_names, list_requests
from latecomer.service.messages import DecisionAnswer, RankingAnswer, check_request_id
from latecomer.validation import short_repr

Actions = np.ndarray[Any, np.dtype[Any]] | Sequence[Sequence[float]]


class Problem(Struct, frozen=True):
    """An error of one request of a batch."""

    code: str
    message: str
    field: str | None = None


class Outcome(Struct, frozen=True):
    """The decision of one request of a batch, or its error."""

    decision: RankingAnswer | None = None
    error: Problem | None = None


def decide(
    name: str,
    actions: Actions,
    *,
    ids: Sequence[str] | None,
    request_id: str | None,
    options: dict[str, Any],
) -> Call[DecisionAnswer]:
    """Make the call for a decision, always with a request id; an array without ids is sent in binary."""
    request_id = _choose_request_id(request_id)
    path = f"{bandit_path(name)}/decisions"
    rows = _to_array(actions) if hasattr(actions, "__array__") else actions
    if isinstance(rows, np.ndarray) and ids is None and not options:
        file = io.BytesIO()
        np.save(file, rows)
        path = f"{path}?{urlencode({'request_id': request_id})}"
        return Call(
            method="POST", path=path, gives=DecisionAnswer, content=file.getvalue(), content_type="application/x-npy"
        )
    plain = rows.tolist() if isinstance(rows, np.ndarray) else rows
    body = {"actions": plain, "request_id": request_id} | ({} if ids is None else {"ids": list(ids)})
    return make_call(name, body | options)


def decide_features(
    name: str,
    actions: Mapping[str, FeatureRow],
    *,
    context: FeatureRow | None,
    request_id: str | None,
    options: dict[str, Any],
) -> Call[DecisionAnswer]:
    """Make the call for a decision between actions that are described by features."""
    return make_call(name, _features_body(actions, context=context, request_id=request_id, **options))


def make_call(name: str, body: Mapping[str, Any]) -> Call[DecisionAnswer]:
    """Make the call for a decision with this body; where it says how many, the answer has a ranking."""
    is_ranking = "k" in body or "examination" in body
    gives = RankingAnswer if is_ranking else DecisionAnswer
    return Call(method="POST", path=f"{bandit_path(name)}/decisions", gives=gives, content=encode_json(body))


def _features_body(
    actions: Mapping[str, FeatureRow],
    *,
    context: FeatureRow | None = None,
    request_id: str | None = None,
    deferred: bool = False,
    subject: str | None = None,
    exclude: Sequence[int | str] | None = None,
    pin: int | str | None = None,
    **ranking: Any,
) -> dict[str, Any]:
    described = [{"id": id_, "features": features} for id_, features in to_plain_actions(actions)]
    context_features = {} if context is None else to_plain_features(context, "context")
    body = {"context": context_features, "actions": described, "request_id": _choose_request_id(request_id)}
    return body | make_options(deferred, subject, exclude, pin) | ranking


def decide_ranking(name: str, actions: object, k: int, options: Mapping[str, Any]) -> Call[RankingAnswer]:
    """Make the call for k actions, ranked."""
    request = {**options, "k": k} if actions is None else {"actions": actions, **options, "k": k}
    body = encode_json(_request_body(request, 0))
    return Call(method="POST", path=f"{bandit_path(name)}/decisions", gives=RankingAnswer, content=body)


def make_options(
    deferred: bool,
    subject: str | None,
    exclude: Sequence[int | str] | None,
    pin: int | str | None,
    k: int = 1,
    examination: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Return the options of a decision that differ from their defaults."""
    given: dict[str, Any] = {"deferred": deferred or None, "subject": subject, "exclude": exclude, "pin": pin}
    given |= {"k": None if k == 1 else k, "examination": examination}
    return {name: value for name, value in given.items() if value is not None}


def catalogue_body(
    *,
    context: FeatureRow | None = None,
    candidates: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    search: str = "exact",
    request_id: str | None = None,
    deferred: bool = False,
    subject: str | None = None,
    **ranking: Any,
) -> dict[str, Any]:
    """Return the body of a decision among a catalogue."""
    around = None if context is None else to_plain_features(context, "context")
    given = {"context": around, "candidates": candidates, "exclude": exclude}
    body = {name: value for name, value in given.items() if value is not None}
    if search != "exact":
        body["search"] = search
    return body | {"request_id": _choose_request_id(request_id)} | make_options(deferred, subject, None, None) | ranking


def make_bodies(requests: Iterable[Mapping[str, Any]]) -> list[msgspec.Raw | Exception]:
    """Return the body of each request of a batch, or its error, which is not sent and stays in its place."""
    bodies: list[msgspec.Raw | Exception] = []
    for place, request in enumerate(list_requests(requests)):
        try:
            bodies.append(msgspec.Raw(encode_json(_request_body(request, place))))
        except InputError as error:
            bodies.append(error)
    return bodies


def decide_many(name: str, bodies: Sequence[msgspec.Raw | Exception]) -> Iterator[Call[list[Outcome]]]:
    """Make the calls for many decisions, each of at most `MAX_DECISIONS` requests, all with request ids."""
    sent = [body for body in bodies if not isinstance(body, Exception)]
    for start in range(0, len(sent), MAX_DECISIONS):
        content = encode_json(sent[start : start + MAX_DECISIONS])
        yield Call(method="POST", path=f"{bandit_path(name)}/decisions", gives=list[Outcome], content=content)


def _request_body(request: Mapping[str, Any], place: int) -> dict[str, Any]:
    check_request_names(request, place)
    if "actions" not in request:
        return catalogue_body(**request)
    if isinstance(request["actions"], Mapping):
        return _features_body(**request)
    body = {**request, "request_id": _choose_request_id(request.get("request_id"))}
    return {name: value for name, value in body.items() if value is not None}


def read_outcomes(outcomes: list[Outcome]) -> list[DecisionAnswer | Exception]:
    """Return the answers of a batch, with an error in the place of each that has none."""
    return [_make_error(each.error) if each.decision is None else _narrow(each.decision) for each in outcomes]


def place_errors(
    bodies: Sequence[msgspec.Raw | Exception], answers: Iterable[DecisionAnswer | Exception]
) -> list[DecisionAnswer | Exception]:
    """Return the answers to the requests that were sent, with the errors of the others in their places."""
    found = iter(answers)
    return [body if isinstance(body, Exception) else next(found) for body in bodies]


def _narrow(answer: RankingAnswer) -> DecisionAnswer:
    """Return an answer without a ranking as `decide` does."""
    if answer.ranking:
        return answer
    return DecisionAnswer(*(getattr(answer, name) for name in DecisionAnswer.__struct_fields__))


def _make_error(problem: Problem | None) -> Exception:
    if problem is None:
        return ServiceError("a request of a batch was answered with neither a decision nor an error")
    if problem.code == "invalid":
        return InputError(problem.message, field=problem.field)
    return ConflictError(problem.message) if problem.code == "conflict" else ServiceError(problem.message)


def _choose_request_id(request_id: str | None) -> str:
    """Return the caller's request id, or a new one; 0 and "" are no ids, and must not become a new one each time."""
    return uuid.uuid4().hex if request_id is None else check_request_id(request_id)


def _to_array(actions: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return an array, or a DataFrame, as doubles in C order."""
    try:
        return np.ascontiguousarray(actions, "<f8")
    except (TypeError, ValueError):
        raise InputError(
            f"actions must be a (K, d) array of numbers; got {short_repr(actions)}", field="actions"
        ) from None
