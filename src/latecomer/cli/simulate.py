"""`latecomer simulate FILE`: simulate an experiment that a file describes."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.cli.verb_end import take_sigterm_as_interrupt
from latecomer.extras import require_packages

if TYPE_CHECKING:
    from latecomer.simulation.result import Result


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment, in TOML.", show_default=False)],
    runs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Runs, in place of the file's.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Seed, in place of the file's.")] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads; all cores by default.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the results; NAME-result for NAME.toml by default.")
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="'threads', or 'dask' for a cluster.")] = "threads",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's, with --engine dask.")
    ] = None,
) -> None:
    """Simulate an experiment of your own, described in a file.

    Every policy gets the same actions, rewards and delays. The regret at the horizon is printed; --out receives
    regret.parquet (every policy, run and round), summary.csv (mean, standard error and 5 to 95 % band at every round)
    and the picture, regret.png and regret.svg. Ctrl-C keeps the runs that are done.

    \b
    The file has the horizon, the world and the policies:
      horizon = 3000
      runs = 100  # unless --runs says otherwise
      [world]
      theta = { dim = 5, value = "uniform" }  # or a list
      actions = { law = "binary", count = 10 }
      delays = { law = "geometric", mean = 100 }
      [policies.ours]
      policy = "recommended"  # or a class, such as "OTFLinUCB"
      window = 100

    \b
    Example:
      latecomer simulate examples/simulate.toml --runs 20 --out results
    """  # noqa: D301 - \b keeps the lines below it as they are
    require_packages("latecomer simulate", "polars", "matplotlib")
    from latecomer.cli.engine import make_engine  # noqa: PLC0415 - `latecomer --help` is light
    from latecomer.cli.output import make_output_folder  # noqa: PLC0415
    from latecomer.experiments.experiment_file import read_experiment  # noqa: PLC0415
    from latecomer.simulation.simulate import simulate as run_simulation  # noqa: PLC0415

    take_sigterm_as_interrupt()
    described = read_experiment(file)
    runs, seed = runs or described.runs, described.seed if seed is None else seed
    selected_engine = make_engine(engine, scheduler, jobs)
    folder = make_output_folder(out or Path(f"{file.stem}-result"))
    try:
        result = run_simulation(
            described.world,
            described.policies,
            horizon=described.horizon,
            runs=runs,
            seed=seed,
            engine=selected_engine,
            per_day=described.per_day,
        )
    except KeyboardInterrupt:
        typer.echo(f"interrupted: 0 of {runs} runs were done; nothing is written", err=True)
        raise typer.Exit(130) from None
    paths = _write(result, folder)
    _show(result, title=f"Pseudo-regret at round {result.horizon}, runs = {result.runs}, seed = {seed}")
    typer.echo(f"wrote {', '.join(map(str, paths))}")
    if not result.is_complete:
        typer.echo(f"interrupted: {result.runs} of {runs} runs were done, and are written", err=True)
        raise typer.Exit(130)


def _write(result: "Result", folder: Path) -> list[Path]:
    from latecomer.cli.output import replace_output  # noqa: PLC0415
    from latecomer.experiments.plots import plot_regret  # noqa: PLC0415 - brings matplotlib
    from latecomer.pictures import write_picture  # noqa: PLC0415

    figure = plot_regret(result)
    writers: dict[str, Callable[[Path], object]] = {
        "regret.parquet": lambda path: result.to_frame().write_parquet(path),
        "summary.csv": lambda path: result.regret_by_round().write_csv(path),
        "regret.png": lambda path: write_picture(figure, path, suffix=".png"),
        "regret.svg": lambda path: write_picture(figure, path, suffix=".svg"),
    }
    for name, write in writers.items():
        with replace_output(folder / name) as path:
            write(path)
    return [folder / name for name in writers]


def _show(result: "Result", *, title: str) -> None:
    """Print the regret at the horizon."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=title, title_justify="left")
    table.add_column("policy", overflow="fold")
    for heading in ("mean", "standard error", "5 %", "95 %"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, _, *values in result.regret_by_round([result.horizon]).iter_rows():
        cells = ("-" if math.isnan(value) else f"{value:.2f}" for value in values)  # one run has no standard error
        table.add_row(Text(name), *cells)  # as Text: a name may have brackets
    Console().print(table)
