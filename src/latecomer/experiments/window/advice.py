"""Advice on the window: the share that each keeps, its cost, and one recommended, with the reason."""

from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from latecomer.delays import DelayLaw
from latecomer.delays.estimation.bands import DEFAULT_BAND, Band, check_band
from latecomer.delays.readers.table_source import LogSource, is_table
from latecomer.durations import Duration, format_duration, parse_duration
from latecomer.errors import InputError
from latecomer.experiments.window.cost import Setting, choose_scale, pending_bytes, regret_bound
from latecomer.experiments.window.dependence import RecentDelays
from latecomer.experiments.window.grid import HOUR, choose_windows
from latecomer.experiments.window.runs import Simulated, simulate_windows
from latecomer.experiments.window.source import KnownDelays, read_law_delays, read_log_delays
from latecomer.experiments.window.text import MORE, SAME, UNCLEAR, write_finding, write_notes, write_reason
from latecomer.extras import explain_missing_package
from latecomer.simulation.simulate import Engine, ThreadEngine
from latecomer.timestamps import Moment
from latecomer.validation import check_integer, check_positive, check_share

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class WindowAdvice:
    """The delay curve, the windows side by side, and the one to take."""

    recommended: timedelta
    by_theory: timedelta
    """The window at which Theorem 2's bound is smallest."""
    finding: str
    """The advice in a sentence: which windows cost about the same, and which of them to take."""
    reason: str
    """The numbers behind it."""
    notes: list[str]
    """The limits of the numbers: dirty rows, runs, what cannot be known."""
    table: pl.DataFrame
    """A row a window: window, seconds, decisions, share, low, high, bound, regret, standard_error, excess,
    excess_error, cost, memory_bytes"""
    curve: pl.DataFrame
    """seconds, share, low, high: F_M and its 90 % band"""
    facts: dict[str, Any]
    """The origin of the delays, decisions an hour and in the horizon, conversion rate, regret of uniform play, …"""
    skipped: dict[str, int]
    """Dirty rows of the log that were left out, by reason."""
    warning: str = ""
    """Sentences where more than half of the log's rows were skipped, where delays depend on the action, and where they
    drift; `finding` begins with them."""
    recent: pl.DataFrame | None = None
    """The curve of the recent decisions, as `curve`, where delays drift: of the later half of the conversions."""

    def __repr__(self) -> str:
        clear = "clear" if self.facts["is_clear"] else "not certain"
        return (
            f"WindowAdvice(recommended={format_duration(self.recommended.total_seconds())!r}, {clear} after "
            f"{self.facts['runs']} runs, from {self.facts['delays']}, skipped={sum(self.skipped.values())})"
        )

    def plot(self) -> "Figure":
        """Draw what each window keeps, what it costs and what theory fears; the title is the finding."""
        with explain_missing_package("WindowAdvice.plot"):
            from latecomer.experiments.window.plot import plot_window  # noqa: PLC0415 - brings matplotlib
        return plot_window(self)

    def to_dict(self) -> dict[str, Any]:
        """All but the curve, as plain data."""
        return {
            "recommended": format_duration(self.recommended.total_seconds()),
            "recommended_seconds": self.recommended.total_seconds(),
            "by_theory_seconds": self.by_theory.total_seconds(),
            "warning": self.warning,
            "finding": self.finding,
            "reason": self.reason,
            "notes": self.notes,
            "facts": self.facts,
            "skipped": self.skipped,
            "windows": self.table.to_dicts(),
        }


