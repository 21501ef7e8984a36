"""The specification of a bandit, as a client sends it and as the log keeps it."""

from typing import Annotated, Any

from msgspec import Meta, Struct

DEFAULT_POLICY = "recommended"
"""The policy of a specification that names none: that of `latecomer.recommended` on the day of its creation."""


class Scale(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scale of a feature's number: a row has (x - center) / scale, at least -1 and at most 1."""

    scale: Annotated[float, Meta(gt=0)]
    center: float = 0.0


class BanditSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The specification that a bandit is created from.

    `window` is rounds (an int) or a time ("7d", "36h"); `policy` a class of the policy registry, or "recommended";
    `parameters` its keyword arguments. Without a seed, one is drawn when the bandit is created, and kept. `features`
    declares the scales of numbers, by name, for decisions with features instead of vectors.
    """

    dim: int
    window: int | str
    policy: str = DEFAULT_POLICY
    parameters: dict[str, Any] = {}
    features: dict[str, Scale] = {}
