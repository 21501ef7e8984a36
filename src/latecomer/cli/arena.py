"""`latecomer arena`: every policy in every world."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl


def arena(
    runs: Annotated[int, typer.Option(metavar="N", min=2, help="Runs of every policy in every world.")] = 200,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same numbers.")] = 0,
    world: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this world; may be given again. All by default.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this policy; may be given again. All by default.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads; all cores by default.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path("arena-result"),
    engine: Annotated[str, typer.Option(metavar="NAME", help="'threads', or 'dask' for many machines.")] = "threads",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's, with --engine dask.")
    ] = None,
) -> None:
    """Play every policy in every world of the arena, and compare.

    The worlds are the paper's six geometric panels, its heavy tail, fixed arms, low rates, many dimensions, a delay law
    that drifts, arms that come and go, and rewards that are not linear. Regret is compared with the best published
    policy's (OTFLinUCB and OTFLinTS, as stated and as released) and with a learner's without delay. --out receives
    arena.csv (mean, standard error, 95th percentile and ratios of every policy in every world) and arena.png; both
    grow world by world, and Ctrl-C keeps what is done.

    \b
    Example:
      latecomer arena --runs 20 --world "B (100, 100)" --world "basis arms, .2 and .4" --out arena
    """  # noqa: D301 - \b keeps the lines below it as they are
    from latecomer.cli.engine import engine_of  # noqa: PLC0415 - `latecomer --help` is light
    from latecomer.cli.folder import writable  # noqa: PLC0415
    from latecomer.experiments.arena import ENTRANTS, play, rows  # noqa: PLC0415

    where, folder = engine_of(engine, scheduler, jobs), writable(out)
    worlds, done = world or list(rows()), []
    contests = play(worlds=worlds, entrants=policy or list(ENTRANTS), runs=runs, seed=seed, engine=where)
    try:
        for row, judged in contests:
            done.append(judged)
            paths = _write(done, folder, runs=runs)
            typer.echo(f"{len(done)} of {len(worlds)} worlds: {row.name}", err=True)
    except KeyboardInterrupt:
        if not done:
            typer.echo("interrupted: no world was done; nothing is written", err=True)
            raise typer.Exit(130) from None
    _show(done)
    typer.echo(f"wrote {', '.join(map(str, paths))}")
    if len(done) < len(worlds):
        typer.echo(f"interrupted: {len(done)} of {len(worlds)} worlds were done, and are written", err=True)
        raise typer.Exit(130)


def _write(done: "list[pl.DataFrame]", folder: Path, *, runs: int) -> list[Path]:
    import polars as pl  # noqa: PLC0415

    from latecomer.cli.folder import replacing  # noqa: PLC0415
    from latecomer.experiments.arena_plot import arena_figure  # noqa: PLC0415 - brings matplotlib

    table = pl.concat(done)
    with replacing(folder / "arena.csv") as path:
        table.write_csv(path)
    with replacing(folder / "arena.png") as path:
        arena_figure(table, runs=runs).savefig(path, format="png")
    return [folder / "arena.csv", folder / "arena.png"]


def _show(done: "list[pl.DataFrame]") -> None:
    """A table for each world."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    for judged in done:
        table = Table(title=judged["world"][0], title_justify="left")
        table.add_column("policy", overflow="fold")
        for heading in ("mean", "± s.e.", "95 %", "of best published", "95 %, of its", "of uniform", "of no delay"):
            table.add_column(heading, justify="right")
        columns = (
            "mean",
            "standard_error",
            "p95",
            "to_best_published",
            "p95_to_best_published",
            "to_uniform",
            "to_undelayed",
        )
        for name, mean, error, tail, *ratios in judged.sort("mean").select("policy", *columns).iter_rows():
            cells = (f"{mean:.1f}", f"{error:.1f}", f"{tail:.1f}", *(f"{ratio:.2f}" for ratio in ratios))
            table.add_row(Text(name), *cells)
        Console().print(table)
