"""`latecomer window LOG`: compare windows, and recommend one."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.cli.until import parse_until
from latecomer.cli.verb_end import take_sigterm_as_interrupt
from latecomer.errors import InputError
from latecomer.extras import require_packages

if TYPE_CHECKING:
    from latecomer.delays import DelayLaw
    from latecomer.experiments.window.advice import WindowAdvice

_DAY = 86_400.0


def window(
    log: Annotated[
        Path | None,
        typer.Argument(metavar="[LOG]", help="Parquet or CSV, or a folder of them.", show_default=False),
    ] = None,
    decided_at: Annotated[str, typer.Option(metavar="COLUMN", help="When a decision was made.")] = "decided_at",
    converted_at: Annotated[str, typer.Option(metavar="COLUMN", help="When it converted, if ever.")] = "converted_at",
    action: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The action, on which delays may depend.")
    ] = None,
    law: Annotated[str | None, typer.Option(metavar="TABLE", help="In place of a log, a delay law, as TOML.")] = None,
    unit: Annotated[float, typer.Option(metavar="SECONDS", help="The unit of the law's delays.")] = 1.0,
    rate: Annotated[float | None, typer.Option(metavar="N", help="Decisions an hour; the log's by default.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="The first decision to read, as --until.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="The end of the log: seconds, or ISO 8601.")] = None,
    longest: Annotated[float | None, typer.Option(metavar="DAYS", help="The longest window to compare.")] = None,
    band: Annotated[str, typer.Option(metavar="NAME", help="mid-p, conservative or anytime: the 90 % band.")] = "mid-p",
    days: Annotated[float, typer.Option(metavar="N", help="Days over which regret is counted.")] = 30.0,
    conversion_rate: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of decisions that convert; the log's, or 0.05, by default."),
    ] = None,
    dim: Annotated[int, typer.Option(metavar="N", min=1, help="Features of an action.")] = 5,
    arms: Annotated[int, typer.Option(metavar="N", min=2, help="Actions to choose from.")] = 10,
    rounds: Annotated[int, typer.Option(metavar="N", min=1, help="Rounds to simulate a run, at most.")] = 100_000,
    runs: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Runs, at most; 20 to 1000, as rounds allow, by default.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same numbers.")] = 0,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads; all cores by default.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a log with dirty rows.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path("window-result"),
) -> None:
    """Compare windows on your own delays, and recommend one.

    From a log of conversions, or from a delay law and a rate: what each window keeps, what it costs in regret by theory
    and by simulation at that rate, and the memory for what is pending. Of the windows that cost about the same, the
    shortest that keeps 80 % of the conversions is recommended. Runs are added until that choice is clear; Ctrl-C keeps
    those that are done.

    A row of the log without converted_at is a decision that has not converted; where every row has, --rate must say how
    many decisions there are. Rows that cannot be right, such as a conversion before its decision, are counted and left
    out; --strict refuses them. Where delays depend on the action, or drift over the time of the log, it says so.

    OUT receives windows.csv and windows.parquet (the table), curve.csv (the delay curve), advice.json,
    and the picture as window.png and window.svg.

    \b
    Example:
      latecomer window conversions.parquet --out advice

    \b
    Without a log:
      latecomer window --law 'law = "lognormal", median = 3600, sigma = 1.5' --rate 1000
    """  # noqa: D301 - \b keeps the lines below it as they are
    require_packages("latecomer window", "polars", "matplotlib")
    from latecomer.cli.output import make_output_folder  # noqa: PLC0415 - `latecomer --help` is light
    from latecomer.delays.estimation.bands import check_band  # noqa: PLC0415
    from latecomer.experiments.window.advice import advise_window  # noqa: PLC0415

    take_sigterm_as_interrupt()
    source = _select_source(log, law)
    folder = make_output_folder(out)
    advice = advise_window(
        source,
        decided_at=decided_at,
        converted_at=converted_at,
        action=action,
        strict=strict,
        rate=rate,
        since=parse_until(since, name="--since"),
        until=parse_until(until),
        band=check_band(band),
        unit=_make_duration("--unit", unit),
        longest=None if longest is None else _make_duration("--longest", longest * _DAY),
        horizon=_make_duration("--days", days * _DAY),
        conversion_rate=conversion_rate,
        dim=dim,
        arms=arms,
        rounds=rounds,
        runs=runs,
        seed=seed,
        jobs=jobs,
    )
    paths = _write(advice, folder)
    _show(advice)
    typer.echo(f"wrote {', '.join(map(str, paths))}")
    if advice.facts["is_interrupted"]:
        typer.echo(f"interrupted: {advice.facts['runs']} runs were done, and their advice is written", err=True)
        raise typer.Exit(130)


def _select_source(log: Path | None, law: str | None) -> "Path | DelayLaw":
    if log is not None and law is None:
        return log
    if log is None and law is not None:
        from latecomer.experiments.experiment_file import read_law  # noqa: PLC0415

        return read_law(law, name="--law")
    raise InputError("window needs a log, or --law with --rate: one of the two")


def _make_duration(name: str, seconds: float) -> timedelta:
    if not 1e-6 <= seconds <= 36_500.0 * _DAY:
        raise InputError(f"{name} must be above 0 and at most a hundred years; got {seconds:g} seconds")
    return timedelta(seconds=seconds)


def _write(advice: "WindowAdvice", folder: Path) -> list[Path]:
    from latecomer.cli.output import replace_output  # noqa: PLC0415
    from latecomer.pictures import write_picture  # noqa: PLC0415

    figure = advice.plot()
    writers: dict[str, Callable[[Path], object]] = {
        "windows.csv": advice.table.write_csv,
        "windows.parquet": advice.table.write_parquet,
        "curve.csv": advice.curve.write_csv,
        "advice.json": lambda path: path.write_text(json.dumps(advice.to_dict(), indent=2, ensure_ascii=False) + "\n"),
        "window.png": lambda path: write_picture(figure, path, suffix=".png"),
        "window.svg": lambda path: write_picture(figure, path, suffix=".svg"),
    }
    for name, write in writers.items():
        with replace_output(folder / name) as path:
            write(path)
    return [folder / name for name in writers]


def _show(advice: "WindowAdvice") -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from latecomer.durations import format_duration  # noqa: PLC0415
    from latecomer.experiments.window.text import format_amount, format_bytes, format_plus_minus  # noqa: PLC0415

    chosen = advice.recommended.total_seconds()
    table = Table(title=advice.facts["delays"], title_justify="left")
    for heading in ("window", "keeps", "90 % band", "regret", "excess", "cost", "memory"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in advice.table.iter_rows(named=True):
        table.add_row(
            row["window"],
            f"{row['share']:.1%}",
            "-" if row["low"] == row["high"] else f"{100 * row['low']:.1f} to {100 * row['high']:.1f}",
            format_amount(row["regret"]),
            format_plus_minus(row["excess"], row["excess_error"]),
            row["cost"],
            format_bytes(row["memory_bytes"]),
            style="bold" if row["seconds"] == chosen else None,
        )
    console = Console()
    if advice.warning:
        console.print(advice.warning, style="bold red", highlight=False, markup=False)
    console.print(table)
    console.print(f"Recommended: {format_duration(chosen)}", style="bold", highlight=False)
    finding = advice.finding.removeprefix(advice.warning).lstrip()  # the warning is the first line
    console.print(finding, style="bold", highlight=False, markup=False)
    for sentence in (advice.reason, *advice.notes):
        console.print(sentence, highlight=False, markup=False)
