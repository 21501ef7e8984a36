"""`latecomer report`: a bandit's report as one page that can be mailed."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.errors import InputError

if TYPE_CHECKING:
    from latecomer.service.bandit_report import BanditReport

KEY_VARIABLE = "LATECOMER_KEY"


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STORE|URL",
            help="A store (a file, or postgresql://…; - stands for LATECOMER_STORE), or a server's http address.",
            show_default=False,
        ),
    ],
    bandit: Annotated[str, typer.Option(metavar="NAME", help="The bandit.")],
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Only decisions from this time on, as 2026-03-01.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Only decisions before this time (UTC).")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page, or the data where it ends with .json.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a bandit's report as one page that needs nothing else. The store may be in use.

    With --from or --to it is about the decisions of that time, as far as the log still has them, and their conversions
    whenever they came. The key of a server is taken from the variable LATECOMER_KEY.

    \b
    Example:
      latecomer report shop.db --bandit offers --from 2026-03-01 --to 2026-04-01 --out march.html
    """  # noqa: D301 - \b keeps the lines below it as they are
    import msgspec  # noqa: PLC0415 - `latecomer --help` is light

    from latecomer.atomic_write import replace_file  # noqa: PLC0415
    from latecomer.service.page.layout import write_report  # noqa: PLC0415
    from latecomer.timestamps import parse_datetime  # noqa: PLC0415

    if not out.parent.is_dir():
        raise InputError(f"--out must be a file in a folder that is there; got {out}")
    found = _read(source, bandit, parse_datetime(since, name="--from"), parse_datetime(until, name="--to"))
    is_data = out.suffix == ".json"
    text = msgspec.json.encode(found) if is_data else write_report(found).encode()
    with replace_file(out) as temporary:
        temporary.write_bytes(text)
    typer.echo(f"{found.decisions:,} decisions and {found.conversions:,} conversions of {bandit} in {out}")


def _read(source: str, bandit: str, since: datetime | None, until: datetime | None) -> "BanditReport":
    if source.startswith(("http://", "https://")):
        from latecomer.client.sync import Client  # noqa: PLC0415

        with Client(source, key=os.environ.get(KEY_VARIABLE)) as client:
            return client.report(bandit, since=since, until=until)
    from latecomer.cli.store import check_store  # noqa: PLC0415
    from latecomer.service.tools.store_report import read_report  # noqa: PLC0415

    return read_report(check_store(source), bandit, since=since, until=until)
