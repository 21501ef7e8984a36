"""Bodies as they arrive: whole, within bounds, within time; and arrays in NumPy's own file format."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.service.http.errors import Refusal, invalid
from latecomer.service.http.patience import Patience

JSON, NPY = b"application/json", b"application/x-npy"
_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1024
_AT_ONCE = 32


class Intake:
    """Reads bodies of at most `limit` bytes within `seconds`, and holds only so many half-read bytes at once."""

    def __init__(self, *, limit: int, seconds: float) -> None:
        self.limit = limit
        self._patience = Patience(seconds)
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
                raise Refusal(415, "the body must not be compressed: send it without Content-Encoding")
        if kind != JSON and kind != NPY:  # none is none of them: a page elsewhere may send that without asking
            raise Refusal(415, "Content-Type must be application/json, or application/x-npy where an array is expected")
        try:
            with self._patience:
                return await self._whole(receive, announced), kind
        except TimeoutError:
            raise Refusal(408, f"the body must arrive within {self._patience.seconds:g} s") from None

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
            raise Refusal(503, "too many large bodies are arriving at once: try again")

    def _too_large(self) -> Refusal:
        return Refusal(413, f"the body must have at most {self.limit} bytes (the setting max_body)")


def array_of(body: bytes) -> npt.NDArray[np.float64]:
    """The (K, d) doubles of an .npy file, and nothing else: no pickle, no other type, no byte too many.

    >>> file = io.BytesIO()
    >>> np.save(file, np.eye(2))
    >>> array_of(file.getvalue())
    array([[1., 0.],
           [0., 1.]])
    """
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version} is not 1.0 or 2.0")
        shape, fortran, dtype = read(file, max_header_size=_LONGEST_HEADER)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError, UnicodeDecodeError) as error:
        raise invalid(f"the body must be a file as numpy.save writes it: {str(error)[:200]}") from None
    if dtype != np.dtype("<f8") or fortran or len(shape) != 2 or min(shape) < 1:
        raise invalid(f"the array must be (K, d), of type '<f8', in C order; got {shape}, {dtype}")
    rows, columns = shape
    if len(body) - file.tell() != rows * columns * 8:
        raise invalid(f"the array must have {rows} x {columns} doubles and nothing after them")
    return np.frombuffer(body, np.float64, offset=file.tell()).reshape(shape).copy()
