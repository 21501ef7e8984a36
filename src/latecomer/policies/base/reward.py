"""Rewards: the value that a decision is credited with, made of the amounts of its conversions.

A binary reward is a value in [0, 1], from the first conversion. A value has a scale, in which conversions are reported:
amounts are aggregated, divided by the scale and capped at 1, so that the policy learns in [0, 1] as ever.
"""

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, TypedDict

from msgspec import Struct

from latecomer.core.conversions import REVOKED
from latecomer.errors import InputError
from latecomer.validation import check_choice, check_conversion_value, check_nonnegative, check_positive, short_repr

Aggregate = Literal["first", "sum", "max"]
AGGREGATES: tuple[Aggregate, ...] = ("first", "sum", "max")
LARGEST_SCALE, LARGEST_AMOUNT = 1e12, 1e15


class NotGiven(Enum):
    """In the place of a value that a conversion does not have; None would also come from a table with a gap."""

    NOT_GIVEN = "not given"


NOT_GIVEN = NotGiven.NOT_GIVEN


class Reward(TypedDict, total=False):
    """A reward as a policy takes it: {"scale": 200, "aggregate": "sum"}; without an aggregate, it is the sum."""

    scale: float
    aggregate: Aggregate


class RewardRule(Struct, frozen=True):
    """The way in which the amounts of a decision's conversions become its credit."""

    scale: float = 1.0
    aggregate: Aggregate = "first"
    is_binary: bool = True

    def check_amount(self, value: object, name: str = "value") -> float:
        """Return an amount; `InputError` where it is none, or a value of which the amount must be given is not."""
        if self.is_binary:
            return 1.0 if value is NOT_GIVEN else check_conversion_value(name, value)
        if value is NOT_GIVEN:
            raise InputError(f"{name} must be given, for the reward has a scale of {self.scale:g}", field=name)
        return check_nonnegative(name, value, most=LARGEST_AMOUNT)

    def total(self, amounts: Sequence[float]) -> float:
        """Aggregate amounts, in the order of their reports; the order does not change a sum."""
        if self.aggregate == "sum":
            return math.fsum(amounts)
        return max(amounts) if self.aggregate == "max" else amounts[0]

    def credit(self, amounts: Sequence[float]) -> float:
        """Return the credit, in [0, 1]; `REVOKED` where no amount is left."""
        return min(self.total(amounts) / self.scale, 1.0) if amounts else REVOKED

    def is_capped(self, amounts: Sequence[float]) -> bool:
        """Tell whether the amounts come to more than the scale."""
        return bool(amounts) and self.total(amounts) > self.scale

    @property
    def parameters(self) -> dict[str, Any]:
        """The argument that makes it, as a policy's parameters have it."""
        return {} if self.is_binary else {"reward": {"scale": self.scale, "aggregate": self.aggregate}}


def parse_reward(reward: Reward | Mapping[str, Any] | Literal["binary"] | None) -> RewardRule:
    """Give the rule of a reward; None and "binary" are as ever.

    >>> parse_reward({"scale": 200}).credit([59.5, 20.5])
    0.4
    """
    if reward is None or reward == "binary":
        return RewardRule()
    if not isinstance(reward, Mapping) or not {"scale"} <= set(reward) <= {"scale", "aggregate"}:
        raise InputError(
            f'reward must be "binary" or as {{"scale": 200, "aggregate": "sum"}}; got {short_repr(reward)}',
            field="reward",
        )
    try:
        scale = check_positive("scale", reward["scale"])
        if scale > LARGEST_SCALE:
            raise InputError(f"scale must be at most {LARGEST_SCALE:g}; got {scale!r}")
        aggregate = check_choice("aggregate", reward.get("aggregate", "sum"), AGGREGATES)
    except InputError as error:
        raise InputError(f"reward: {error}", field="reward") from None
    return RewardRule(scale, aggregate, is_binary=False)  # type: ignore[arg-type]
