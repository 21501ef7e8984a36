"""Finds the route of a request, by its path and its method, in the table of operations."""

import re
from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct

from latecomer.service.http.errors import HTTPError
from latecomer.service.http.operations import BANDIT_NAME, Operation
from latecomer.service.http.personalizer_operations import EVENT, PERSONALIZER
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response

_PERSONALIZER = re.compile(rf"(/v1/bandits/(?P<bandit>[^/]+))?{re.escape(PERSONALIZER)}(?P<rest>/.*)?", re.DOTALL)
_VERB = re.compile(r"/(events/(?P<event>.+)/)?(?P<verb>\w+)", re.DOTALL)
Handler = Callable[[Request], Awaitable[Response]]
"""Answers an authorised request: `request.bandit` and `request.key` are set."""


class Route(Struct, frozen=True):
    """A handler, bound to the operation that says which requests it gets and which key they need."""

    operation: Operation
    handler: Handler


class _Path(Struct, frozen=True):
    """The routes of one path, by method."""

    template: str
    routes: dict[str, Route] = {}

    @property
    def allow(self) -> list[tuple[bytes, bytes]]:
        """Return the header that lists the methods."""
        methods = {*self.routes, "OPTIONS", *(("HEAD",) if "GET" in self.routes else ())}
        return [(b"allow", ", ".join(sorted(methods)).encode())]


class Router:
    """Every route of a server. A path may end with a slash more than its template.

    `personalizer` is the bandit of Personalizer's paths that name none.
    """

    def __init__(self, routes: Iterable[Route], *, personalizer: str = "") -> None:
        self._personalizer = personalizer
        self._paths: dict[str, _Path] = {}
        """Paths without a bandit's name."""
        self._bandit_paths: dict[tuple[str, str], _Path] = {}
        """By the text before the bandit's name, and the text after it."""
        for route in routes:
            self._add(route)
        self._prefixes = {prefix for prefix, _ in self._bandit_paths}

    def _add(self, route: Route) -> None:
        template, method = route.operation.path, route.operation.method
        prefix, name, suffix = template.partition(BANDIT_NAME)
        if name:
            path = self._bandit_paths.setdefault((prefix, suffix), _Path(template, {}))
        else:
            path = self._paths.setdefault(template, _Path(template, {}))
        if method in path.routes:
            raise ValueError(f"{method} {template} must have one route; got two")
        path.routes[method] = route

    def find(self, request: Request) -> Route | Response:
        """Return the request's route, or the answer to OPTIONS; raise 404 and 405.

        The path's template and the bandit's name are noted in the request. HEAD has the route of GET: the connection
        leaves the body out.
        """
        path = self._find_path(request)
        if path is None:
            raise HTTPError(404, "there is nothing at this address")
        request.route = path.template
        route = path.routes.get("GET" if request.method == "HEAD" else request.method)
        if route is not None:
            return route
        if request.method == "OPTIONS":
            return Response(204, headers=path.allow)
        taken = path.allow[0][1].decode()
        raise HTTPError(405, f"this address takes {taken}; got {request.method}", headers=path.allow)

    def _find_path(self, request: Request) -> _Path | None:
        text = request.path
        if len(text) > 1 and text[-1] == "/":
            text = text[:-1]
        for prefix in self._prefixes:
            if text.startswith(prefix):
                name, slash, rest = text[len(prefix) :].partition("/")
                path = self._bandit_paths.get((prefix, slash + rest))
                if name and path is not None:
                    request.bandit = name
                    return path
        return self._find_personalizer_path(request, text) if PERSONALIZER in text else self._paths.get(text)

    def _find_personalizer_path(self, request: Request, text: str) -> _Path | None:
        """Return a path of Personalizer's; the route of a request below them is noted even where there is none."""
        found = _PERSONALIZER.fullmatch(text)
        if found is None:
            return None
        request.route, request.bandit = PERSONALIZER, found["bandit"] or self._personalizer
        asked = _VERB.fullmatch(found["rest"] or "")
        if asked is None:
            return None
        request.event = asked["event"] or ""
        event = "" if asked["event"] is None else f"events/{EVENT}/"
        return self._paths.get(f"{PERSONALIZER}/{event}{asked['verb']}")
