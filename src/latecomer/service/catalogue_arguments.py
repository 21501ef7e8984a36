"""The arguments of a decision among a bandit's catalogue, as callers in Python give them."""

from collections.abc import Sequence
from typing import Any, Literal

from latecomer.encoding.values import FeatureRow, to_plain_features
from latecomer.errors import InputError
from latecomer.service.action_index import find_index
from latecomer.service.bandit.catalogue_pick import check_pick


def prepare_pick(
    context: FeatureRow | None = None,
    candidates: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    search: Literal["exact", "approximate"] = "exact",
    **options: Any,
) -> dict[str, Any]:
    """Return the arguments of `Store.decide`; `options` are those that other decisions have too."""
    try:
        around = None if context is None else to_plain_features(context, "context")
    except InputError as error:
        error.field = "context"
        raise
    return {"pick": check_pick(around, candidates, exclude, search, find_index), **options}
