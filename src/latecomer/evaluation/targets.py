"""Target policies: what a log is asked about. Each gives a plan for the rounds of a batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from latecomer.errors import InputError
from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.column_target import ColumnTarget
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.plan import Plan, make_plan, read_answer
from latecomer.evaluation.policy_targets import FrozenTarget
from latecomer.evaluation.target import Target
from latecomer.policies.base.policy import LinearPolicy
from latecomer.validation import short_repr, suggest

LOGGED, UNIFORM = "logged", "uniform"
Rule = Callable[[Any, Any], Any]
"""(context, actions) to an index, an item's id, or a probability for each action."""


class Logged(Target):
    """The policy that made the log."""

    is_logged = True

    def plan(self, batch: LogBatch) -> None:
        """Return None: every weight is 1."""


class UniformTarget(Target):
    """Every action with the same probability."""

    def plan(self, batch: LogBatch) -> Plan:
        """Return 1/K for each of K actions."""
        return Plan(chances=np.repeat(1.0 / batch.sizes, batch.sizes))


@dataclass(frozen=True)
class FixedTarget(Target):
    """Always the same action."""

    name: str
    index: int

    def plan(self, batch: LogBatch) -> Plan:
        """Return that action, which every offer must have."""
        if len(short := np.flatnonzero(batch.sizes <= self.index)):
            raise InputError(
                f"policy {self.name!r} must be an index into every offer; got {self.index}, and row "
                f"{batch.rows[short[0]]} of the log offers {batch.sizes[short[0]]} actions"
            )
        return Plan(index=np.full(len(batch), self.index))


@dataclass(frozen=True)
class RuleTarget(Target):
    """A function of context and actions."""

    name: str
    rule: Rule

    def plan(self, batch: LogBatch) -> Plan:
        """Ask the rule for every round."""
        asked = enumerate(zip(batch.contexts(), batch.offers(), strict=True))
        answers = [self._ask(batch, row, context, actions) for row, (context, actions) in asked]
        return make_plan([read_answer(self.name, answer, batch, row) for row, answer in enumerate(answers)], batch)

    def _ask(self, batch: LogBatch, row: int, context: Any, actions: Any) -> Any:
        try:
            return self.rule(context, actions)
        except Exception as error:
            raise InputError(
                f"policy {self.name!r}, a function of (context, actions), raised {type(error).__name__} for row "
                f"{batch.rows[row]} of the log: {error}"
            ) from error


def make_target(name: str, given: object, log: DecisionLog, columns: list[str]) -> Target:
    """Make a target of what a caller gave: a word, an action, a column, a function, or a target itself."""
    if isinstance(given, FrozenTarget):
        return given.prepare(log)
    if isinstance(given, Target):
        return given
    if isinstance(given, LinearPolicy):
        return _from_policy(name, given)
    if isinstance(given, str):
        return _from_text(name, given, log, columns)
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given < 0 or (log.items and given >= len(log.items)):
            raise InputError(f"policy {name!r} must be the index of an action of the log; got {given!r}")
        return FixedTarget(name, int(given))
    if callable(given):
        return RuleTarget(name, given)
    raise InputError(
        f"policy {name!r} must be 'logged', 'uniform', an action, a column of the log, a function of (context, "
        f"actions), or a policy; got {short_repr(given)}"
    )


def _from_policy(name: str, policy: LinearPolicy) -> Target:
    if policy.rounds:
        return FrozenTarget(policy, train=0.0)
    raise InputError(
        f"policy {name!r} has not learnt anything yet: give frozen({type(policy).__name__}(…)), which learns from the "
        "earlier part of the log first, or replay(…), which learns as it goes (latecomer.evaluation has both)"
    )


def _from_text(name: str, given: str, log: DecisionLog, columns: list[str]) -> Target:
    if given == LOGGED:
        return Logged()
    if given == UNIFORM:
        return UniformTarget()
    if given in log.items:
        return FixedTarget(name, log.items.index(given))
    if given in columns:
        return ColumnTarget(name, given)
    raise InputError(
        f"policy {name!r} must be 'logged', 'uniform', an item or a column of the log; got {given!r}"
        f"{suggest(given, [LOGGED, UNIFORM, *log.items[:1000], *columns])}"
    )
