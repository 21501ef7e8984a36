"""The pass over a log that sums every target policy's rounds, part by part and batch by batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from latecomer.delays.distribution import Floats
from latecomer.evaluation.batch import LogBatch
from latecomer.evaluation.decision_log import ROWS_PER_BATCH, DecisionLog
from latecomer.evaluation.maturity import Maturity
from latecomer.evaluation.outcome_model import OutcomeModel
from latecomer.evaluation.sums import Sums, empty_sums, sum_rounds
from latecomer.evaluation.target import Target

_OFFERS_PER_BATCH = 20_000
_CELLS_PER_BATCH = 4_000_000


@dataclass(frozen=True, eq=False)
class TargetSums:
    """A target's sums, and how much of its play each item is."""

    sums: Sums
    planned: Floats
    logged: Floats
    """Counts of each logged item, in the same rounds."""

    def __add__(self, other: "TargetSums") -> "TargetSums":
        return TargetSums(self.sums + other.sums, self.planned + other.planned, self.logged + other.logged)


def choose_rows(log: DecisionLog) -> int:
    """Return the rows of a batch, fewer where there are many actions."""
    if log.layout.offer is not None:
        return _OFFERS_PER_BATCH
    return int(np.clip(_CELLS_PER_BATCH // len(log.items), 1000, ROWS_PER_BATCH))


def sum_part(
    log: DecisionLog,
    targets: Mapping[str, Target],
    maturity: Maturity,
    model: OutcomeModel | None,
    part: int,
    *,
    step: Callable[[], None] | None = None,
) -> dict[str, TargetSums]:
    """Sum the rounds of a part, for each target."""
    items = len(log.items)
    found = {name: TargetSums(empty_sums(maturity.bins), np.zeros(items), np.zeros(items)) for name in targets}
    for batch in log.batches(part, rows=choose_rows(log)):
        for name, target in targets.items():
            late = batch.decided >= target.since
            judged = batch if late.all() else batch.take(late)
            if len(judged):
                found[name] += _sum_batch(log, judged, target, maturity, model)
        if step is not None:
            step()
    return found


def _sum_batch(
    log: DecisionLog, batch: LogBatch, target: Target, maturity: Maturity, model: OutcomeModel | None
) -> TargetSums:
    outcomes, matured, watched = maturity.observe(batch)
    plan = target.plan(batch)
    weights = np.ones(len(batch)) if plan is None else plan.chance_of_chosen(batch) / batch.propensity
    predicted = expected = None
    if model is not None and plan is not None:
        rates = model.predict(log, batch)
        predicted, expected = rates[batch.starts + batch.action], plan.mean(batch, rates)
    logged = np.bincount(batch.action, minlength=len(log.items)).astype(np.float64) if log.items else np.zeros(0)
    return TargetSums(
        sum_rounds(
            weights,
            outcomes,
            matured,
            watched=watched,
            bins=maturity.bins,
            predicted=predicted,
            expected=expected,
        ),
        planned=logged if plan is None else plan.totals(batch) if log.items else np.zeros(0),
        logged=logged,
    )


def merge_parts(parts: Sequence[Mapping[str, TargetSums]]) -> dict[str, TargetSums]:
    """Add the sums of all parts, in their order."""
    merged = dict(parts[0])
    for part in parts[1:]:
        merged = {name: merged[name] + part[name] for name in merged}
    return merged
