"""The calls for a bandit's catalogue."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from latecomer.client.decision_calls import catalogue_body, make_call, make_options
from latecomer.client.protocol import Call, bandit_path, encode_json
from latecomer.encoding.values import FeatureRow, to_plain_features
from latecomer.errors import InputError
from latecomer.service.messages import CatalogueInfo, DecisionAnswer

_PART_BYTES = 1 << 20
"""Bytes of actions in one request, about."""
_PART_ACTIONS = 5_000
PUT_TIMEOUT = 60.0
"""Seconds for a part of a catalogue."""


def put_actions(
    name: str, actions: Mapping[str, Any], withdraw: Sequence[str], *, replace: bool
) -> Iterator[Call[CatalogueInfo]]:
    """Make the calls that put actions into a catalogue, in parts that a server takes; the first one withdraws."""
    parts = list(_split(actions)) or [[]]
    if replace and len(parts) > 1:
        raise InputError(
            f"replace takes about {_PART_BYTES >> 20} MB of actions, in one request; got {len(actions):,} actions: put "
            "them, and withdraw the others by their ids",
            field="replace",
        )
    for place, part in enumerate(parts):
        body = {"actions": part, "withdraw": list(withdraw) if place == 0 else [], "replace": replace}
        content = encode_json(body)
        path = f"{bandit_path(name)}/actions"
        yield Call(method="PUT", path=path, gives=CatalogueInfo, content=content, timeout=PUT_TIMEOUT)


def _split(actions: Mapping[str, Any]) -> Iterator[list[msgspec.Raw]]:
    part: list[msgspec.Raw] = []
    size = 0
    for id_, value in actions.items():
        is_described = isinstance(value, Mapping) or callable(getattr(value, "items", None))
        kind, plain = ("features", to_plain_features(value, id_)) if is_described else ("vector", value)
        text = encode_json({"id": id_, kind: plain})
        if part and (size + len(text) > _PART_BYTES or len(part) >= _PART_ACTIONS):
            yield part
            part, size = [], 0
        part.append(msgspec.Raw(text))
        size += len(text)
    if part:
        yield part


def join_infos(infos: Sequence[CatalogueInfo]) -> CatalogueInfo:
    """Return one description of several changes."""
    counts = {name: sum(getattr(info, name) for info in infos) for name in ("added", "changed", "withdrawn")}
    return CatalogueInfo(version=infos[-1].version, size=infos[-1].size, **counts)


def catalogue(name: str) -> Call[CatalogueInfo]:
    """Make the call that describes a catalogue."""
    return Call(method="GET", path=f"{bandit_path(name)}/actions", gives=CatalogueInfo)


def decide_catalogue(
    name: str,
    *,
    context: FeatureRow | None = None,
    candidates: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    search: Literal["exact", "approximate"] = "exact",
    request_id: str | None = None,
    deferred: bool = False,
    subject: str | None = None,
    k: int = 1,
    examination: Sequence[float] | None = None,
) -> Call[DecisionAnswer]:
    """Make the call for a decision among a catalogue."""
    body = catalogue_body(
        context=context,
        candidates=candidates,
        exclude=exclude,
        search=search,
        request_id=request_id,
        deferred=deferred,
        subject=subject,
    )
    return make_call(name, body | make_options(False, None, None, None, k, examination))
