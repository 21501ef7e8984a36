"""Which window? What each keeps and costs, and one recommended, with the reason."""

from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from latecomer.arguments import positive, share, whole
from latecomer.core.state import Array
from latecomer.delays import DelayLaw
from latecomer.durations import Duration, parse_duration
from latecomer.errors import InputError
from latecomer.experiments.window_cost import Setting, bound, pending_bytes, scale, simulated
from latecomer.experiments.window_grid import HOUR, spoken, windows
from latecomer.experiments.window_source import KnownDelays, from_law, from_log
from latecomer.experiments.window_words import notes, reason
from latecomer.simulation.simulate import Engine, Threads
from latecomer.timestamps import Moment, parse_timestamp


@dataclass(frozen=True, eq=False)
class WindowAdvice:
    """The delay curve, the windows side by side, and the one to take."""

    recommended: timedelta
    by_theory: timedelta
    """Where Theorem 2's bound is smallest."""
    reason: str
    notes: list[str]
    """What must be known to read the numbers."""
    table: pl.DataFrame
    """A row a window: window, seconds, decisions, share, low, high, bound, regret, standard_error, memory_bytes"""
    curve: pl.DataFrame
    """seconds, share, low, high: F_M and its 90 % band"""
    facts: dict[str, Any]
    """Where the delays are from, decisions an hour, conversion rate, horizon, regret of playing at random, …"""

    def to_dict(self) -> dict[str, Any]:
        """All but the curve, as plain data."""
        return {
            "recommended": spoken(self.recommended.total_seconds()),
            "recommended_seconds": self.recommended.total_seconds(),
            "by_theory_seconds": self.by_theory.total_seconds(),
            "reason": self.reason,
            "notes": self.notes,
            "facts": self.facts,
            "windows": self.table.to_dicts(),
        }


def advise_window(
    source: str | PathLike[str] | DelayLaw,
    *,
    rate: float | None = None,
    until: Moment | None = None,
    longest: Duration | None = None,
    unit: Duration = timedelta(seconds=1),
    horizon: Duration = timedelta(days=30),
    conversion_rate: float | None = None,
    dim: int = 5,
    arms: int = 10,
    rounds: int = 100_000,
    runs: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    engine: Engine | None = None,
    progress: bool | None = None,
) -> WindowAdvice:
    """Compare windows on a log of conversions, or on a delay law, and recommend one.

    Parameters
    ----------
    source
        A log (Parquet or CSV, with `decided_at` and `converted_at`; see `delays.read_conversions`), or a delay law.
    rate
        Decisions an hour; by default, what the log has. A law, or a log of conversions alone, does not tell it.
    until
        When the log's watching ended; by default the last moment that it mentions.
    longest
        The longest window to think of, as "60d" or a `timedelta`. By default the longest delay of the log, or what
        99 % of a law's come within.
    unit
        What a law counts its delays in.
    horizon
        How long a time regret is counted over.
    conversion_rate
        The share of decisions that convert, on average; by default the log's, or 5 %.
    dim, arms
        Features of an action, and actions to choose from.
    rounds, runs
        How much to simulate. Where `rate` × `horizon` is more than `rounds`, a round stands for several decisions.
        By default as many runs as a million rounds hold, 10 at least and 100 at most.
    seed
        The same seed gives the same advice.
    jobs, engine, progress
        As in `simulate`.

    Examples
    --------
    >>> import latecomer as lc
    >>> law = lc.delays.LogNormal(median=1800, sigma=1.0)  # half an hour, in seconds
    >>> advice = lc.advise_window(law, rate=200, dim=2, rounds=2000, runs=2)
    >>> advice.table.columns[:4]
    ['window', 'seconds', 'decisions', 'share']
    >>> advice.recommended.total_seconds() in advice.table["seconds"]
    True
    """
    setting = Setting(
        horizon=positive("horizon, in seconds,", _span("horizon", horizon).total_seconds()),
        dim=whole("dim", dim, least=1),
        arms=whole("arms", arms, least=2),
        rounds=whole("rounds", rounds, least=1),
        runs=None if runs is None else whole("runs", runs, least=2),
        seed=whole("seed", seed, least=0),
    )
    given = {
        "rate": None if rate is None else positive("rate", rate),
        "longest": None if longest is None else _span("longest", longest),
        "conversion_rate": None
        if conversion_rate is None
        else share("conversion_rate", positive("conversion_rate", conversion_rate)),
    }
    known = _known(source, until=until, unit=_span("unit", unit), given=given)
    compared = windows(known.ends, known.share)
    regrets, uniform = simulated(known, setting, compared.tolist(), engine=engine or Threads(jobs), progress=progress)
    return _advice(known, setting, compared, regrets, uniform)


