"""`latecomer serve` with one more route, an echo: what the server costs without a decision in it.

`/v1/bandits/{name}/echo/` is an endpoint of the framework's, as any service has; without the slash at its end it takes
the short way that decisions take. Run as `python bench/echo.py STORE`; the port is in the log line that says "serving".
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import uvloop

from latecomer.service.http.context import AppContext
from latecomer.service.http.logging_setup import start_log
from latecomer.service.http.router import Respond
from latecomer.service.http.server import serve
from latecomer.service.http.settings import settings


def echo(reception: AppContext) -> Mapping[str, Respond]:
    """The body, read as a decision's is."""
    intake = reception.intake

    async def back(scope: Any, receive: Any, name: str) -> tuple[int, bytes]:
        body, _ = await intake.read(scope, receive)
        return 201, body

    return {"echo": back}


if __name__ == "__main__":
    chosen = settings(environment={}, given={"store": sys.argv[1], "port": 0})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(chosen, start_log("info"), extra=echo))
