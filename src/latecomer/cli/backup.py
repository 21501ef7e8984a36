"""`latecomer backup`: a copy of a store that is in use."""

from pathlib import Path
from typing import Annotated

import typer


def backup(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store's file.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The copy, a new file.", show_default=False)],
) -> None:
    """Copy a store as of this moment, and verify the copy. A server may go on using the store.

    \b
    Example:
      latecomer backup shop.db backups/shop-monday.db
    """  # noqa: D301 - \b keeps the lines below it as they are
    from latecomer.service.tools.backup import backup as copy_store  # noqa: PLC0415 - `latecomer --help` is light

    for line in copy_store(store, target):
        typer.echo(line)
    typer.echo(f"{target} is a whole copy of {store}")
