"""Clocks that a test can set, and the state of a bandit as numbers."""

from typing import Any

import numpy as np

from latecomer.service.store import Store

SECOND = 1_000_000
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND


class FakeClocks:
    """A wall clock that can be set, a running clock that cannot, and a name for its start."""

    def __init__(self, wall: int = 1_800_000_000 * SECOND) -> None:
        self.offset, self.elapsed, self.start = wall, 0, "boot 1"

    def wall(self) -> int:
        return self.elapsed + self.offset

    def running(self) -> int:
        return self.elapsed

    def boot(self) -> str:
        return self.start

    def advance(self, microseconds: int) -> None:
        """Let time pass."""
        self.elapsed += microseconds

    def set_clock(self, microseconds: int) -> None:
        """Set the wall clock ahead or back."""
        self.offset += microseconds

    def reboot(self) -> None:
        """Restart the running clock; the wall clock goes on."""
        self.offset += self.elapsed
        self.elapsed, self.start = 0, self.start + "'"


def state_of(store: Store, name: str) -> dict[str, Any]:
    """Return everything that the next decision depends on."""
    policy = store.registry.bandits[name].policy
    return {
        "V": policy.V.tobytes(),
        "V_inv": policy.V_inv.tobytes(),
        "B": policy.B.tobytes(),
        "pending": policy.pending,
        "rounds": policy.rounds,
        "width": policy.width,
        "pending_width": policy.pending_width,
        "generator": policy.rng.state(),
        "stats": store.stats(name),
    }


def unit_rows(generator: np.random.Generator, count: int, dim: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return actions of norm 1."""
    rows = generator.standard_normal((count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)  # type: ignore[no-any-return]
