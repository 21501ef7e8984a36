"""One HTTP response: status, body and headers, and their bytes on the wire."""

from http import HTTPStatus

import msgspec
from msgspec import Struct

from latecomer.service.http.upgrade_offers import Headers

JSON_TYPE = b"application/json"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BODILESS = frozenset({204, 304})
_encode = msgspec.json.Encoder().encode


class Response(Struct, frozen=True):
    """The answer to a request."""

    status: int
    body: bytes = b""
    content_type: bytes = JSON_TYPE
    headers: Headers = []

    def to_bytes(self, *, date_line: bytes, keep_alive: bool, head_only: bool) -> bytes:
        r"""Return the response as it is sent.

        >>> Response(200, b"{}").to_bytes(date_line=b"", keep_alive=True, head_only=False).splitlines()[-3:]
        [b'content-length: 2', b'', b'{}']
        """
        lines = [_STATUS_LINES[self.status], date_line]
        if self.status not in _BODILESS:
            lines.append(b"content-type: %b\r\ncontent-length: %d\r\n" % (self.content_type, len(self.body)))
        for name, value in self.headers:
            lines.append(b"%b: %b\r\n" % (name, value))
        lines.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        if not head_only and self.status not in _BODILESS:
            lines.append(self.body)
        return b"".join(lines)


def json_response(content: object, status: int = 200) -> Response:
    """Encode the content as JSON."""
    return Response(status, _encode(content))
