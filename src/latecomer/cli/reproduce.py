"""`latecomer reproduce`: run the paper's experiments into one report."""

from pathlib import Path
from typing import Annotated

import typer

from latecomer.cli.verb_end import take_sigterm_as_interrupt
from latecomer.extras import require_packages


def reproduce(
    runs: Annotated[int, typer.Option(metavar="N", min=2, help="Independent runs of every experiment.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same numbers.")] = 0,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads; all cores by default.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the report.")] = Path("report"),
    quick: Annotated[bool, typer.Option("--quick", help="Ten runs and shorter horizons, for a first look.")] = False,
    criteo: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="The Criteo attribution file, TSV or gzipped."),
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run this section alone, such as figure-1; may be given more than once."),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="'threads', or 'dask' for a cluster.")] = "threads",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's address, with --engine dask.")
    ] = None,
) -> None:
    """Run every experiment of the paper, and write a report: figures, tables and findings.

    The report is one page, OUT/report.html, with its numbers beside it as CSV and Parquet. It is complete after every
    section, so that Ctrl-C keeps what is done.

    \b
    Example:
      latecomer reproduce --runs 100 --out report
      latecomer reproduce --section figure-1 --section since-the-paper
    """  # noqa: D301 - \b keeps the lines below it as they are
    require_packages("latecomer reproduce", "polars", "matplotlib")
    from rich.console import Console  # noqa: PLC0415 - `latecomer --help` is light

    from latecomer.cli.engine import make_engine  # noqa: PLC0415
    from latecomer.cli.output import make_output_folder  # noqa: PLC0415
    from latecomer.experiments.paper.reproduce import reproduce as run  # noqa: PLC0415
    from latecomer.experiments.paper.sections import SECTIONS  # noqa: PLC0415
    from latecomer.experiments.paper.setting import Setting  # noqa: PLC0415
    from latecomer.validation import check_choice  # noqa: PLC0415

    take_sigterm_as_interrupt()
    for name in section or ():
        check_choice("--section", name, tuple(SECTIONS))
    setting = Setting(
        runs=min(runs, 10) if quick else runs,
        seed=seed,
        engine=make_engine(engine, scheduler, jobs),
        quick=quick,
        criteo=criteo,
    )
    if not run(setting, make_output_folder(out), Console(), names=section or ()):
        raise typer.Exit(130)
