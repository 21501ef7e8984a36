"""`latecomer arena`: simulate every policy in every world."""

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.cli.verb_end import take_sigterm_as_interrupt
from latecomer.errors import InputError
from latecomer.extras import require_packages

if TYPE_CHECKING:
    import polars as pl


def arena(
    runs: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Runs of every policy in every world: 200, or 40 at random.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same numbers.")] = 0,
    world: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this world; may be given again. All by default.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this policy; may be given again. All by default.")
    ] = None,
    random: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="N random worlds, drawn by --seed, in place of the named.")
    ] = None,
    rivals: Annotated[
        bool, typer.Option("--rivals", help="Rivals and peers beside some policies; 10 runs of each, and their speed.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads; all cores by default.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path("arena-result"),
    engine: Annotated[str, typer.Option(metavar="NAME", help="'threads', or 'dask' for a cluster.")] = "threads",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's, with --engine dask.")
    ] = None,
) -> None:
    """Simulate every policy in every world of the arena, and compare.

    Regret is compared with the best published policy's (OTFLinUCB and OTFLinTS, as stated and as released), with a
    learner's without delay and with one's that knows the delay law. --out receives arena.csv (mean, standard error,
    95th percentile and ratios of every policy in every world) and a picture, arena.png and .svg, which grow world by
    world, and worlds/, a file for each world that is done: after Ctrl-C the same command goes on from there.

    With --rivals what others have published since the paper, and libraries of the extra `peers` that are installed,
    play beside some policies, ten runs each; rivals.csv and rivals.png have regret and the time of a round.

    With --random the worlds are drawn from the family of docs/explanation/arena.md, and summary.csv has a line for
    each policy.

    \b
    The worlds, for --world:
      "B (100, 100)"             the paper's panels: (window, mean delay)
      "B (500, 100)"
      "B (100, 500)"
      "U (100, 100)"
      "U (500, 100)"
      "U (100, 500)"
      "heavy tail, m = 2000"     delays like Criteo's
      "heavy tail, m = 10000"
      "basis arms, .2 and .4"    the same arms in every round
      "basis arms, .03 and .06"
      "20 fixed random arms"
      "low rates, 1 to 10 %"
      "d = 30, K = 100"          many dimensions and actions
      "delays that drift"
      "arms that come and go"
      "logistic rewards"         rewards that are not linear
      "2 to 5 %, m = 500000"     windows far longer than the run
      "U, m = 100000"
      "B, m = 10, mean delay 200"    a window far too short
      "1,000 actions"
      "rates of 0.1 %"
      "one of 16 features"       sparse rewards
      "feedback once a day"
      "delays that depend on the action"
      "leads"                    contexts and delays fitted to a real funnel
      "tastes that jump, five arms"
      "tastes that jump, contexts"
      "tastes that drift, contexts"
      "a stage that foretells"   a click before the sale
      "a stage that tells nothing"

    \b
    Example:
      latecomer arena --runs 20 --world "B (100, 100)" --world "U (100, 100)"
      latecomer arena --random 200 --seed 1
    """  # noqa: D301 - \b keeps the lines below it as they are
    require_packages("latecomer arena", "polars", "matplotlib")
    from latecomer.cli.engine import make_engine  # noqa: PLC0415 - `latecomer --help` is light
    from latecomer.cli.output import make_output_folder  # noqa: PLC0415
    from latecomer.experiments.arena import arena as rooms  # noqa: PLC0415
    from latecomer.experiments.arena.random_worlds import draw_worlds  # noqa: PLC0415
    from latecomer.experiments.arena.result_folder import ResultFolder  # noqa: PLC0415
    from latecomer.experiments.arena.worlds import load_worlds  # noqa: PLC0415

    take_sigterm_as_interrupt()
    if random and world:
        raise InputError("--random draws its own worlds: leave out --world, or --random")
    if rivals:
        if random or policy:
            raise InputError("--rivals has its own policies: leave out --random and --policy")
        from latecomer.cli.rivals import run_rivals  # noqa: PLC0415
        from latecomer.experiments.arena.comparison import WORLDS  # noqa: PLC0415

        rows, place = rooms.choose_worlds(world or WORLDS), make_engine(engine, scheduler, jobs)
        run_rivals(rows, make_output_folder(out), runs=runs or 100, seed=seed, engine=place)
        return
    policies = rooms.choose_policies(policy or (rooms.RANDOM_POLICIES if random else rooms.POLICIES))
    rows = draw_worlds(random, seed=seed) if random else rooms.choose_worlds(world or list(load_worlds()))
    runs = runs or (40 if random else 200)
    selected_engine, folder = make_engine(engine, scheduler, jobs), make_output_folder(out)
    kept = ResultFolder(folder / "worlds", runs=runs, seed=seed)
    done: list[pl.DataFrame] = []
    try:
        for row, scores in rooms.run_arena(rows, policies, runs=runs, seed=seed, engine=selected_engine, folder=kept):
            done.append(scores)
            if not random or len(done) % 10 == 0 or len(done) == len(rows):
                paths = _write(done, folder, runs=runs, is_random=random is not None)
            typer.echo(f"{len(done)} of {len(rows)} worlds: {row.name}", err=True)
    except KeyboardInterrupt:
        if not done:
            typer.echo("interrupted: no world was done; nothing is written", err=True)
            raise typer.Exit(130) from None
        paths = _write(done, folder, runs=runs, is_random=random is not None)
    _show_summary(done) if random else _show(done)
    typer.echo(f"wrote {', '.join(map(str, paths))}")
    if len(done) < len(rows):
        typer.echo(f"interrupted: {len(done)} of {len(rows)} worlds were done, and are written", err=True)
        raise typer.Exit(130)


