"""The specification of a bandit, as a client sends it and as the log keeps it."""

from typing import Any

from msgspec import Struct

from latecomer.encoding.spec import EncoderSpec, Scale

__all__ = ["DEFAULT_POLICY", "BanditSpec", "Scale"]

DEFAULT_POLICY = "recommended"
"""The policy of a specification that names none: that of `latecomer.recommended` on the day of its creation."""


class BanditSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The specification that a bandit is created from.

    `window` is rounds (an int) or a time ("7d", "36h"); `policy` a class of the policy registry, or "recommended";
    `parameters` its keyword arguments. Without a seed, one is drawn when the bandit is created, and kept. `features`
    declares the scales of numbers, by name, for decisions with features instead of vectors; `encoder`, in its place,
    is an encoder as `Encoder.to_dict` gives it. `log_offers` says whether the log gets the whole offer of each
    decision, which evaluating another policy needs.
    """

    dim: int
    window: int | str
    policy: str = DEFAULT_POLICY
    parameters: dict[str, Any] = {}
    features: dict[str, Scale] = {}
    encoder: EncoderSpec | None = None
    log_offers: bool = True
