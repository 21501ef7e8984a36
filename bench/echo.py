"""`latecomer serve` with one more route, an echo: the cost of a request without a decision.

POST /v1/bandits/{name}/echo reads its body as a decision does, and sends it back. Run as `python bench/echo.py STORE`;
the port is in the log line that says "serving".
"""

import asyncio
import sys

import uvloop

from latecomer.service.http.context import AppContext
from latecomer.service.http.logging_setup import start_log
from latecomer.service.http.operations import PUBLIC, Operation
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response
from latecomer.service.http.router import Route
from latecomer.service.http.server import serve
from latecomer.service.http.settings import read_settings

ECHO = Operation(
    name="echo",
    method="POST",
    path="/v1/bandits/{name}/echo",
    summary="Send the body back.",
    scope=PUBLIC,
    gives=None,
)


def routes(context: AppContext) -> list[Route]:
    async def echo(request: Request) -> Response:
        body, _ = await context.body_reader.read(request)
        return Response(201, body)

    return [Route(ECHO, echo)]


if __name__ == "__main__":
    chosen = read_settings(environment={}, given={"store": sys.argv[1], "port": 0})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(chosen, start_log("info"), extra=routes))
