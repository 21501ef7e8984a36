"""Checks of a specification that its types do not make."""

import math
from typing import Any

import msgspec

from latecomer.encoding.declarations import parse_interactions
from latecomer.encoding.layout import make_layout
from latecomer.encoding.scales import MIN_DIM, check_scales
from latecomer.encoding.spec import VERSION, EncoderSpec, Feature, HashedFeature, NumberFeature
from latecomer.errors import InputError, NewerFileError
from latecomer.validation import short_repr


def read_spec(given: Any) -> EncoderSpec:
    """Return the specification that JSON or a dict stands for; errors begin with `encoder`."""
    if isinstance(given, EncoderSpec):
        return check_spec(given)
    version = given.get("version", VERSION) if isinstance(given, dict) else VERSION
    if isinstance(version, int) and version > VERSION:
        raise make_version_error(version)
    try:
        return check_spec(msgspec.convert(given, EncoderSpec))
    except msgspec.ValidationError as error:
        raise InputError(f"encoder must be as Encoder.to_dict gives it: {error}", field="encoder") from None


def check_spec(spec: EncoderSpec) -> EncoderSpec:
    """Return the specification; `InputError` where it breaks a rule, with the field `encoder`."""
    try:
        _check_spec(spec)
    except InputError as error:
        raise InputError(f"encoder: {error}", field="encoder") from None
    return spec


def make_version_error(version: int) -> NewerFileError:
    """Return the error for a format of a later version."""
    return NewerFileError(f"the encoder has format {version}, and this Latecomer reads up to {VERSION}: update")


def _check_spec(spec: EncoderSpec) -> None:
    if spec.version != VERSION:
        raise InputError(f"version must be {VERSION}; got {spec.version}")
    if spec.is_open:
        if spec.interactions is not None:
            raise InputError("interactions must be left out where no features are declared")
        if spec.dim < MIN_DIM:
            raise InputError(f"dim must be at least {MIN_DIM}; got {spec.dim}")
        check_scales(spec.scales, spec.dim)
        return
    if spec.scales:
        raise InputError("scales must be left out where features are declared: a number has its scale there")
    if not 1 <= spec.dim <= 8192:
        raise InputError(f"dim must be 1 to 8192; got {spec.dim}")
    context, actions = spec.context or [], spec.actions or []
    names = [feature.name for feature in (*context, *actions)]
    for side, features in (("context", context), ("actions", actions)):
        if [feature.name for feature in features] != sorted(feature.name for feature in features):
            raise InputError(f"{side} must have its features in the order of their names")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError(
            f"context and actions must have different names; got {short_repr(doubled[0])} twice: rename one"
        )
    for feature in (*context, *actions):
        _check_feature(feature)
    sides = {"context": [f.name for f in context], "actions": [f.name for f in actions]}
    if parse_interactions(spec.interactions, **sides) != spec.interactions:
        raise InputError("interactions must be in their order, each once, with the context's feature first")
    make_layout(spec)


def _check_feature(feature: Feature) -> None:
    if isinstance(feature, NumberFeature):
        if not (0.0 < feature.scale < math.inf and math.isfinite(feature.center)):
            raise InputError(f"{short_repr(feature.name)} must have a scale above 0 and a finite center")
        return
    levels = feature.known if isinstance(feature, HashedFeature) else feature.levels
    if levels != sorted(set(levels)):
        raise InputError(f"{short_repr(feature.name)} must have its levels in their order, each once")
