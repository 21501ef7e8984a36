"""Scales of numbers, as callers declare them."""

from collections.abc import Mapping
from typing import Any

from latecomer.encoding.spec import Scale
from latecomer.encoding.values import to_plain_features
from latecomer.errors import InputError
from latecomer.validation import short_repr, to_plain_text

MIN_DIM = 3
"""Dimensions that features need: one for the constant, and two that a term may use."""


def parse_scales(features: Mapping[str, Any] | None) -> dict[str, Scale]:
    """Return the declared scales; each is given as a `Scale`, or as a dict of its fields.

    >>> parse_scales({"price": {"scale": 200}})["price"]
    Scale(scale=200.0, center=0.0)
    """
    if features is None:
        return {}
    if not isinstance(features, Mapping):
        raise InputError(
            f'features must be such as {{"price": {{"scale": 200}}}}; got {short_repr(features)}', field="features"
        )
    return {_check_name(name): _check_scale(name, given) for name, given in features.items()}


def check_scales(features: dict[str, Scale], dim: int) -> None:
    """Raise `InputError` where the scales are invalid, or `dim` is too small for features."""
    parse_scales(features)
    if features and dim < MIN_DIM:
        raise InputError(f"dim must be at least {MIN_DIM} where features are declared; got {dim}", field="dim")


def _check_name(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(f"features must have texts as names; got {short_repr(name)}", field="features")
    return to_plain_text(name)


def _check_scale(name: str, given: object) -> Scale:
    fields: Any = {"scale": given.scale, "center": given.center} if isinstance(given, Scale) else given
    if not isinstance(fields, Mapping) or not {"scale"} <= set(fields) <= {"scale", "center"}:
        raise InputError(
            f"features: {short_repr(name)} must have a scale, and may have a center; got {short_repr(given)}",
            field="features",
        )
    try:
        plain = to_plain_features(fields, f"features: {short_repr(name)}")
    except InputError as error:
        error.field = "features"
        raise
    scale, center = plain["scale"], plain.get("center", 0.0)
    if type(scale) is not float or type(center) is not float or scale <= 0.0:
        raise InputError(
            f"features: {short_repr(name)} must have a scale above 0 and a number as center; got {short_repr(given)}",
            field="features",
        )
    return Scale(scale=scale, center=center)
