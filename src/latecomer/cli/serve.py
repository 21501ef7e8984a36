"""`latecomer serve`: run the decision service."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latecomer.cli.exit_codes import exit_code
from latecomer.cli.store import check_store
from latecomer.errors import LatecomerError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


def serve(
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings in TOML.")] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="STORE", help="The store: a file, latecomer.db by default, or postgresql://…"),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="127.0.0.1 by default; another address needs keys.")
    ] = None,
    port: Annotated[int | None, typer.Option(metavar="N", help="8080 by default; 0 finds a free one.")] = None,
    keys: Annotated[str | None, typer.Option(metavar="FILE", help="The keys; STORE.keys by default.")] = None,
    require_keys: Annotated[
        bool | None,
        typer.Option(
            "--require-keys/--no-require-keys",
            help="Refuse to run without keys; or allow it after there were keys.",
            show_default=False,
        ),
    ] = None,
    create: Annotated[
        bool | None,
        typer.Option("--create", help="Create an empty store where an earlier one is missing.", show_default=False),
    ] = None,
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = None,
) -> None:
    """Serve decisions over HTTP, every answer durable before it leaves.

    One process, one file; or any number of processes on one PostgreSQL. SIGTERM, SIGHUP and Ctrl-C stop it cleanly.
    Every setting can also be given in the file of --config or in the environment, as LATECOMER_PORT and so on;
    docs/reference/service.md has the table.

    \b
    Example:
      latecomer serve --store shop.db --port 8080
    """  # noqa: D301 - \b keeps the lines below it as they are
    import asyncio  # noqa: PLC0415 - `latecomer --help` is light

    from latecomer.service.http.logging_setup import start_log  # noqa: PLC0415
    from latecomer.service.http.server import serve as run  # noqa: PLC0415
    from latecomer.service.http.settings import find_injected, find_unknown, read_settings  # noqa: PLC0415

    loop_factory = _loop_factory()
    given = {"store": store, "host": host, "port": port, "keys": keys, "log_level": log_level}
    given |= {"require_keys": require_keys, "create": create}
    log = start_log("info")
    try:
        given["store"] = None if store is None else check_store(store)
        chosen = read_settings(config, given=given)
        log = start_log(chosen.log_level)
        for variable, value in find_injected().items():
            remedy = "set it to a port, give --port, or set enableServiceLinks: false"
            log.warning("a variable that Kubernetes has set is ignored", variable=variable, value=value, remedy=remedy)
        for variable, meant in find_unknown().items():
            log.warning(f"an unknown variable is ignored{meant}", variable=variable)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(run(chosen, log))
    except LatecomerError as error:  # the log is JSON, so this line is too
        log.critical("failed", error=str(error))
        raise typer.Exit(exit_code(error)) from None


def _loop_factory() -> "Callable[[], asyncio.AbstractEventLoop] | None":
    """Return the factory of uvloop, where there is one."""
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415

    return uvloop.new_event_loop