def advise_window(
    source: LogSource | DelayLaw,
    *,
    decided_at: str = "decided_at",
    converted_at: str = "converted_at",
    action: str | None = None,
    rate: float | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    longest: Duration | None = None,
    band: Band = DEFAULT_BAND,
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
    strict: bool = False,
) -> WindowAdvice:
    """Compare windows on a log of conversions, or on a delay law, and recommend one.

    Of the windows that cost about the same, the shortest that keeps 80 % of the conversions (docs/how-to/window.md has
    the rule). Ctrl-C leaves the advice of the runs that are done; `facts["is_interrupted"]` says so.

    Parameters
    ----------
    source
        A log (a Parquet or CSV file, a folder of them, or a table of polars, pandas or pyarrow; see
        `delays.read_conversions`), or a delay law.
    decided_at, converted_at
        The names of the log's columns.
    action
        The log's column of the action, on which delays may depend; by default `action_id` or `action`, where it has it.
    rate
        Decisions an hour; by default, what the log has. A law, or a log of conversions alone, does not tell it.
    since
        The first decision of the log to read: of a log whose delays drift, the recent part.
    until
        When the log's watching ended; by default the last moment that it mentions.
    longest
        The longest window to think of, as "60d" or a `timedelta`. By default the longest delay of the log, or what
        99 % of a law's come within.
    band
        Which 90 % band: "mid-p", "conservative" or "anytime"; see `delays.DelayCurve.confidence_band`.
    unit
        What a law counts its delays in.
    horizon
        How long a time regret is counted over.
    conversion_rate
        The share of decisions that convert, on average; by default the log's, or 5 %.
    dim, arms
        Features of an action, and actions to choose from.
    rounds, runs
        How much to simulate, at most. Where `rate` × `horizon` is more than `rounds`, a round stands for several
        decisions. Runs are added until the choice is clear; by default, at most as many as four million rounds hold,
        and 20 to 1,000.
    seed
        The same seed gives the same advice.
    jobs, engine, progress
        As in `simulate`.
    strict
        Refuse a log with a dirty row, in place of skipping and counting it.

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
        horizon=check_positive("horizon, in seconds,", _check_duration("horizon", horizon).total_seconds()),
        dim=check_integer("dim", dim, least=1),
        arms=check_integer("arms", arms, least=2),
        rounds=check_integer("rounds", rounds, least=1),
        runs=None if runs is None else check_integer("runs", runs, least=2),
        seed=check_integer("seed", seed, least=0),
    )
    given = {
        "rate": None if rate is None else check_positive("rate", rate),
        "longest": None if longest is None else _check_duration("longest", longest),
        "conversion_rate": None
        if conversion_rate is None
        else check_share("conversion_rate", check_positive("conversion_rate", conversion_rate)),
    }
    reading = {
        "decided_at": decided_at,
        "converted_at": converted_at,
        "action": action,
        "since": since,
        "until": until,
        "band": check_band(band),
        "strict": strict,
    }
    known = _read_delays(source, unit=_check_duration("unit", unit), given=given, reading=reading)
    compared = choose_windows(known.ends, known.share).tolist()
    simulated = simulate_windows(known, setting, compared, engine=engine or ThreadEngine(jobs), progress=progress)
    return _make_advice(known, setting, compared, simulated)


def _check_duration(name: str, value: Duration) -> timedelta:
    if isinstance(value, Duration):
        span = parse_duration(value, name=name, such_as="30d")
        if span > timedelta(0):
            return span
    raise InputError(f"{name} must be a timedelta above 0, or a text such as '30d'; got {value!r}", field=name)


def _read_delays(source: object, *, unit: timedelta, given: dict[str, Any], reading: dict[str, Any]) -> KnownDelays:
    if isinstance(source, str | PathLike) or is_table(source):
        return read_log_delays(source, **reading, **given)
    if isinstance(source, type) or not isinstance(source, DelayLaw):
        raise InputError(
            "source must be the path of a log, a table, or a delay law such as LogNormal(3600, 1.5); "
            f"got {source!r:.200}",
            field="source",
        )
    for name in ("action", "since", "until"):
        if (value := reading[name]) is not None:
            raise InputError(
                f"{name} is for logs: a law has no decisions and no end of watching; got {value!r}", field=name
            )
    return read_law_delays(source, unit=unit, **given)


def _make_advice(known: KnownDelays, setting: Setting, compared: list[float], simulated: Simulated) -> WindowAdvice:
    rows = [_make_row(known, setting, window, simulated, at) for at, window in enumerate(compared)]
    comparison, theory = simulated.comparison, int(np.argmin([row["bound"] for row in rows]))
    facts = _collect_facts(known, setting, compared, simulated)
    return WindowAdvice(
        recommended=timedelta(seconds=compared[comparison.chosen]),
        by_theory=timedelta(seconds=compared[theory]),
        finding=write_finding(rows, comparison, warning=known.warning),
        reason=write_reason(rows, comparison, theory=theory, facts=facts),
        notes=write_notes(rows, comparison, dirt=known.dirt, facts=facts),
        table=pl.DataFrame(rows),
        curve=_make_curve(known),
        facts=facts,
        skipped=known.skipped,
        warning=known.warning,
        recent=None if known.recent is None else _make_curve(known.recent),
    )


def _make_curve(known: KnownDelays | RecentDelays) -> pl.DataFrame:
    return pl.DataFrame({"seconds": known.ends, "share": known.share, "low": known.low, "high": known.high})


def _make_row(known: KnownDelays, setting: Setting, window: float, simulated: Simulated, at: int) -> dict[str, Any]:
    kept, low, high = known.at(window)
    found = simulated.comparison
    return {
        "window": format_duration(window),
        "seconds": window,
        "decisions": int(known.rate * window / HOUR),
        "share": kept,
        "low": low,
        "high": high,
        "bound": regret_bound(known, setting, window),
        "regret": float(simulated.regret[at]),
        "standard_error": float(simulated.standard_error[at]),
        "excess": float(found.excess[at]),
        "excess_error": float(found.excess_error[at]),
        "cost": SAME if found.is_same[at] else MORE if found.is_dearer[at] else UNCLEAR,
        "memory_bytes": round(pending_bytes(known, setting, window)),
    }


def _collect_facts(known: KnownDelays, setting: Setting, compared: list[float], simulated: Simulated) -> dict[str, Any]:
    scaled, found = choose_scale(known, setting), simulated.comparison
    low, high = found.alike
    return {
        "delays": known.origin,
        "rows": known.rows,
        "tests": known.tests,
        "recent_since": None if known.recent is None else known.recent.since,
        "decisions_an_hour": known.rate,
        "conversion_rate": known.conversion_rate,
        "longest_seconds": known.longest,
        "horizon_seconds": setting.horizon,
        "decisions_in_horizon": setting.decisions(known.rate),
        "decisions_per_round": scaled.each,
        "pooled": scaled.pooled,
        "regret_of_uniform_play": simulated.uniform,
        "tolerance": found.tolerance,
        "same_from_seconds": compared[low],
        "same_to_seconds": compared[high],
        "is_clear": found.is_clear,
        "is_interrupted": simulated.is_interrupted,
        "dim": setting.dim,
        "arms": setting.arms,
        "runs": simulated.runs,
        "most_runs": simulated.most_runs,
        "seed": setting.seed,
    }
