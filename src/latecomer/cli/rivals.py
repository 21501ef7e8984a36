"""`latecomer arena --rivals`: policies against what others have published since, and against other libraries."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from latecomer.experiments.arena.worlds import ArenaWorld
    from latecomer.simulation.simulate import Engine

SLOW_RUNS = 10
"""Runs of rivals and peers, which are not compiled."""


def run_rivals(rows: "list[ArenaWorld]", folder: Path, *, runs: int, seed: int, engine: "Engine") -> None:
    """Play world after world; write rivals.csv, rivals.png and rivals.svg, and print a table."""
    import polars as pl  # noqa: PLC0415 - `latecomer --help` is light

    from latecomer.cli.output import replace_output  # noqa: PLC0415
    from latecomer.experiments.arena.comparison import compare  # noqa: PLC0415
    from latecomer.experiments.arena.plot import plot_comparison  # noqa: PLC0415
    from latecomer.experiments.arena.result_folder import ResultFolder  # noqa: PLC0415
    from latecomer.pictures import write_picture  # noqa: PLC0415

    kept, done = ResultFolder(folder / "worlds", runs=runs, seed=seed), []
    for row in rows:
        done.append(compare(row, runs=runs, slow_runs=min(runs, SLOW_RUNS), seed=seed, folder=kept, engine=engine))
        typer.echo(f"{len(done)} of {len(rows)} worlds: {row.name}", err=True)
    table = pl.concat(done)
    with replace_output(folder / "rivals.csv") as path:
        table.write_csv(path)
    figure = plot_comparison(table)
    for suffix in (".png", ".svg"):
        with replace_output(folder / f"rivals{suffix}") as path:
            write_picture(figure, path, suffix=suffix)
    for scores in done:
        typer.echo(f"\n{scores['world'][0]}")
        shown = scores.sort("mean").select("policy", "mean", "standard_error", "p95", "runs", "microseconds")
        for name, mean, error, tail, count, micro in shown.iter_rows():
            time = "" if micro is None else f"{micro:10.1f} µs"
            typer.echo(f"  {name:36} {mean:8.1f} ± {error:5.1f}  95 %: {tail:8.1f}  {count:4} runs {time}")
    typer.echo(f"wrote {', '.join(str(folder / f'rivals{suffix}') for suffix in ('.csv', '.png', '.svg'))}")
