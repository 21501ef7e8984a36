"""Intervals that are valid at every look, for each target, from closed rounds in the order of their decisions."""

from collections.abc import Mapping

import numpy as np

from latecomer.evaluation.betting import BettingInterval
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.maturity import Maturity
from latecomer.evaluation.target import Target


def watch_always(
    log: DecisionLog, targets: Mapping[str, Target], maturity: Maturity, largest_weight: float, confidence: float
) -> dict[str, BettingInterval]:
    """Bet on the closed rounds of the log."""
    bets = {name: BettingInterval(largest_weight, confidence=confidence) for name in targets}
    for batch in log.ordered_batches():
        outcomes, _, watched = maturity.observe(batch)
        closed = watched == maturity.bins
        for name, target in targets.items():
            judged = closed & (batch.decided >= target.since)
            rounds = batch.take(judged)
            if len(rounds):
                plan = target.plan(rounds)
                weights = np.ones(len(rounds)) if plan is None else plan.chance_of_chosen(rounds) / rounds.propensity
                bets[name].add(weights, outcomes[judged])
    return bets
