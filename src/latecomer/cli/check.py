"""`latecomer check`: the alarms of a store or of a server, for people, cron and monitoring."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.cli.exit_codes import ALARM

if TYPE_CHECKING:
    from latecomer.service.messages import Alarm

KEY_VARIABLE = "LATECOMER_KEY"


def check(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STORE|URL",
            help="A store (a file, or postgresql://…; - stands for LATECOMER_STORE), or a server's http address.",
            show_default=False,
        ),
    ],
    bandit: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A bandit; repeat it. Every bandit by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the alarms as a JSON list.")] = False,
) -> None:
    """Show the alarms of every bandit and of the store, with what to do. The store may be in use.

    The exit code is 0 where there is none, and 3 where there are some. Of a store, bandits are checked as of their
    latest events; a server also knows its clock, its disk and its snapshots. The key of a server, of scope read, is
    taken from the variable LATECOMER_KEY.

    \b
    Example:
      latecomer check http://127.0.0.1:8080
    """  # noqa: D301 - \b keeps the lines below it as they are
    import msgspec  # noqa: PLC0415 - `latecomer --help` is light

    found = _read(source, bandit or ())
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    elif not found:
        typer.echo("no alarms")
    else:
        for alarm in found:
            typer.echo(_write(alarm))
    if found:
        raise typer.Exit(ALARM)


def _write(alarm: "Alarm") -> str:
    whose = "store" if alarm.bandit is None else alarm.bandit
    since = "" if alarm.since is None else f" since {alarm.since:%Y-%m-%d %H:%M} UTC"
    return f"{alarm.severity}: {whose}: {alarm.id}{since}\n  {alarm.sentence}\n  what to do: {alarm.remedy}"


def _read(source: str, names: Sequence[str]) -> "list[Alarm]":
    if source.startswith(("http://", "https://")):
        from latecomer.client.sync import Client  # noqa: PLC0415

        with Client(source, key=os.environ.get(KEY_VARIABLE)) as client:
            served = names or [info.name for info in client.bandits() if not info.quarantined]
            every = [alarm for name in served for alarm in client.stats(name).alarms]
        return list(dict.fromkeys(every))  # those of the store are in the stats of each bandit
    from latecomer.cli.store import check_store as check_address  # noqa: PLC0415
    from latecomer.service.tools.store_check import check_store  # noqa: PLC0415

    return check_store(check_address(source), names)
