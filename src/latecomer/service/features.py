"""Features of a request as rows, by the bandit's encoder; without one, any name is hashed."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from latecomer.core.state import Array
from latecomer.encoding.rows import OpenRows, PreparedActions, Rows, make_rows
from latecomer.encoding.scales import MIN_DIM
from latecomer.encoding.spec import Scale
from latecomer.encoding.values import FeatureRow, Plain
from latecomer.errors import InputError
from latecomer.service.messages import BanditInfo

_MOST_KEPT = 1024
"""Bandits whose rows are kept ready."""
_kept: dict[tuple[int, int], tuple[object, Rows]] = {}


def encode_features(info: BanditInfo, context: FeatureRow, actions: Sequence[FeatureRow]) -> Array:
    """Return a row of norm at most 1 for each action, by the encoder of the bandit."""
    return _find_rows(info).encode(context, actions)


def prepare_features(info: BanditInfo, actions: Sequence[FeatureRow]) -> PreparedActions:
    """Read actions once, for many contexts."""
    return _find_rows(info).prepare(actions)


def encode_prepared(info: BanditInfo, context: FeatureRow, actions: PreparedActions) -> Array:
    """Return the rows of `encode_features`, of actions that `prepare_features` has read."""
    return _find_rows(info).encode_prepared(context, actions)


def hash_features(
    context: FeatureRow, actions: Sequence[FeatureRow], dim: int, *, scales: Mapping[str, Scale] | None = None
) -> Array:
    """Return the rows of a bandit without an encoder: those of `Encoder(dim, scales=scales)`.

    Parameters
    ----------
    context
        Features of the decision, shared by all actions.
    actions
        Features of each action: dicts, or rows of a DataFrame; NumPy scalars are accepted.
    dim
        The bandit's d, at least 3.
    scales
        The bandit's scales: the size of a number that counts as 1.

    Examples
    --------
    >>> hash_features({"hour": "noon"}, [{"colour": "red"}, {"colour": "blue", "price": 0.5}], dim=4).shape
    (2, 4)
    """
    _check_dim(dim)
    return OpenRows(dim, scales or {}).encode(context, actions)


def _find_rows(info: BanditInfo) -> Rows:
    """Return the rows of a bandit, kept for as long as its specification is the same object."""
    source: object = info.features if info.encoder is None else info.encoder
    known = _kept.get((id(source), info.dim))
    if known is not None and known[0] is source:
        return known[1]
    if info.encoder is None:
        _check_dim(info.dim)
    rows: Rows = OpenRows(info.dim, info.features) if info.encoder is None else make_rows(info.encoder)
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[id(source), info.dim] = source, rows
    return rows


def _check_dim(dim: int) -> None:
    if dim < MIN_DIM:
        raise InputError(
            f"actions with features need a bandit of at least {MIN_DIM} dimensions; this one has {dim}",
            field="actions",
        )


def digest_features(context: Mapping[str, Plain], actions: Sequence[tuple[str, Mapping[str, Plain]]]) -> bytes:
    """Return bytes that identify a request's features; two requests with the same rows may still differ in them."""
    return blake2b(msgspec.json.encode((context, actions), order="deterministic"), digest_size=16).digest()
