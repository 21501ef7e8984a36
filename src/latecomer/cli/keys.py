"""`latecomer keys`: make, list and revoke the keys of a server. A running server notices every change."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.cli.store import check_store

if TYPE_CHECKING:
    from latecomer.service.http.keys import EditableKeys
    from latecomer.service.http.settings import Settings

app = typer.Typer(
    no_args_is_help=True,
    help="Make, list and revoke the keys of a server.",
    rich_markup_mode=None,
    epilog="""\b
Example:
  latecomer keys add --scope decide --scope convert --store shop.db
""",
)

Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The server's settings in TOML.")]
Store = Annotated[
    str | None, typer.Option("--store", metavar="STORE", help="The server's store: a file, or postgresql://…")
]
Keys = Annotated[str | None, typer.Option("--keys", metavar="FILE", help="The key file; STORE.keys by default.")]


def _settings(config: Path | None, store: str | None, keys: str | None) -> "Settings":
    from latecomer.service.http.settings import read_settings  # noqa: PLC0415 - `latecomer --help` is light

    return read_settings(config, given={"store": None if store is None else check_store(store), "keys": keys})


def _open_keys(settings: "Settings") -> "EditableKeys":
    """Return the keys of a server: in a file, or in the database of its store."""
    from latecomer.service.http.keys import KeyFile  # noqa: PLC0415
    from latecomer.service.storage.postgres.address import is_address  # noqa: PLC0415

    if not is_address(settings.store):
        return KeyFile(settings.keys_file)
    from latecomer.extras import require_packages  # noqa: PLC0415

    require_packages("a store on PostgreSQL", "psycopg")
    from latecomer.service.http.key_table import KeyTable  # noqa: PLC0415 - it takes psycopg

    return KeyTable(settings.store)


@app.command()
def add(
    scope: Annotated[list[str], typer.Option(metavar="SCOPE", help="decide, convert, read or admin; may be repeated.")],
    bandit: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="For this bandit alone; may be repeated; all by default.")
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A note, such as who uses it.")] = "",
    config: Config = None,
    store: Store = None,
    keys: Keys = None,
) -> None:
    """Make a key and print it. It is shown only once: the file keeps its hash.

    With the first key, a running server on this store needs keys from now on: requests without one are refused.

    \b
    Example:
      latecomer keys add --scope decide --scope convert --bandit offers --note "web shop"
    """  # noqa: D301
    found = _settings(config, store, keys)
    file = _open_keys(found)
    is_alone = not file.keys()
    presented, key = file.add(scopes=scope, bandits=bandit or ("*",), note=note)
    if not found.keys and "://" not in found.store and not Path(found.store).exists():
        typer.echo(f"there is no store {found.store} yet: the key is for a server that will create it", err=True)
    typer.echo(presented)
    typer.echo(f"key {key.id}: {', '.join(key.scopes)} for {', '.join(key.bandits)}; it is not shown again", err=True)
    if is_alone:
        typer.echo("a running server on this store needs keys from now on", err=True)


@app.command("list")
def list_keys(config: Config = None, store: Store = None, keys: Keys = None) -> None:
    """List the keys: their ids, not the keys.

    \b
    Example:
      latecomer keys list
    """  # noqa: D301
    file = _open_keys(_settings(config, store, keys))
    for key in (file.keys() or {}).values():
        what = f"{','.join(key.scopes)}  {','.join(key.bandits)}"
        typer.echo(f"{key.id}  {key.created:%Y-%m-%d}  {what}  {key.note}".rstrip())


@app.command(short_help="Revoke a key.")
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `latecomer keys list` shows it.")],
    config: Config = None,
    store: Store = None,
    keys: Keys = None,
) -> None:
    """Revoke a key; a running server refuses it from now on.

    \b
    Example:
      latecomer keys revoke 1f6b2a90c3d4
    """  # noqa: D301
    key = _open_keys(_settings(config, store, keys)).revoke(id)
    typer.echo(f"revoked {key.id}")
