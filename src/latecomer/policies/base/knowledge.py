"""What a policy knows, to be read from outside: every answer is a number or a copy."""

from datetime import timedelta
from typing import Any

import numpy as np

from latecomer.core.state import Array
from latecomer.policies.base.compiled_state import CompiledState


class Knowledge:
    """The readings of a policy's memory."""

    _dim: int
    _window: int | timedelta
    _in_rounds: bool
    _parameters: dict[str, Any]
    _memory: CompiledState

    @property
    def dim(self) -> int:
        """D."""
        return self._dim

    @property
    def window(self) -> int | timedelta:
        """M."""
        return self._window

    @property
    def rounds(self) -> int:
        """How many decisions it has made."""
        return int(self._memory.number("rounds"))

    @property
    def pending(self) -> int:
        """How many decisions would be credited if they converted now; in time, with the latest decision."""
        return int(self._memory.number("pending"))

    @property
    def V(self) -> Array:
        """V = λI + Σ A_s A_sᵀ, a copy."""
        return self._memory.array("V")

    @property
    def V_inv(self) -> Array:
        """V⁻¹, a copy."""
        return self._memory.array("V_inv")

    @property
    def B(self) -> Array:
        """B = Σ Ỹ_s A_s, a copy."""
        return self._memory.array("B")

    @property
    def log_det(self) -> float:
        """Ln det(V)/λ^d."""
        return float(self._memory.number("log_det"))

    @property
    def theta_hat(self) -> Array:
        """θ̂ = V⁻¹B, Eq. 1, or what the policy has in its place, as of the next round.

        It estimates τ_m·θ: how many conversions the window loses cannot be known from inside it.
        """
        return self._memory.theta_hat(self._next_stamp)

    @property
    def width(self) -> float:
        """The algorithm's width (α_t or β_t) as of the next round; in time, as if it came with the latest one."""
        return self._memory.width(self._next_stamp)

    @property
    def pending_width(self) -> float:
        """W_t, the part of the width that is due to rounds that may still convert."""
        return self._memory.pending_width(self._next_stamp)

    @property
    def delay_curve(self) -> tuple[Array, Array] | None:
        """F̂_m, where the policy estimates it: ages in the window's unit, and the share of conversions due by then.

        The share is of those that can have been seen, so that it is 1 from about the age of the oldest decision on. How
        many come later, or not in the window, conversions do not tell.
        """
        names = self._memory.state.dtype.names or ()
        if "curve" not in names:
            return None
        ages = self._memory.array("edges").astype(np.float64)
        return (ages if self._in_rounds else ages / 1e6), self._memory.array("curve")

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self._parameters.items())
        return (
            f"<{type(self).__name__}(dim={self._dim}, window={self._window!r}{parameters}) after {self.rounds} rounds>"
        )

    @property
    def _now(self) -> int:
        return int(self._memory.number("now"))

    @property
    def _next_stamp(self) -> int:
        return self.rounds + 1 if self._in_rounds else self._now
