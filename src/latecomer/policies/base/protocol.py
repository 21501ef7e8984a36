"""The methods and readings of every policy."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from os import PathLike
from typing import Protocol, runtime_checkable

import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.policies.base.decision import Decision, Verdict
from latecomer.timestamps import Moment


@runtime_checkable
class Policy(Protocol):
    """Two events, one direction: a decision moves V and the window, a conversion moves B."""

    @property
    def dim(self) -> int: ...
    @property
    def window(self) -> int | timedelta: ...
    @property
    def rounds(self) -> int: ...
    @property
    def pending(self) -> int: ...
    @property
    def theta_hat(self) -> Array: ...
    @property
    def width(self) -> float: ...
    @property
    def pending_width(self) -> float: ...

    def decide(self, actions: npt.ArrayLike, *, at: Moment | None = None) -> Decision: ...
    def decide_many(
        self,
        action_sets: npt.ArrayLike | Sequence[npt.ArrayLike],
        *,
        at: Moment | Collection[Moment] | None = None,
    ) -> list[Decision]: ...
    def convert(self, decision: Decision | int, value: float = 1.0, *, at: Moment | None = None) -> Verdict: ...
    def revoke(self, decision: Decision | int, *, at: Moment | None = None) -> Verdict: ...
    def save(self, path: str | PathLike[str]) -> None: ...
