"""`latecomer report`: a bandit's report as one page that can be mailed."""

import os
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
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page, or the data where it ends with .json.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a bandit's report as one page that needs nothing else. The store may be in use.

    The key of a server is taken from the variable LATECOMER_KEY.

    \b
    Example:
      latecomer report shop.db --bandit offers --out report.html
    """  # noqa: D301 - \b keeps the lines below it as they are
    import msgspec  # noqa: PLC0415 - `latecomer --help` is light

    from latecomer.atomic_write import replace_file  # noqa: PLC0415
    from latecomer.service.page.layout import write_report  # noqa: PLC0415

    if not out.parent.is_dir():
        raise InputError(f"--out must be a file in a folder that is there; got {out}")
    found = _read(source, bandit)
    is_data = out.suffix == ".json"
    text = msgspec.json.encode(found) if is_data else write_report(found).encode()
    with replace_file(out) as temporary:
        temporary.write_bytes(text)
    typer.echo(f"{found.decisions:,} decisions and {found.conversions:,} conversions of {bandit} in {out}")


def _read(source: str, bandit: str) -> "BanditReport":
    if source.startswith(("http://", "https://")):
        from latecomer.client.sync import Client  # noqa: PLC0415

        with Client(source, key=os.environ.get(KEY_VARIABLE)) as client:
            return client.report(bandit)
    from latecomer.cli.store import check_store  # noqa: PLC0415
    from latecomer.service.tools.store_report import read_report  # noqa: PLC0415

    return read_report(check_store(source), bandit)
