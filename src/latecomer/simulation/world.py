"""A world: θ, what it offers, and how late its conversions are."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.delays import DelayLaw
from latecomer.errors import InputError
from latecomer.policies.dispatch import NORM_LIMIT
from latecomer.simulation.actions import ActionLaw

BLOCK = 1024
"""Rounds drawn at once. Part of what a seed means: another size is another world."""

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Block:
    """A stretch of rounds, as every policy meets it."""

    sets: Array
    """(rounds, K, d)"""
    means: Array
    """(rounds, K), ⟨a, θ⟩"""
    best: Array
    """(rounds,), the best mean"""


class World:
    """Rewards are Bernoulli of mean ⟨a, θ⟩, and come `delays` later.

    Parameters
    ----------
    theta
        θ, of norm at most 1.
    actions
        An action law, such as `lc.actions.Binary(10)`.
    delays
        A delay law, such as `lc.delays.Geometric(mean=100)`.
    """

    def __init__(self, *, theta: npt.ArrayLike, actions: ActionLaw, delays: DelayLaw) -> None:
        self.theta: Array = np.array(theta, np.float64)
        self.actions = actions
        self.delays = delays
        if self.theta.ndim != 1 or not self.theta.size or not np.isfinite(self.theta).all():
            raise InputError(f"theta must be a vector of finite numbers; got {theta!r}")
        for name, law in (("actions", actions), ("delays", delays)):
            if not callable(getattr(law, "sample", None)):
                raise InputError(f"{name} must be a law with a method sample; got {law!r}")
        self.block(np.random.default_rng(0), BLOCK)  # a law that cannot fit is refused here, not after an hour

    @property
    def dim(self) -> int:
        """D."""
        return len(self.theta)

    def __repr__(self) -> str:
        return f"World(theta={self.theta.tolist()}, actions={self.actions!r}, delays={self.delays!r})"

    def block(self, rng: np.random.Generator, rounds: int) -> Block:
        """Draw what so many rounds offer, and check that every mean is a probability."""
        sets = np.asarray(self.actions.sample(rng, rounds, self.theta), np.float64)
        if sets.ndim != 3 or sets.shape[0] != rounds or sets.shape[1] < 1 or sets.shape[2] != self.dim:
            raise InputError(
                f"actions must be drawn as a ({rounds}, K, {self.dim}) array, since theta has {self.dim} entries; "
                f"{self.actions!r} gave shape {sets.shape}"
            )
        squares = np.einsum("rki,rki->rk", sets, sets)
        fits = squares <= NORM_LIMIT**2
        if not fits.all():
            where = tuple(np.argwhere(~fits)[0])
            raise InputError(
                f"actions must be finite and of norm at most 1; {sets[where].tolist()} has norm "
                f"{np.sqrt(squares[where]):.6g}: divide every action by the largest norm that occurs"
            )
        means = sets @ self.theta
        fits = (means >= -_ROUNDING) & (means <= 1.0 + _ROUNDING)
        if not fits.all():
            where = tuple(np.argwhere(~fits)[0])
            raise InputError(
                f"every mean reward ⟨a, θ⟩ must be in [0, 1]; action {sets[where].tolist()} has {means[where]:.6g}: "
                "change theta, or the actions"
            )
        return Block(np.ascontiguousarray(sets), means, means.max(axis=1))
