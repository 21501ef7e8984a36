"""`latecomer log`: verify, export and replay a store's log; delete a bandit; adjust the clock."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.cli.store import check_store
from latecomer.errors import FileError, InputError

if TYPE_CHECKING:
    import polars as pl

app = typer.Typer(
    no_args_is_help=True,
    help="Verify, export and replay a store's log; delete a bandit; adjust the store's clock.",
    rich_markup_mode=None,
    epilog="""\b
Examples:
  latecomer log verify shop.db
  latecomer log export shop.db --bandit offers --out decisions
  latecomer log replay shop.db --bandit offers --into offers-3d --window 3d
""",
)

Store = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="The store: a file, or postgresql://…; - stands for LATECOMER_STORE.",
        show_default=False,
    ),
]


@app.command(short_help="Check every row, and the state that follows.")
def verify(store: Store) -> None:
    """Check every page, every row and the state that follows from them. The store may be in use.

    Where a bandit is damaged, it names the row and the remedy.

    \b
    Example:
      latecomer log verify shop.db
    """  # noqa: D301 - \b keeps the lines below it as they are
    from latecomer.service.tools.verify import verify as verify_store  # noqa: PLC0415 - `latecomer --help` is light

    for line in verify_store(check_store(store)):
        typer.echo(line)
    typer.echo("whole")


@app.command(short_help="Write a bandit's decisions as Parquet.")
def export(
    store: Store,
    bandit: Annotated[str, typer.Option(metavar="NAME", help="The bandit.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the table of decisions.")],
    reports: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Another folder, for a table of every report.")
    ] = None,
) -> None:
    """Write a bandit's decisions as Parquet files, each with its offer and its conversion. The store may be in use.

    \b
    Example:
      latecomer log export shop.db --bandit offers --out decisions
    """  # noqa: D301
    from latecomer.cli.output import make_output_folder  # noqa: PLC0415
    from latecomer.service.tools.export import check_bandit  # noqa: PLC0415
    from latecomer.service.tools.export import export as export_log  # noqa: PLC0415

    store = check_store(store)
    check_bandit(store, bandit)  # before anything is written
    folders = {"decisions": make_output_folder(out)}
    if reports is not None:
        folders["reports"] = make_output_folder(reports)
        if folders["reports"] == folders["decisions"]:
            raise InputError(f"--reports must be another folder than --out; both are {out}")
    for earlier in (file for folder in folders.values() for file in sorted(folder.glob("*.parquet"))):
        raise InputError(f"--out must be a folder without earlier tables; {earlier} is there: choose another")
    written = dict.fromkeys(folders, 0)
    try:
        for number, (table, frame) in enumerate(export_log(store, bandit), start=1):
            if table in folders:
                _write_part(folders[table] / f"{table}-{number:05}.parquet", frame)
                written[table] += len(frame)
    finally:  # also where a damaged row ends it
        typer.echo(" and ".join(f"{count} {table} in {folders[table]}" for table, count in written.items()))


def _write_part(path: Path, frame: "pl.DataFrame") -> None:
    from latecomer.cli.output import replace_output  # noqa: PLC0415

    with replace_output(path) as part:
        frame.write_parquet(part)


@app.command(short_help="Replay a bandit's log into a new bandit.")
def replay(
    store: Store,
    bandit: Annotated[str, typer.Option(metavar="NAME", help="The bandit.")],
    into: Annotated[str, typer.Option(metavar="NAME", help="The new bandit.")],
    window: Annotated[str | None, typer.Option(metavar="SPAN", help="Its window: rounds, or 7d.")] = None,
    grace: Annotated[str | None, typer.Option(metavar="SPAN", help="Its grace, for a window in time: 1d.")] = None,
    policy: Annotated[str | None, typer.Option(metavar="CLASS", help="Its policy.")] = None,
    parameters: Annotated[str | None, typer.Option(metavar="JSON", help="Its policy's parameters.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Replay what pruning and damage have left.")] = False,
    promote: Annotated[bool, typer.Option("--promote", help="Make the challenger the policy.")] = False,
) -> None:
    """Replay a bandit's log into a new bandit of the same store, with another window or policy.

    Stop the server first; on PostgreSQL, replicas may go on.

    \b
    Example:
      latecomer log replay shop.db --bandit offers --into offers-3d --window 3d
    """  # noqa: D301
    import msgspec  # noqa: PLC0415

    from latecomer.service.tools.replay import open_for_replay  # noqa: PLC0415
    from latecomer.service.tools.replay import replay as replay_log  # noqa: PLC0415

    store = check_store(store)
    try:
        given = None if parameters is None else msgspec.json.decode(parameters, type=dict)
    except msgspec.MsgspecError as error:
        raise InputError(f"--parameters must be a JSON object; got {parameters!r}: {error}") from None
    span = int(window) if window is not None and window.isdecimal() else window
    with open_for_replay(store) as opened:
        changes = {"window": span, "grace": grace, "policy": policy, "parameters": given}
        stats = replay_log(opened, bandit, into, partial=partial, promote=promote, **changes)
    accepted, late = stats.conversions["accepted"], stats.conversions["late"]
    typer.echo(f"{into}: {stats.rounds} rounds, {accepted} conversions accepted, {late} late, {stats.pending} pending")


@app.command(short_help="Delete a bandit and all that it has.")
def delete(
    store: Store,
    bandit: Annotated[str, typer.Option(metavar="NAME", help="The bandit.")],
    confirm: Annotated[str, typer.Option(metavar="NAME", help="Its name, once more.")],
) -> None:
    """Delete a bandit, a damaged one too, and all that it has learnt.

    Stop the server first; on PostgreSQL, replicas may go on.

    \b
    Example:
      latecomer log delete shop.db --bandit offers --confirm offers
    """  # noqa: D301
    from latecomer.service.storage.postgres.address import is_address  # noqa: PLC0415
    from latecomer.service.store import Store  # noqa: PLC0415

    if confirm != bandit:
        raise InputError(f"--confirm must repeat the bandit's name; got {confirm!r} for {bandit!r}")
    store = check_store(store)
    if is_address(store):
        _delete_shared(store, bandit)
    else:
        _check_file(store)
        with Store.open(store, prune=False) as opened:
            opened.delete(bandit)
    typer.echo(f"{bandit} is deleted")


def _delete_shared(address: str, bandit: str) -> None:
    from latecomer.extras import require_packages  # noqa: PLC0415

    require_packages("a store on PostgreSQL", "psycopg")
    from latecomer.service.blocking_store import BlockingStore  # noqa: PLC0415 - it takes psycopg

    with BlockingStore(address) as opened:
        opened.delete(bandit)


def _check_file(store: str) -> None:
    if not Path(store).is_file():
        raise InputError(f"STORE must be a store's file; {store} is not there: check the path")


@app.command("adjust-clock", short_help="Adopt this machine's clock.")
def adjust_clock(store: Store) -> None:
    """Adopt this machine's clock where the store's time is ahead of it. Stop the server first.

    A clock that was once far ahead has left its times in the log, and the store's time goes on from there. No window
    changes: calendar times are converted on their way in and out.

    \b
    Example:
      latecomer log adjust-clock shop.db
    """  # noqa: D301
    from latecomer.service.storage.postgres.address import is_address  # noqa: PLC0415
    from latecomer.service.store import Store  # noqa: PLC0415

    if is_address(check_store(store)):
        raise InputError("STORE must be a file: on PostgreSQL, the time is the database's")
    _check_file(store)
    with Store.open(store, prune=False) as opened:
        ahead = opened.settings.adjust_clock()
    if failure := opened.health.snapshot_failure:
        raise FileError(f"{store} could not be written: {failure}")
    typer.echo(f"the store's time was {ahead:,.0f} s ahead of this machine's clock, and is converted from now on")
