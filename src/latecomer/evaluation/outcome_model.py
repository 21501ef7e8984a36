"""The model of DR: matured rates, fitted on earlier rounds only.

The log's time is cut into blocks, and a round is predicted from the blocks before its own: so E[ψ_s | the past] is 0,
also where the log was made by a policy that learnt. In the first block the prediction is 0, and DR is IPS there. Items
have a rate each, drawn towards the common one; offers a ridge regression on their features, each round counting as far
as it has matured. DR is unbiased whatever the model says; a good one makes its interval shorter.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Integers
from latecomer.delays.distribution import Floats
from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.maturity import Maturity

BLOCKS = 50
_SHRINKAGE = 20.0
"""Rounds that the common rate counts as, for each item."""
_RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class ModelSums:
    """Of each block Σ f·aaᵀ (or its diagonal, for items) and Σ Y·a, of the chosen actions; they add up over parts."""

    grams: Floats
    responses: Floats

    def __add__(self, other: "ModelSums") -> "ModelSums":
        return ModelSums(self.grams + other.grams, self.responses + other.responses)


def block_of(log: DecisionLog, batch: LogBatch) -> Integers:
    """Return the block of each round."""
    share = (batch.decided - log.first) / max(log.last - log.first, 1e-9)
    return np.clip((share * BLOCKS).astype(np.int64), 0, BLOCKS - 1)


def sum_for_model(log: DecisionLog, maturity: Maturity, part: int, rows: int) -> ModelSums:
    """Sum over the rounds of a part."""
    found: ModelSums | None = None
    for batch in log.batches(part, rows=rows):
        outcomes, matured, _ = maturity.observe(batch)
        one = _sum_batch(batch, block_of(log, batch), outcomes, matured)
        found = one if found is None else found + one
    return found or ModelSums(np.zeros(()), np.zeros(()))


def _sum_batch(batch: LogBatch, block: Integers, outcomes: Floats, matured: Floats) -> ModelSums:
    if batch.items:
        size = len(batch.items)
        cell = block * size + batch.action
        seen, came = (np.bincount(cell, weights=one, minlength=BLOCKS * size) for one in (matured, outcomes))
        return ModelSums(_as_floats(seen.reshape(BLOCKS, size)), _as_floats(came.reshape(BLOCKS, size)))
    chosen = batch.features[batch.starts + batch.action]
    dim = chosen.shape[1]
    grams, responses = np.zeros((BLOCKS, dim, dim)), np.zeros((BLOCKS, dim))
    for number in np.unique(block):
        rows = chosen[block == number]
        grams[number] = (rows * matured[block == number][:, None]).T @ rows
        responses[number] = outcomes[block == number] @ rows
    return ModelSums(grams, responses)


class OutcomeModel:
    """Predictions for the rounds of each block, from the blocks before it."""

    def __init__(self, sums: ModelSums, *, has_items: bool) -> None:
        grams, responses = _shift(np.cumsum(sums.grams, axis=0)), _shift(np.cumsum(sums.responses, axis=0))
        self._has_items = has_items
        self._rates = _item_rates(grams, responses) if has_items else _ridge(grams, responses)

    def predict(self, log: DecisionLog, batch: LogBatch) -> Floats:
        """Return the predictions for all rounds' actions, in one list."""
        rates = self._rates[block_of(log, batch)]
        if self._has_items:
            return rates.ravel()
        return np.asarray((batch.features * np.repeat(rates, batch.sizes, axis=0)).sum(axis=1))


def _shift(sums: Floats) -> Floats:
    """Return the sums before each block in place of those up to it."""
    return np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])


def _item_rates(matured: Floats, outcomes: Floats) -> Floats:
    total = matured.sum(axis=1, keepdims=True)
    common = np.divide(outcomes.sum(axis=1, keepdims=True), total, out=np.zeros_like(total), where=total > 0.0)
    return _as_floats((outcomes + _SHRINKAGE * common) / (matured + _SHRINKAGE))


def _ridge(grams: Floats, responses: Floats) -> Floats:
    return _as_floats(np.linalg.solve(grams + _RIDGE * np.eye(grams.shape[1]), responses[:, :, None])[:, :, 0])


def _as_floats(values: npt.ArrayLike) -> Floats:
    return np.asarray(values, np.float64)
