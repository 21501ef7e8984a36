"""Evaluation: a log of decisions, and what other policies would have earned on it.

`latecomer.read_log` and `latecomer.evaluate` are the two to begin with; here are policies as targets, and the parts.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from latecomer.extras import explain_missing_package

if TYPE_CHECKING:
    from latecomer.evaluation.betting import BettingInterval
    from latecomer.evaluation.estimators import estimate
    from latecomer.evaluation.policy_targets import frozen, replay
    from latecomer.evaluation.sums import sum_rounds

_HOME = {
    "BettingInterval": "latecomer.evaluation.betting",
    "estimate": "latecomer.evaluation.estimators",
    "frozen": "latecomer.evaluation.policy_targets",
    "replay": "latecomer.evaluation.policy_targets",
    "sum_rounds": "latecomer.evaluation.sums",
}

__all__ = ["BettingInterval", "estimate", "frozen", "replay", "sum_rounds"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'latecomer.evaluation' has no attribute {name!r}")
    with explain_missing_package(f"latecomer.evaluation.{name}"):
        return getattr(import_module(_HOME[name]), name)  # not kept: a module may have the same name


def __dir__() -> list[str]:
    return sorted(__all__)
