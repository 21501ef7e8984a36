"""Off-policy evaluation: what other policies would have earned on a log."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from latecomer.delays.estimation.curve import DelayCurve
from latecomer.delays.estimation.dependence import DependenceTest
from latecomer.delays.readers.table_source import list_columns
from latecomer.durations import Span, parse_window
from latecomer.errors import InputError, NotIdentifiableError
from latecomer.evaluation.decision_log import DecisionLog, Engine, run_tasks
from latecomer.evaluation.delay_facts import measure_delays, test_delays
from latecomer.evaluation.estimators import ESTIMATORS
from latecomer.evaluation.judgement import check_support
from latecomer.evaluation.looks import watch_always
from latecomer.evaluation.maturity import Maturity, check_window, closed_maturity, estimate_maturity, make_grid
from latecomer.evaluation.outcome_model import OutcomeModel, sum_for_model
from latecomer.evaluation.passes import choose_rows, merge_parts, sum_part
from latecomer.evaluation.policy_targets import ReplayTarget
from latecomer.evaluation.rejection import replay_policy
from latecomer.evaluation.result import Evaluation, make_evaluation
from latecomer.evaluation.target import Target
from latecomer.evaluation.targets import LOGGED, Logged, make_target
from latecomer.progress import show_progress
from latecomer.validation import check_choice, check_positive, check_probability, short_repr


def evaluate(
    log: DecisionLog,
    policies: Mapping[str, Any],
    *,
    window: Span | None = None,
    estimator: str | Sequence[str] = "snips",
    confidence: float = 0.9,
    value: float | None = None,
    currency: str = "",
    traffic: float | None = None,
    largest_weight: float | None = None,
    engine: Engine | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Estimate how many conversions each decision would have had within the window, under other policies.

    The log is read two or three times, streamed. Rounds whose window is still open count as far as they have matured.
    Of a ranking the first position is judged, whose propensity is exact; the others are counted as skipped.

    Parameters
    ----------
    log
        Of `read_log`, with propensities.
    policies
        Target policies by name: "logged" (the one that made the log; it is always in the table); "uniform"; an action
        (an item's id, or an index); a column of the log (the item that the policy would play, the probability that it
        would give to the logged action, or a list of scores); a function of (context, actions) that returns an index,
        an item's id or a probability for each action; a policy of Latecomer as it stands, `frozen(policy)`, which
        learns from the earlier part of the log first, or `replay(policy)`, which learns as it goes.
    window
        Up to which delay a conversion counts: a time such as "7d", or a number of rounds where the log's times count
        rounds. None where conversions come at once (`read_log(converted=…)`).
    estimator
        "snips", "ips" or "dr", or several of them.
    confidence
        Of the intervals.
    value, currency
        Money for a conversion, for the sentences.
    traffic
        Decisions a month, for the sentences; by default the log's own.
    largest_weight
        b, which no weight π/e can exceed (K/ε where logging has a floor of ε): gives, besides, intervals that are valid
        at every look, from closed rounds.
    engine
        Where the files of a folder are summed, such as a `DaskEngine`; by default, here.
    progress
        Show progress on standard error; by default where that is a terminal.

    Examples
    --------
    >>> import latecomer as lc, numpy as np, polars as pl
    >>> rng = np.random.default_rng(0)
    >>> item = rng.integers(0, 2, 20_000)
    >>> decided = np.arange(20_000) * 60
    >>> sold = rng.random(20_000) < np.where(item == 1, 0.06, 0.03)
    >>> bought = np.where(sold, decided + rng.exponential(86_400, 20_000), np.nan)
    >>> table = pl.DataFrame({"ts": decided, "item": item, "p": 0.5, "bought": bought}, nan_to_null=True)
    >>> table = table.with_columns(bought=pl.when(pl.col("bought") <= decided.max()).then("bought"))
    >>> log = lc.read_log(table, decided_at="ts", action="item", propensity="p", converted_at="bought")
    >>> found = lc.evaluate(log, {"always 1": "1"}, window="3d")
    >>> found.table["policy"].to_list(), found.table["lift"].round(1).to_list()
    (['logged', 'always 1'], [0.0, 0.3])
    """
    _check_log(log)
    names = (estimator,) if isinstance(estimator, str) else tuple(estimator)
    for name in names:
        check_choice("estimator", name, ESTIMATORS)
    check_probability("confidence", confidence, usual=0.9)
    for name, number in (("value", value), ("traffic", traffic), ("largest_weight", largest_weight)):
        if number is not None:
            check_positive(name, number)
    if currency and value is None:
        raise InputError(
            f"currency is of value, the worth of a conversion; got {short_repr(currency)} alone: give value too, or "
            "leave currency out",
            field="currency",
        )
    targets = _make_targets(log, policies)
    log = log.first_positions().with_context([column for target in targets.values() for column in target.columns])
    parts = len(log.parts)
    batches = parts + log.decisions // choose_rows(log)
    with show_progress("evaluating", batches, progress=progress if engine is None else False) as step:
        maturity, curve, tests = _learn_delays(log, window, engine)
        model = _fit_model(log, maturity, engine) if "dr" in names else None
        planned = {name: target for name, target in targets.items() if not isinstance(target, ReplayTarget)}
        task = partial(sum_part, log, planned, maturity, model, step=step if engine is None else None)
        found = merge_parts(run_tasks(engine, task, parts))
        for name, target in targets.items():
            if isinstance(target, ReplayTarget):
                found[name] = replay_policy(log, target, maturity, rows=choose_rows(log))
        found = {name: found[name] for name in targets}
        for name in targets:
            check_support(name, found[name], log)
        bounds = watch_always(log, planned, maturity, largest_weight, confidence) if largest_weight is not None else {}
    return make_evaluation(
        log,
        found,
        maturity,
        targets=targets,
        curve=curve,
        tests=tests,
        estimators=names,
        confidence=confidence,
        money=value,
        currency=currency,
        traffic=traffic,
        bounds=bounds,
    )


