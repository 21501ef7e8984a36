"""`latecomer serve` with one more route, an echo: what the server costs without a decision in it.

Run as `python bench/echo.py STORE`; the port is in the log line that says "serving".
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import uvloop
from litestar import Request, post
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from latecomer.service.config import settings
from latecomer.service.http.reception import Reception
from latecomer.service.http.server import serve
from latecomer.service.logs import start_log


def echo(reception: Reception) -> Sequence[HTTPRouteHandler]:
    """Written as the decision's handler is: the same routing, reading and answering."""
    intake = reception.intake

    @post("/echo/{name:str}")
    async def back(request: Request[Any, Any, Any], name: str) -> ASGIResponse:
        body, _ = await intake.read(request.scope, request.receive)
        return ASGIResponse(body=body, status_code=201, media_type="application/json")

    return [back]


if __name__ == "__main__":
    chosen = settings(environment={}, given={"store": sys.argv[1], "port": 0})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(chosen, start_log("info"), extra=echo))