def _span(name: str, value: Duration) -> timedelta:
    if isinstance(value, Duration):
        span = parse_duration(value, name=name, such_as="30d")
        if span > timedelta(0):
            return span
    raise InputError(f"{name} must be a timedelta above 0, or a text such as '30d'; got {value!r}")


def _known(source: object, *, until: Moment | None, unit: timedelta, given: dict[str, Any]) -> KnownDelays:
    if isinstance(source, str | PathLike):
        end = None if until is None else parse_timestamp(until, name="until") / 1e6
        return from_log(source, until=end, **given)
    if isinstance(source, type) or not isinstance(source, DelayLaw):
        raise InputError(
            f"source must be the path of a log, or a delay law such as LogNormal(3600, 1.5); got {source!r}"
        )
    if until is not None:
        raise InputError(f"until is for logs, and a law has no end of watching; got {until!r}")
    return from_law(source, unit=unit, **given)


def _advice(known: KnownDelays, setting: Setting, compared: Array, regrets: Array, uniform: Array) -> WindowAdvice:
    rows = []
    for window, lost in zip(compared.tolist(), regrets, strict=True):
        kept, low, high = known.at(window)
        rows.append(
            {
                "window": spoken(window),
                "seconds": window,
                "decisions": int(known.rate * window / HOUR),
                "share": kept,
                "low": low,
                "high": high,
                "bound": bound(known, setting, window),
                "regret": float(lost.mean()),
                "standard_error": float(lost.std(ddof=1) / np.sqrt(len(lost))),
                "memory_bytes": round(pending_bytes(known, setting, window)),
            }
        )
    table = pl.DataFrame(rows)
    scaled = scale(known, setting)
    chosen, theory = shortest_of_the_best(regrets), int(np.argmin(table["bound"].to_numpy()))
    facts = {
        "delays": known.told,
        "decisions_an_hour": known.rate,
        "conversion_rate": known.conversion_rate,
        "longest_seconds": known.longest,
        "horizon_seconds": setting.horizon,
        "decisions": setting.decisions(known.rate),
        "decisions_per_round": scaled.each,
        "pooled": scaled.pooled,
        "regret_of_uniform_play": float(uniform.mean()),
        "dim": setting.dim,
        "arms": setting.arms,
        "runs": len(uniform),
        "seed": setting.seed,
    }
    return WindowAdvice(
        recommended=timedelta(seconds=compared[chosen]),
        by_theory=timedelta(seconds=compared[theory]),
        reason=reason(rows, chosen=chosen, theory=theory, facts=facts),
        notes=notes(rows, chosen=chosen, facts=facts),
        table=table,
        curve=pl.DataFrame({"seconds": known.ends, "share": known.share, "low": known.low, "high": known.high}),
        facts=facts,
    )


def shortest_of_the_best(regrets: Array) -> int:
    """Of the windows within a standard error of the best, or one per cent, the shortest: it takes the least memory.

    The error is that of the difference, run by run, as every window meets the same chance in a run.
    """
    means = regrets.mean(axis=1)
    best = int(np.argmin(means))
    more = regrets - regrets[best]
    error = more.std(axis=1, ddof=1) / np.sqrt(regrets.shape[1])
    return int(np.argmax(more.mean(axis=1) <= np.maximum(error, 0.01 * means[best])))