def _check_log(log: object) -> None:
    if not isinstance(log, DecisionLog):
        raise InputError(f"log must be what read_log gave; got {short_repr(log)}", field="log")
    if not log.has_propensities:
        raise NotIdentifiableError(
            f"{log.name} has no propensities: which actions would have been played by another policy cannot be weighed "
            "without the probability that the logged one had. Name the column in read_log(propensity=…); where the "
            "choice was uniform among K, add a column of 1/K; where it was not random, nothing can be said: log with a "
            "floor from now on (floor=0.02)"
        )


def _make_targets(log: DecisionLog, policies: Mapping[str, Any]) -> dict[str, Target]:
    if not isinstance(policies, Mapping) or not all(isinstance(name, str) for name in policies):
        raise InputError(f"policies must be targets by name; got {short_repr(policies)}", field="policies")
    columns = list_columns(log.parts[0])
    targets = {name: make_target(name, given, log, columns) for name, given in policies.items()}
    if any(target.is_logged for target in targets.values()):
        return targets
    return {LOGGED: Logged(), **targets}


def _learn_delays(
    log: DecisionLog, window: Span | None, engine: Engine | None
) -> tuple[Maturity, DelayCurve | None, dict[str, DependenceTest]]:
    """Estimate F̂_m in a first pass, and test it."""
    if log.is_closed:
        return closed_maturity(), None, {}
    if window is None:
        raise InputError(
            "window must be given, such as '7d': up to which delay a conversion counts; or read the log with "
            "converted=… where conversions come at once",
            field="window",
        )
    ends, counts_rounds = make_grid(window), isinstance(parse_window(window), int)
    check_window(log, ends, counts_rounds=counts_rounds)
    facts = run_tasks(engine, partial(measure_delays, log, ends), len(log.parts))
    cells = [part.cells for part in facts]
    maturity, curve = estimate_maturity(log, ends, cells, counts_rounds=counts_rounds)
    return maturity, curve, test_delays(facts)


def _fit_model(log: DecisionLog, maturity: Maturity, engine: Engine | None) -> OutcomeModel:
    task = partial(_sum_for_model, log, maturity, choose_rows(log))
    first, *rest = run_tasks(engine, task, len(log.parts))
    return OutcomeModel(sum(rest, first), has_items=bool(log.items))


def _sum_for_model(log: DecisionLog, maturity: Maturity, rows: int, part: int) -> Any:
    return sum_for_model(log, maturity, part, rows)