def _write(done: "list[pl.DataFrame]", folder: Path, *, runs: int, is_random: bool) -> list[Path]:
    import polars as pl  # noqa: PLC0415

    from latecomer.cli.output import replace_output  # noqa: PLC0415
    from latecomer.experiments.arena.plot import plot_arena, plot_random_worlds  # noqa: PLC0415 - brings matplotlib
    from latecomer.experiments.arena.summary import summarise  # noqa: PLC0415
    from latecomer.pictures import write_picture  # noqa: PLC0415

    table, paths = pl.concat(done), [folder / "arena.csv", folder / "arena.png", folder / "arena.svg"]
    with replace_output(paths[0]) as path:
        table.write_csv(path)
    figure = (plot_random_worlds if is_random else plot_arena)(table, runs=runs)
    for picture in paths[1:]:
        with replace_output(picture) as path:
            write_picture(figure, path, suffix=picture.suffix)
    if is_random:
        paths.append(folder / "summary.csv")
        with replace_output(paths[-1]) as path:
            summarise(table).write_csv(path)
    return paths


_HEADINGS = {
    "mean": "mean",
    "standard_error": "± s.e.",
    "p95": "95 %",
    "to_best_published": "of best",
    "p95_to_best_published": "95 %",
    "to_uniform": "of\nuniform",
    "to_undelayed": "of no\ndelay",
}

_SUMMARY_HEADINGS = {
    "mean_ratio": "of best:\nmean",
    "geometric_mean": "geom.\nmean",
    "above_one": "above\n1.0",
    "worst": "worst",
    "worst_p95": "worst\n95 %",
    "to_known": "of known\ndelays",
    "to_undelayed": "of no\ndelay",
    "worst_to_uniform": "of uni-\nform, worst",
}


def _show(done: "list[pl.DataFrame]") -> None:
    """Print a table of 80 columns for each world; ratios to policies that were not run are left out."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    for scores in done:
        columns = [column for column in _HEADINGS if not scores[column].is_nan().all()]
        best = scores["best_published"][0]
        title = Text(scores["world"][0] + (f" (best published: {best})" if best else ""))
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False)
        table.add_column("policy", overflow="fold", vertical="bottom")
        for column in columns:
            table.add_column(_HEADINGS[column], justify="right", no_wrap=True, vertical="bottom")
        for name, *numbers in scores.sort("mean").select("policy", *columns).iter_rows():
            cells = (_figure(column, number) for column, number in zip(columns, numbers, strict=True))
            table.add_row(Text(name), *cells)
        console.print(table)
    if any(scores["best_published"][0] for scores in done):
        console.print(
            "of best: the mean over that of the best published policy; 95 % beside it: the same of 95th percentiles"
        )


def _show_summary(done: "list[pl.DataFrame]") -> None:
    """Print a line for each policy, over all worlds."""
    import polars as pl  # noqa: PLC0415
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from latecomer.experiments.arena.summary import summarise  # noqa: PLC0415

    summary = summarise(pl.concat(done))
    columns = [column for column in _SUMMARY_HEADINGS if not summary[column].is_nan().all()]
    table = Table(title=f"{len(done)} random worlds", title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("policy", overflow="fold", vertical="bottom")
    for column in columns:
        table.add_column(_SUMMARY_HEADINGS[column], justify="right", no_wrap=True, vertical="bottom")
    for name, *numbers in summary.select("policy", *columns).iter_rows():
        cells = (
            f"{number:.1%}" if column == "above_one" else f"{number:.2f}"
            for column, number in zip(columns, numbers, strict=True)
        )
        table.add_row(name, *cells)
    Console().print(table)


def _figure(column: str, number: float) -> str:
    if not isfinite(number):
        return "–"
    return f"{number:.2f}" if column.removeprefix("p95_").startswith("to_") else f"{number:.1f}"
