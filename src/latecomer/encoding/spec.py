"""The specification of an encoder: plain records, which files, logs and requests keep as JSON.

The same specification gives the same rows for ever. A change of what it means takes a new `VERSION`.
"""

from typing import Annotated

from msgspec import Meta, Struct

VERSION = 1
"""The format of a specification, and the formula that it stands for."""

Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Scale(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scale of a feature's number: a row has (x - center) / scale, at least -1 and at most 1."""

    scale: Annotated[float, Meta(gt=0)]
    center: float = 0.0


class NumberFeature(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """A number in its scale, (x - center) / scale, clipped to [-1, 1], in a column of its own."""

    name: Name
    scale: Annotated[float, Meta(gt=0)]
    center: float = 0.0


class OneHotFeature(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="one-hot"):
    """A category of known levels, each in a column of its own; another level has no term."""

    name: Name
    levels: Annotated[list[str], Meta(min_length=1)]


class HashedFeature(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="hashed"):
    """A category of any levels, hashed into shared columns; `known` are levels to be named in explanations."""

    name: Name
    known: list[str] = []


Feature = NumberFeature | OneHotFeature | HashedFeature


class EncoderSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fitted encoder: the features of context and actions, and the pairs of them that are multiplied.

    Without `context` and `actions` any name is a feature, all terms are hashed, and `scales` has the scales of numbers.
    Without `interactions` every feature of the context is multiplied with every feature of the action.
    """

    version: int = VERSION
    dim: int
    context: list[Feature] | None = None
    actions: list[Feature] | None = None
    interactions: list[tuple[str, str]] | None = None
    scales: dict[str, Scale] = {}

    @property
    def is_open(self) -> bool:
        """True where any name is a feature."""
        return self.context is None and self.actions is None
