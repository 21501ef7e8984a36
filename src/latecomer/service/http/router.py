"""The short way of events: POST /v1/bandits/{name}/{what}, answered without the framework.

A framework's routing and its objects for a request and an answer take longer than a decision. What the framework is
good for, odd spellings of a path and methods that a path does not take, is still left to it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

Respond = Callable[[Any, Any, str], Awaitable[tuple[int, bytes]]]
"""respond(scope, receive, bandit's name): the status, and a body in JSON."""

_BANDITS = "/v1/bandits/"


class Shortcuts:
    """Responders by the last part of their path."""

    def __init__(self, responders: Mapping[str, Respond]) -> None:
        self._responders = responders

    def find(self, scope: Any) -> tuple[str, str, Respond] | None:
        """The path's template, the bandit's name and the responder, where there is one."""
        path: str = scope["path"]
        if scope["method"] != "POST" or not path.startswith(_BANDITS):
            return None
        name, _, what = path[len(_BANDITS) :].partition("/")
        respond = self._responders.get(what)
        return (f"{_BANDITS}{{name}}/{what}", name, respond) if respond and name else None

    def framed(self) -> list[HTTPRouteHandler]:
        """The same as routes of the framework's."""
        return [_framed(what, respond) for what, respond in self._responders.items()]


def _framed(what: str, respond: Respond) -> HTTPRouteHandler:
    @post(f"{_BANDITS}{{name:str}}/{what}")
    async def handler(request: Request[Any, Any, Any]) -> ASGIResponse:
        name = request.path_params["name"]
        status, body = await respond(request.scope, request.receive, name)
        return ASGIResponse(body=body, status_code=status, media_type="application/json")

    return handler


async def send_answer(send: Any, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """An answer in JSON, whole."""
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if headers:
        fields += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
