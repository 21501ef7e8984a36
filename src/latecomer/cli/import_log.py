"""`latecomer import LOG`: have a bandit learn from decisions that others made."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from latecomer.cli.store import check_store
from latecomer.errors import InputError
from latecomer.extras import require_packages


def import_log(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Parquet or CSV, or a folder of them.")],
    store: Annotated[
        str, typer.Option(metavar="STORE", help="A store's file, postgresql://…, or a server's address http://….")
    ],
    bandit: Annotated[str, typer.Option(metavar="NAME", help="The bandit.")],
    window: Annotated[
        str | None, typer.Option(metavar="SPAN", help="To create the bandit: its window, rounds or 7d.")
    ] = None,
    policy: Annotated[str, typer.Option(metavar="CLASS", help="To create the bandit: its policy.")] = "recommended",
    decided_at: Annotated[str, typer.Option(metavar="COLUMN", help="When a decision was made.")] = "decided_at",
    action: Annotated[str, typer.Option(metavar="COLUMN", help="The id of the item that was chosen.")] = "action",
    converted_at: Annotated[str, typer.Option(metavar="COLUMN", help="When it converted, if ever.")] = "converted_at",
    value_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="The value of a conversion.")] = None,
    scale: Annotated[float, typer.Option(metavar="MONEY", help="The largest value of a conversion.")] = 1.0,
    decision_id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="An id; rows that repeat it are skipped.")
    ] = None,
    examination: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of rankings: the probability that a position is looked at.")
    ] = None,
    encoder: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The encoder of features by name, as Encoder.save wrote it.")
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A feature of the context; repeat it.")
    ] = None,
    import_id: Annotated[
        str | None, typer.Option("--id", metavar="TEXT", help="Identifies the import; by default, the log's contents.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a log with dirty rows.")] = False,
) -> None:
    """Have a bandit learn from decisions that others made: a warm start.

    The log has a row for each decision: its time, the action, and the time of the conversion, if any. Items are learnt
    as indicators, one dimension each; a table that `latecomer log export` wrote has rows of its own. Interrupted, the
    same command goes on where it stopped; a second run counts nothing twice. Of a store in a file, stop the server
    first. A server's key, of scope admin, is read from LATECOMER_KEY.

    \b
    Example:
      latecomer import log.parquet --store shop.db --bandit offers --window 7d --action item --converted-at bought
    """  # noqa: D301 - \b keeps the lines below it as they are
    require_packages("latecomer import", "polars", "httpx", "apsw")
    from latecomer.encoding.encoder import Encoder  # noqa: PLC0415 - `latecomer --help` is light
    from latecomer.evaluation.read_log import read_log  # noqa: PLC0415
    from latecomer.progress import show_progress  # noqa: PLC0415
    from latecomer.service.import_batches import check_log, count_rows_at_once  # noqa: PLC0415

    if encoder is not None and not encoder.is_file():
        raise InputError(f"--encoder must be a file that Encoder.save wrote; {encoder} is not there: check the path")
    made = None if encoder is None else Encoder.load(encoder)
    read = read_log(
        log,
        decided_at=decided_at,
        action=action,
        converted_at=converted_at,
        value=value_column,
        decision_id=decision_id,
        examination=examination,
        context=context,
        strict=strict,
    )
    dim = read.count_features() if made is None else made.dim
    check_log(read, dim, encoder=made, scale=scale)  # before a bandit is made
    spec = _make_spec(dim, window, policy, made)
    with show_progress("batches", -(-read.decisions // count_rows_at_once(dim)), progress=None) as step:
        options = {"encoder": made, "scale": scale, "import_id": import_id, "advance": lambda _: step()}
        report = _import(store, bandit, spec, read, options)
    accepted, late = report.conversions["accepted"], report.conversions["late"]
    typer.echo(
        f"{bandit}: {report.decisions - report.known} decisions imported, {report.known} were there before; "
        f"of the new ones, {accepted} conversions accepted, {late} late"
    )
    if late > accepted:
        typer.echo(f"WARNING: most conversions came too late to be learnt from: {_explain_late(window)}", err=True)
    for reason, count in read.skipped.items():
        typer.echo(f"skipped {count}: {reason}")


def _explain_late(window: str | None) -> str:
    """Say what may have been meant."""
    if window is not None and window.isdecimal():
        return f"--window {window} is {window} rounds; a time has a unit, such as {window}d"
    return "the bandit's window is shorter than most delays; `latecomer window` compares windows"


def _make_spec(dim: int, window: str | None, policy: str, encoder: Any) -> dict[str, Any] | None:
    """Return the arguments that create the bandit; None where none is to be created."""
    if window is None:
        return None
    span = int(window) if window.isdecimal() else window
    return {"dim": dim, "window": span, "policy": policy, **({} if encoder is None else {"encoder": encoder})}


def _import(store: str, bandit: str, spec: dict[str, Any] | None, log: Any, options: dict[str, Any]) -> Any:
    """Import into a bandit of a server, or of a store that this process opens."""
    if store.startswith(("http://", "https://")):
        from latecomer.client.sync import Client  # noqa: PLC0415

        with Client(store, key=os.environ.get("LATECOMER_KEY")) as client:
            if spec is not None:
                client.create(bandit, **spec)
            return client.import_log(bandit, log, **options)
    from latecomer.service.embedded import open as open_bandit  # noqa: PLC0415

    with open_bandit(check_store(store), name=bandit, **(spec or {})) as opened:
        return opened.import_log(log, **options)
