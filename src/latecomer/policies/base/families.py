"""Constructors that several policies share, and their parameters' checks."""

from typing import Unpack

from latecomer.policies.base.clock import Span
from latecomer.policies.base.parameters import CommonParameters
from latecomer.policies.base.policy import LinearPolicy
from latecomer.validation import check_nonnegative, check_probability


class UCBPolicy(LinearPolicy):
    """A policy that adds a bonus to an estimate; parameters as in `OTFLinUCB`."""

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        delta: float = 0.1,
        exploration: float = 1.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        numbers = {
            "delta": check_probability("delta", delta),
            "exploration": check_nonnegative("exploration", exploration),
        }
        super().__init__(dim, window, ridge=ridge, numbers=numbers, **common)


class ThompsonPolicy(LinearPolicy):
    """A policy that samples its estimate; parameters as in `OTFLinTS`."""

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        ridge: float = 1.0,
        exploration: float = 1.0,
        **common: Unpack[CommonParameters],
    ) -> None:
        numbers = {"exploration": check_nonnegative("exploration", exploration)}
        super().__init__(dim, window, ridge=ridge, numbers=numbers, **common)
