"""Reads the bodies of requests: whole, within the limit of bytes and of time."""

import asyncio
from typing import Any

import msgspec

from latecomer.service.http.errors import MALFORMED, HTTPError, explain_malformed, invalid
from latecomer.service.http.request import Request
from latecomer.service.http.timeouts import SharedTimeout

JSON, NPY = b"application/json", b"application/x-npy"
LARGE_BODY = 1 << 15
"""Bytes of a body from which it is decoded in a thread, so that other requests need not wait."""
_MAX_LISTS = 100_000
_PARTIAL_BODIES = 32


class BodyReader:
    """Reads bodies of at most `limit` bytes within `seconds`.

    The bytes of all bodies that have arrived in part are at most 32 times the limit.
    """

    def __init__(self, *, limit: int, seconds: float) -> None:
        self.limit = limit
        self._timeout = SharedTimeout(seconds)
        self._partial_bytes, self._max_partial_bytes = 0, _PARTIAL_BODIES * limit

    async def read(self, request: Request) -> tuple[bytes, bytes]:
        """Return the body and its content type. A body whose announced length is too large is refused unread."""
        kind, announced = b"", -1
        for name, value in request.headers:
            if name == b"content-length":
                announced = int(value)
                if announced > self.limit:
                    raise self._too_large()
            elif name == b"content-type":
                kind = value.partition(b";")[0].strip().lower()
            elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                raise HTTPError(415, "the body must not be compressed: send it without Content-Encoding")
        if kind != JSON and kind != NPY:  # a missing type too: a page of another site may send that without preflight
            raise HTTPError(
                415, "Content-Type must be application/json, or application/x-npy where an array is expected"
            )
        if request.is_whole:
            return self._check(request, request.take()), kind
        try:
            with self._timeout:
                return await self._collect(request, announced), kind
        except TimeoutError:
            raise HTTPError(408, f"the body must arrive within {self._timeout.seconds:g} s") from None

    async def read_json(self, request: Request, decoder: "msgspec.json.Decoder[Any]") -> Any:
        """Return the body, which must be JSON of the decoder's type."""
        body, kind = await self.read(request)
        if kind != JSON:
            raise HTTPError(415, "Content-Type must be application/json here")
        if len(body) > LARGE_BODY:
            return await asyncio.to_thread(decode_json, body, decoder)
        return decode_json(body, decoder)

    async def _collect(self, request: Request, announced: int) -> bytes:
        await request.wait()
        body = request.take()
        if request.is_whole or len(body) == announced:  # at the announced length nothing but its end is to come
            return self._check(request, body)
        parts, size = [body], len(body)
        self._partial_bytes += size
        try:
            while not (request.is_whole or request.is_broken):
                self._check_partial(size)
                await request.wait()
                parts.append(part := request.take())
                size += len(part)
                self._partial_bytes += len(part)
        finally:
            self._partial_bytes -= size
        return self._check(request, b"".join(parts))

    def _check(self, request: Request, body: bytes) -> bytes:
        if request.is_broken and not request.is_whole:
            raise invalid("the body ended early")
        if len(body) > self.limit:
            raise self._too_large()
        return body

    def _check_partial(self, size: int) -> None:
        if size > self.limit:
            raise self._too_large()
        if self._partial_bytes > self._max_partial_bytes:
            raise HTTPError(503, "too many large bodies are arriving at once: try again")

    def _too_large(self) -> HTTPError:
        return HTTPError(413, f"the body must have at most {self.limit} bytes (the setting max_body)")


def has_too_many_lists(body: bytes) -> bool:
    """Tell whether a body is refused for its lists: empty ones take twenty times their text's memory."""
    return len(body) > _MAX_LISTS and body.count(b"[") > _MAX_LISTS


def decode_json(body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """Decode the body as the decoder's type; an error names the place."""
    if has_too_many_lists(body):
        raise invalid(f"the body must have at most {_MAX_LISTS} lists")
    try:
        return decoder.decode(body)
    except MALFORMED as error:
        raise explain_malformed(error, decoder.type) from None
