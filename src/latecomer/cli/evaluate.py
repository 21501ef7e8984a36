"""`latecomer evaluate LOG`: estimate what other policies would have earned on a log."""

from pathlib import Path
from typing import Annotated, Any

import typer

from latecomer.cli.until import parse_until
from latecomer.errors import InputError
from latecomer.extras import require_packages

_LOGGED_AND_UNIFORM = ("logged", "uniform")


def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Parquet or CSV, or a folder of them.")],
    window: Annotated[
        str | None, typer.Option(metavar="TIME", help="Up to which delay a conversion counts, such as 7d.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="[NAME=]TARGET",
            help="logged, uniform, an action, or a column; repeat it. By default uniform, and up to 20 items.",
        ),
    ] = None,
    decided_at: Annotated[str, typer.Option(metavar="COLUMN", help="When a decision was made.")] = "decided_at",
    action: Annotated[str, typer.Option(metavar="COLUMN", help="The id of the item that was chosen.")] = "action",
    propensity: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The probability that it had; `propensity` by default.")
    ] = None,
    converted_at: Annotated[str, typer.Option(metavar="COLUMN", help="When it converted, if ever.")] = "converted_at",
    converted: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="In place of that, 0 or 1: conversions come at once.")
    ] = None,
    value_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="The value of a conversion.")] = None,
    decision_id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="An id; rows that repeat it are skipped.")
    ] = None,
    position: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The position in a ranking, from 1; the first is judged.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="The end of the log: seconds, or ISO 8601.")] = None,
    estimator: Annotated[str, typer.Option(metavar="NAMES", help="snips, ips, dr, or several with commas.")] = "snips",
    confidence: Annotated[float, typer.Option(metavar="SHARE", help="Of the intervals.")] = 0.9,
    value: Annotated[float | None, typer.Option(metavar="MONEY", help="The worth of a conversion.")] = None,
    currency: Annotated[str, typer.Option(metavar="WORD", help="Of --value, such as EUR.")] = "",
    traffic: Annotated[
        float | None, typer.Option(metavar="N", help="Decisions a month; the log's own by default.")
    ] = None,
    largest_weight: Annotated[
        float | None,
        typer.Option(metavar="B", help="No weight is larger; adds intervals that are valid at every look."),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="threads, or dask for a cluster.")] = "threads",
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a log with dirty rows.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path("evaluation-result"),
) -> None:
    """Estimate what other policies would have earned on your own log.

    The log has a row for each decision: its time, the action, the probability that the action had, and the time of the
    conversion, if any. Rounds whose window is still open count as far as they have matured. A table that `latecomer
    log export` wrote needs no names of columns. Dirty rows are counted and left out; --strict refuses them.

    OUT receives evaluation.csv, evaluation.parquet, evaluation.json, evaluation.txt, and the picture as
    evaluation.png and evaluation.svg.

    \b
    Example:
      latecomer evaluate log.parquet --window 7d --policy uniform --policy new=planned_item --value 25 --currency EUR

    \b
    A log with its own names, of clicks that come at once:
      latecomer evaluate logs/ --decided-at ts --action item --propensity p --converted click
    """  # noqa: D301 - \b keeps the lines below it as they are
    require_packages("latecomer evaluate", "polars", "matplotlib")
    from latecomer.cli.output import make_output_folder  # noqa: PLC0415 - `latecomer --help` is light
    from latecomer.evaluation.evaluate import evaluate as run  # noqa: PLC0415
    from latecomer.evaluation.read_log import read_log  # noqa: PLC0415

    folder = make_output_folder(out)
    cluster = _make_engine(engine, scheduler)
    read = read_log(
        log,
        decided_at=decided_at,
        action=action,
        propensity=propensity,
        converted_at=converted_at,
        converted=converted,
        value=value_column,
        decision_id=decision_id,
        position=position,
        until=parse_until(until),
        strict=strict,
        engine=cluster,
    )
    found = run(
        read,
        parse_policies(policy or [], read.items),
        window=None if window is None else _parse_window(window),
        estimator=[name.strip() for name in estimator.split(",")],
        confidence=confidence,
        value=value,
        currency=currency,
        traffic=traffic,
        largest_weight=largest_weight,
        engine=cluster,
    )
    paths = found.write(folder)
    typer.echo(found.text())
    typer.echo(f"wrote {', '.join(map(str, paths))}")


def parse_policies(given: list[str], items: tuple[str, ...]) -> dict[str, Any]:
    """Read targets as "NAME=TARGET" or "TARGET"; without any, uniform play and the items, where they are few.

    >>> parse_policies(["uniform", "new=planned"], ())
    {'uniform': 'uniform', 'new': 'planned'}
    >>> parse_policies([], ("a", "b"))
    {'logged': 'logged', 'uniform': 'uniform', 'always a': 'a', 'always b': 'b'}
    """
    if not given:
        every = items if len(items) <= 20 else ()
        return {name: name for name in _LOGGED_AND_UNIFORM} | {f"always {item}": item for item in every}
    policies: dict[str, Any] = {}
    for text in given:
        name, is_named, target = text.partition("=")
        if name in policies:
            raise InputError(f"--policy must give each name once; got {name!r} twice")
        policies[name] = target if is_named else name
    return policies


def _parse_window(text: str) -> int | str:
    """Read a number alone as rounds."""
    return int(text) if text.isdecimal() else text


def _make_engine(engine: str, scheduler: str | None) -> Any:
    """Make the cluster, or None for this machine."""
    from latecomer.cli.engine import make_engine  # noqa: PLC0415

    made = make_engine(engine, scheduler, None)
    return made if engine == "dask" else None
