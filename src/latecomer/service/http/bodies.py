"""Bodies as they arrive: whole, within bounds, within time."""

from typing import Any

from latecomer.service.http.errors import HTTPError, invalid
from latecomer.service.http.timeouts import SharedTimeout

JSON, NPY = b"application/json", b"application/x-npy"
_AT_ONCE = 32


class BodyReader:
    """Reads bodies of at most `limit` bytes within `seconds`, and holds only so many half-read bytes at once."""

    def __init__(self, *, limit: int, seconds: float) -> None:
        self.limit = limit
        self._patience = SharedTimeout(seconds)
        self._held, self._most = 0, _AT_ONCE * limit

    async def read(self, scope: Any, receive: Any) -> tuple[bytes, bytes]:
        """The body and its content type. What is announced as too long is refused before it is read."""
        kind, announced = b"", -1
        for name, value in scope["headers"]:
            if name == b"content-length":
                announced = int(value)
                if announced > self.limit:
                    raise self._too_large()
            elif name == b"content-type":
                kind = value.partition(b";")[0].strip().lower()
            elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                raise HTTPError(415, "the body must not be compressed: send it without Content-Encoding")
        if kind != JSON and kind != NPY:  # none is none of them: a page elsewhere may send that without asking
            raise HTTPError(
                415, "Content-Type must be application/json, or application/x-npy where an array is expected"
            )
        try:
            with self._patience:
                return await self._whole(receive, announced), kind
        except TimeoutError:
            raise HTTPError(408, f"the body must arrive within {self._patience.seconds:g} s") from None

    async def _whole(self, receive: Any, announced: int) -> bytes:
        message = await receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            return self._checked(message, body)
        if len(body) == announced:  # all of it: what is still to come is only the news that it ends
            return body
        parts, size = [body], len(body)
        self._held += size
        try:
            while message.get("more_body", False):
                self._refuse_excess(size)
                message = await receive()
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                self._held += len(part)
        finally:
            self._held -= size
        return self._checked(message, b"".join(parts))

    def _checked(self, message: dict[str, Any], body: bytes) -> bytes:
        if message["type"] == "http.disconnect":
            raise invalid("the body ended early")
        if len(body) > self.limit:
            raise self._too_large()
        return body

    def _refuse_excess(self, size: int) -> None:
        if size > self.limit:
            raise self._too_large()
        if self._held > self._most:
            raise HTTPError(503, "too many large bodies are arriving at once: try again")

    def _too_large(self) -> HTTPError:
        return HTTPError(413, f"the body must have at most {self.limit} bytes (the setting max_body)")
