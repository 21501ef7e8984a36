"""`latecomer.advise_dim`: the number of columns that features need, from a sample."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.encoding.declarations import Declarations
from latecomer.encoding.encoder import Encoder
from latecomer.encoding.hashing import MIN_COLUMNS
from latecomer.encoding.layout import count_columns, count_levels, list_pairs
from latecomer.encoding.spec import Feature
from latecomer.encoding.table import Table, is_frame, open_frame, read_rows
from latecomer.errors import InputError

ENOUGH = 0.95
"""The share of the variance of values that rows of the advised dimension can represent at least."""
FEW_COLUMNS = 128
"""Columns up to which every term is advised to have its own."""
_WIDE = 4096
"""Columns in which next to nothing collides."""
_MOST_ROWS = 2048
_CANDIDATES = (16, 32, 64, 128, 256, 512)


class DimAdvice(Struct, frozen=True):
    """The advised dimension, the reason, and what each dimension keeps, {dim: share of the variance of values}."""

    dim: int
    reason: str
    kept: dict[int, float]


def advise_dim(
    sample: Table,
    *,
    context: Declarations = None,
    actions: Declarations = None,
    interactions: Sequence[tuple[str, str]] | None = None,
) -> DimAdvice:
    """Advise the `dim` of an `Encoder` of these features.

    Where at most 128 columns give every term its own, it is that number. Otherwise the sample is encoded in 16, 32, …
    columns, and the smallest number is advised that keeps 95 % of the variance of values: those of weights drawn at
    random for all terms, in the mean over all such weights. Each column costs time, and rounds to learn.

    Parameters
    ----------
    sample
        Rows with the features of context and action together, as in `Encoder.fit`; 2,048 of them are looked at.
    context, actions, interactions
        As in `Encoder`.

    Examples
    --------
    >>> sample = [{"country": country, "price": price} for country in ("NO", "SE") for price in (12, 150)]
    >>> advise_dim(sample, context=["country"], actions=["price"]).dim
    6
    """
    if context is None and actions is None:
        raise InputError("context and actions must name the features that a dimension is advised for", field="context")

    def fit(dim: int) -> Encoder:
        return Encoder(dim, context=context, actions=actions, interactions=interactions).fit(sample)

    wide = fit(_WIDE)
    features = [*(wide.spec.context or ()), *(wide.spec.actions or ())]
    columns = count_columns(
        features, list_pairs(wide.spec.interactions, wide.spec.context or (), wide.spec.actions or ())
    )
    if columns is not None and columns <= FEW_COLUMNS:
        return DimAdvice(
            columns, f"{columns} columns: a constant, and one for each of {columns - 1} terms", {columns: 1.0}
        )
    part = _thin(sample)
    whole = _center(wide.encode_frame(part))
    kept = {
        dim: _measure_share(whole, _center(fit(dim).encode_frame(part)))
        for dim in _CANDIDATES
        if dim <= len(whole) // 4 and _has_room(features, dim)
    }
    return _choose(kept, rows=len(whole))


def _thin(sample: Table) -> Table:
    """Return 2,048 rows or fewer, spread evenly over the sample."""
    if not is_frame(sample):
        rows = read_rows(sample, where="sample")
        return rows[:: 1 + (len(rows) - 1) // _MOST_ROWS]
    frame = open_frame(sample)
    step = 1 + (len(frame) - 1) // _MOST_ROWS
    return frame.iloc[::step] if hasattr(frame, "iloc") else frame.gather_every(step)


def _center(rows: Array) -> Array:
    centered: Array = rows - rows.mean(axis=0)
    return centered


def _has_room(features: Sequence[Feature], dim: int) -> bool:
    """Tell whether features that were declared to have columns of their own leave two for hashed terms."""
    return 1 + sum(count_levels(feature) or 0 for feature in features) + MIN_COLUMNS <= dim


def _measure_share(whole: Array, rows: Array) -> float:
    """Return the share of the variance of `whole` that lies in the span of the columns of `rows`."""
    basis, spread, _ = np.linalg.svd(rows, full_matrices=False)
    basis = basis[:, spread > 1e-9 * spread.max(initial=0.0)]
    return float(np.sum((basis.T @ whole) ** 2) / np.sum(whole**2))


def _choose(kept: dict[int, float], *, rows: int) -> DimAdvice:
    """Return the smallest dimension that keeps enough, or the largest that was tried."""
    if not kept:
        raise InputError(
            f"the sample must have at least {4 * _CANDIDATES[0]} rows to advise a dimension for hashed features; "
            f"it has {rows}, or declared features need more than {_CANDIDATES[-1]} columns",
            field="sample",
        )
    enough = [dim for dim, share in kept.items() if share >= ENOUGH]
    dim = min(enough) if enough else max(kept)
    reason = f"{dim} columns keep {kept[dim]:.0%} of the variance of values of random weights"
    if not enough:
        reason += f", less than {ENOUGH:.0%}; a sample of {rows} rows cannot tell about more columns"
    return DimAdvice(dim, reason, kept)
