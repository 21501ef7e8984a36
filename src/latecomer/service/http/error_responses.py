"""Turns what a handler raised into a response, counts it, and logs what the operator should know."""

import os
from pathlib import Path

from latecomer import errors
from latecomer.service.http.context import AppContext
from latecomer.service.http.errors import CODES, HTTPError, encode_error
from latecomer.service.http.limited_log import LimitedLog
from latecomer.service.http.personalizer_messages import encode_personalizer_error
from latecomer.service.http.personalizer_operations import PERSONALIZER
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.InputError, 400),
    (errors.UnknownBanditError, 404),
    (errors.ConflictError, 409),
    (errors.StoreError, 503),
    (errors.FileError, 503),
)


def find_status(error: Exception) -> int:
    """Return the status of an error of ours; 500 for any other."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


class ErrorResponses:
    """Writes the error responses of one server. An unexpected error is logged and its text is not sent."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self.audit_log = LimitedLog(context.log)

    def respond(self, request: Request, error: Exception) -> Response:
        """Return the response to a request whose handling raised the error."""
        found = error if isinstance(error, HTTPError) else self._convert(request, error)
        self._context.metrics.count_error(CODES[found.status])
        headers = list(found.headers)
        if found.status in (401, 403):
            self.audit_log.warn(
                "request refused",
                status=found.status,
                key=found.key,
                method=request.method,
                route=request.route,
                address=request.client[0],
            )
        if found.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        elif found.status == 503:
            headers.append((b"retry-after", b"1"))
        encode = encode_personalizer_error if request.route.startswith(PERSONALIZER) else encode_error
        return Response(found.status, encode(found), headers=headers)

    def _convert(self, request: Request, error: Exception) -> HTTPError:
        status = find_status(error)
        if status != 500:
            field = error.field if isinstance(error, errors.InputError) else None
            return HTTPError(status, self._message(error), field=field)
        log = self._context.log
        log.error("a request failed", method=request.method, route=request.route, exc_info=error)
        return HTTPError(500, "this should not have happened; the server's log says more")

    def _message(self, error: Exception) -> str:
        """Return the error's message without the folder in which the store lies."""
        store, message = Path(self._context.settings.store), str(error)
        if isinstance(error, errors.FileError | errors.StoreError):  # the latter cites the former
            for path in (os.path.realpath(store), str(store)):
                message = message.replace(path, store.name)
        return message
