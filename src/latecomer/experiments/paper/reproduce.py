"""The whole reproduction: every experiment of the paper, and their report."""

import time
from collections.abc import Collection
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from latecomer import __version__
from latecomer.experiments.paper import beyond_the_paper as beyond
from latecomer.experiments.paper import experiments as paper
from latecomer.experiments.paper.report import Report
from latecomer.experiments.paper.sections import SECTIONS
from latecomer.experiments.paper.setting import Setting

FIGURE_1 = "figure-1"
TITLE = "Linear Bandits with Stochastic Delayed Feedback, reproduced"


def reproduce(setting: Setting, folder: Path, console: Console, *, names: Collection[str] = ()) -> bool:
    """Run every section, or those of these names, into `folder`; return whether all of them were finished."""
    chosen = [make for name, make in SECTIONS.items() if not names or name in names]
    subtitle = f"{setting.runs} runs, seed {setting.seed}, Latecomer {__version__}{', quick' if setting.quick else ''}"
    report = Report(folder, title=TITLE, subtitle=subtitle)
    tables: dict[str, pl.DataFrame] = {}
    started = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("starting", total=None)
            setting.before = lambda what: progress.update(task, description=what)
            for make in chosen:
                section = make(setting)
                report.add(section)
                tables[section.name] = section.table
                console.print(f"[green]✓[/] {section.title} [dim]{time.monotonic() - started:.1f} s[/]")
    except KeyboardInterrupt:
        console.print(f"[yellow]interrupted[/]: {len(tables)} of {len(chosen)} sections are in {report.page}")
        return False
    if {FIGURE_1, beyond.NAME} <= tables.keys():
        console.print(summarise(tables[FIGURE_1], tables[beyond.NAME]))
    console.print(f"The report is {report.page}, with its numbers as CSV and Parquet beside it.")
    return True


def summarise(table: pl.DataFrame, beyond_table: pl.DataFrame) -> Table:
    """Figure 1 at its horizon and our policy in the same worlds, a column a panel; narrow enough for any terminal."""
    shown = Table(title=f"Mean pseudo-regret at T = {paper.HORIZON:,}; standard errors are in figure-1.csv")
    shown.add_column("actions\nm\nmean delay")
    panels = table.partition_by(beyond.KEY, as_dict=True)
    for law, window, mean in panels:
        shown.add_column(f"{law}\n{window}\n{mean}", justify="right")
    for policy in table["policy"].unique(maintain_order=True):
        means = (rows.filter(pl.col("policy") == policy)["mean"].item() for rows in panels.values())
        shown.add_row(policy, *(f"{mean:.0f}" for mean in means))
    ours = {tuple(row[: len(beyond.KEY)]): row[len(beyond.KEY)] for row in beyond_table.iter_rows()}
    shown.add_section()
    shown.add_row(paper.OURS, *(f"{ours[panel]:.0f}" for panel in panels))
    return shown
