"""`latecomer store`: make and upgrade the tables of a store on PostgreSQL; copy a store."""

import os
import sys
from typing import Annotated

import typer

from latecomer.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    help="Make and upgrade a store on PostgreSQL; copy a store between a file and a database.",
    rich_markup_mode=None,
    epilog="""\b
Examples:
  latecomer store init postgresql://owner@db.internal/offers
  latecomer store copy shop.db postgresql://owner@db.internal/offers
""",
)

VARIABLE = "LATECOMER_STORE"
Address = Annotated[
    str | None,
    typer.Argument(metavar="ADDRESS", help=f"postgresql://user@host/name; {VARIABLE} by default.", show_default=False),
]
FROM = Annotated[str, typer.Argument(metavar="FROM", help="The store: a file or an address.", show_default=False)]
TO = Annotated[str, typer.Argument(metavar="TO", help="A new file, or an empty store.", show_default=False)]


def check_store(store: str) -> str:
    """Return a store of the command line; an address may not have a password, and `-` stands for LATECOMER_STORE."""
    from latecomer.service.storage.postgres.address import check_no_secret  # noqa: PLC0415 - `--help` is light

    if store == "-":
        found = os.environ.get(VARIABLE, "")
        if not found:
            raise InputError(f"- stands for {VARIABLE}, which is not set: set it, or give the store")
        return found
    return check_no_secret(store)


def _find_address(address: str | None) -> str:
    from latecomer.service.storage.postgres.address import hide_secrets, is_address  # noqa: PLC0415

    found = check_store("-" if address is None else address)
    if not is_address(found):
        raise InputError(f"ADDRESS must begin with postgresql://; got {hide_secrets(found)!r}: a file needs no tables")
    from latecomer.extras import require_packages  # noqa: PLC0415

    require_packages("a store on PostgreSQL", "psycopg")
    return found


@app.command(short_help="Create the tables of a store in a database.")
def init(address: Address = None) -> None:
    """Create the tables of a store in a database, in the schema `latecomer`. Where they exist, nothing changes.

    \b
    Example:
      latecomer store init postgresql://owner@db.internal/offers
    """  # noqa: D301 - \b keeps the lines below it as they are
    from latecomer.service.storage.postgres.address import hide_secrets  # noqa: PLC0415

    found = _find_address(address)
    from latecomer.service.storage.postgres.schema import initialise  # noqa: PLC0415 - it takes psycopg

    made = initialise(found)
    typer.echo(f"{hide_secrets(found)} has {'a store now' if made else 'a store already'}")


@app.command(short_help="Bring the tables of a store to this version.")
def upgrade(address: Address = None) -> None:
    """Bring the tables of a store to this version. Stop every replica first.

    \b
    Example:
      latecomer store upgrade postgresql://owner@db.internal/offers
    """  # noqa: D301
    from latecomer.service.storage.postgres.address import hide_secrets  # noqa: PLC0415

    found = _find_address(address)
    from latecomer.service.storage.postgres.schema import upgrade as upgrade_tables  # noqa: PLC0415

    before, after = upgrade_tables(found)
    said = f"has version {after} already" if before == after else f"is brought from version {before} to {after}"
    typer.echo(f"{hide_secrets(found)} {said}")


@app.command(short_help="Copy a store to a file or a database.")
def copy(source: FROM, target: TO) -> None:
    """Copy a store as of this moment, from a file to a database or back, and verify the copy.

    Keys are not copied: make new ones. `-` stands for the address in LATECOMER_STORE. No replica may serve the copy
    before it is whole, and what is decided at the old place afterwards is not in it: stop the old server first.

    \b
    Example:
      latecomer store copy shop.db postgresql://owner@db.internal/offers
    """  # noqa: D301
    from latecomer.service.storage.postgres.address import hide_secrets  # noqa: PLC0415
    from latecomer.service.tools.copy_store import copy_store  # noqa: PLC0415

    source, target = check_store(source), check_store(target)

    def report(rows: int) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r{rows:,} rows", err=True, nl=False)

    for line in copy_store(source, target, report=report):
        typer.echo(line)
    typer.echo(f"{hide_secrets(target)} is a whole copy of {hide_secrets(source)}")
