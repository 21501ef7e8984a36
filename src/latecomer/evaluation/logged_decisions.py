"""A log of decisions as a policy learns from it: chosen actions, summaries of the offers, times and values."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.delays.distribution import Floats
from latecomer.encoding.spec import NumberFeature
from latecomer.errors import InputError
from latecomer.evaluation.batch import LogBatch
from latecomer.policies.base.action_validation import explain_inadmissible
from latecomer.policies.base.learning import NEVER, LoggedDecisions, summarise_sets
from latecomer.policies.base.policy_code import is_admissible


def make_logged_decisions(batch: LogBatch, dim: int, *, encoder: Any, scale: float) -> LoggedDecisions:
    """Make the events of a batch; `InputError` where its actions or values are not a policy's."""
    actions, starts = read_actions(batch, dim, encoder=encoder)
    return make_events(batch, actions, starts, encoder=encoder, scale=scale)


def read_actions(batch: LogBatch, dim: int, *, encoder: Any) -> tuple[Array, Integers]:
    """Return all rounds' actions one after the other, and where each round's begin and end, as a policy takes them.

    Offers of numbers are as they are, items unit vectors; with an encoder, both are what it makes of them.
    """
    actions, starts = _encode_offers(batch, encoder) if encoder is not None else _read_offers(batch)
    if actions.shape[1] != dim:
        raise InputError(
            f"the log's actions must have {dim} features, one per dimension of the policy; got {actions.shape[1]}: "
            "make the policy with that dim, or give an encoder",
            field="log",
        )
    if len(actions) and not is_admissible.call(np.ascontiguousarray(actions), dim):
        raise explain_inadmissible(actions)
    return actions, starts


def make_events(batch: LogBatch, actions: Array, starts: Integers, *, encoder: Any, scale: float) -> LoggedDecisions:
    """Make the events of a batch whose actions were read."""
    values = np.where(np.isfinite(batch.delay), batch.value / scale, 0.0)
    if values.size and values.max() > 1.0:
        raise InputError(
            f"values must be at most scale, {scale:g}; got {values.max() * scale:g}: give the largest value that a "
            "conversion can have as scale",
            field="scale",
        )
    return LoggedDecisions(
        actions=_read_recorded(batch, actions[starts[:-1] + batch.action], encoder=encoder),
        summaries=summarise_sets(actions, starts),
        stamps=_to_stamps(batch.decided),
        arrivals=np.where(np.isfinite(batch.delay), _to_stamps(batch.decided + _finite(batch.delay)), NEVER),
        values=values,
    )


def _read_recorded(batch: LogBatch, chosen: Array, *, encoder: Any) -> Array:
    """Return the rows that rounds are recorded with: chosen actions, times the examination of their positions.

    Those that the service recorded are taken as they are, in full precision; an encoder may be another than its.
    """
    rows = np.ascontiguousarray(chosen * batch.examination[:, None])
    recorded = batch.table["recorded"]
    known = recorded.is_not_null().to_numpy()
    if encoder is not None or not known.any():
        return rows
    cells, dim = recorded.drop_nulls(), rows.shape[1]
    if (cells.list.len() != dim).any():
        raise InputError(f"{batch.layout.recorded} must have {dim} numbers in each row, as the actions have")
    rows[known] = cells.explode().to_numpy().astype(np.float64).reshape(-1, dim)
    if not is_admissible.call(rows, dim):
        raise explain_inadmissible(rows)
    return rows


def _finite(delays: Floats) -> Floats:
    return np.where(np.isfinite(delays), delays, 0.0)


def _to_stamps(seconds: Floats) -> Integers:
    return np.rint(seconds * 1e6).astype(np.int64)


def _read_offers(batch: LogBatch) -> tuple[Array, Integers]:
    """Return all rounds' actions one after the other, and where each round's begin and end."""
    return batch.features, np.concatenate([batch.starts, [len(batch.features)]])


def _encode_offers(batch: LogBatch, encoder: Any) -> tuple[Array, Integers]:
    """Encode round by round; an item is the record {its column: its id}."""
    column, numbers = batch.layout.action, _number_features(encoder)
    rows = []
    for context, offer in zip(batch.contexts(), batch.offers(), strict=True):
        if isinstance(offer, np.ndarray):
            raise InputError("an encoder is for actions with names; this log's are lists of numbers: leave it out")
        actions = [{column: item} for item in offer] if batch.items else offer
        rows.append(encoder.encode(_parse_numbers(context, numbers), actions))
    return np.concatenate(rows), np.concatenate([[0], np.cumsum([len(each) for each in rows])]).astype(np.int64)


def _number_features(encoder: Any) -> set[str]:
    """Name the features of the context that an encoder takes as numbers."""
    spec = getattr(encoder, "spec", None)
    return {each.name for each in getattr(spec, "context", None) or () if isinstance(each, NumberFeature)}


def _parse_numbers(context: Any, names: set[str]) -> Any:
    """Return a context whose numbers are not texts, as those of a CSV file are; what is no number stays as it is."""
    if not isinstance(context, dict) or not any(isinstance(context.get(name), str) for name in names):
        return context
    parsed = dict(context)
    for name in names:
        with suppress(ValueError, TypeError):
            parsed[name] = float(parsed[name]) if parsed.get(name) is not None else None
    return parsed


def yield_logged_decisions(
    batches: Iterator[LogBatch], dim: int, *, encoder: Any, scale: float
) -> Iterator[LoggedDecisions]:
    """Yield the events of batches that come in the order of time."""
    for batch in batches:
        if len(batch):
            yield make_logged_decisions(batch, dim, encoder=encoder, scale=scale)
