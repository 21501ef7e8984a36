"""A plan: the probabilities with which a target policy plays the actions of some rounds."""

from dataclasses import dataclass

import numpy as np

from latecomer.core.state import Integers
from latecomer.delays.distribution import Floats
from latecomer.errors import InputError
from latecomer.evaluation.batch import LogBatch
from latecomer.validation import short_repr

_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Plan:
    """One of three: the index of the only action that is played, the probabilities of all, or of the logged ones."""

    index: Integers | None = None
    chances: Floats | None = None
    """Of all rounds' actions, in one list."""
    of_chosen: Floats | None = None
    """Of the logged actions alone: enough for IPS and SNIPS, and not for DR."""

    def chance_of_chosen(self, batch: LogBatch) -> Floats:
        """Return π(A_s | x_s), of the action that the log has."""
        if self.of_chosen is not None:
            return self.of_chosen
        if self.chances is not None:
            return np.asarray(self.chances[batch.starts + batch.action])
        return np.asarray(self.index == batch.action, np.float64)

    def mean(self, batch: LogBatch, values: Floats) -> Floats:
        """Return Σ_a π(a | x_s)·value of each round, of values in one list for all rounds' actions."""
        if self.chances is not None:
            return np.asarray(np.add.reduceat(self.chances * values, batch.starts))
        if self.index is not None:
            return np.asarray(values[batch.starts + self.index])
        raise InputError(
            "DR needs the probabilities of all actions, and a column of the logged action's has only those: take "
            "estimator='snips', or give the policy as a function",
            field="estimator",
        )

    def totals(self, batch: LogBatch) -> Floats:
        """Return how much each item is played, over all rounds."""
        if self.chances is not None:
            return np.asarray(self.chances.reshape(len(batch), -1).sum(axis=0))
        played = batch.action if self.index is None else self.index
        return np.bincount(played, weights=self.of_chosen, minlength=len(batch.items)).astype(np.float64)


def read_answer(name: str, answer: object, batch: LogBatch, row: int) -> int | Floats:
    """Read what a rule answered for a row: an index or an item's id, or a probability for each action."""
    size = int(batch.sizes[row])
    if isinstance(answer, str):
        if answer in batch.items:
            return batch.items.index(answer)
        raise _refuse(name, answer, batch, row, "the id of an item of the log")
    if isinstance(answer, int | np.integer) and not isinstance(answer, bool):
        if 0 <= answer < size:
            return int(answer)
        raise _refuse(name, answer, batch, row, f"an index from 0 to {size - 1}")
    try:
        chances = np.asarray(answer, np.float64)
    except (TypeError, ValueError):  # no numbers, or rows of several lengths
        chances = np.empty(0)
    if chances.shape != (size,) or not (chances >= -_TOLERANCE).all() or abs(chances.sum() - 1.0) > _TOLERANCE:
        raise _refuse(name, answer, batch, row, f"an index, or {size} probabilities that sum to 1")
    return chances


def make_plan(answers: list[int | Floats], batch: LogBatch) -> Plan:
    """Make the plan of answers that were read."""
    if all(isinstance(answer, int) for answer in answers):
        return Plan(index=np.array(answers, np.int64))
    chances = [_spread(answer, int(size)) for answer, size in zip(answers, batch.sizes, strict=True)]
    return Plan(chances=np.concatenate(chances))


def _spread(answer: int | Floats, size: int) -> Floats:
    if isinstance(answer, int):
        return np.asarray(np.arange(size) == answer, np.float64)
    return answer


def _refuse(name: str, answer: object, batch: LogBatch, row: int, rule: str) -> InputError:
    return InputError(
        f"policy {name!r} must answer with {rule}; for row {batch.rows[row]} of the log it gave {short_repr(answer)}"
    )
