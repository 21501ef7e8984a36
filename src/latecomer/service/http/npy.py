"""Parses arrays in NumPy's file format without evaluating anything: a header of three fields, then the numbers.

NumPy's own reader passes the header to Python's parser, which a hostile one can make recurse, warn, or raise any
error. Here the header is matched against the few forms that it may have, and is read in one pass.
"""

import re

import numpy as np
import numpy.typing as npt

from latecomer.service.http.errors import HTTPError, invalid

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {b"\x01\x00": 2, b"\x02\x00": 4}
"""By version, the bytes of the header's length."""
_LONGEST_HEADER = 1024
_FIELD = re.compile(
    rb"""[ \t]* (['"]) (descr|fortran_order|shape) \1 [ \t]* : [ \t]*  # its name
         ( (['"]) [^'"\\]* \4 | True | False | \( [0-9, \t]* \) )  # its value: a text, a truth value, or numbers
         [ \t]* (?: , | \Z )""",
    re.VERBOSE,
)
_SHAPE = re.compile(rb"\([ \t]*([1-9][0-9]{0,9})[ \t]*,[ \t]*([1-9][0-9]{0,9})[ \t]*,?[ \t]*\)")
_SPACE = b" \t"
_DOUBLES = (b"'<f8'", b'"<f8"')


def parse_npy(body: bytes) -> npt.NDArray[np.float64]:
    """Read the (K, d) doubles of an .npy file, and nothing else: no pickle, no other type, no byte too many.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.eye(2))
    >>> parse_npy(file.getvalue())
    array([[1., 0.],
           [0., 1.]])
    """
    header, data = _split(body)
    fields = _fields(header)
    shape = _SHAPE.fullmatch(fields[b"shape"])
    if fields[b"descr"] not in _DOUBLES or fields[b"fortran_order"] != b"False" or shape is None:
        found = ", ".join(f"{name.decode()} {_excerpt(value)}" for name, value in sorted(fields.items()))
        raise invalid(
            f"the array must be (K, d), of type '<f8', in C order; got {found}: "
            "save numpy.ascontiguousarray(actions, '<f8')"
        )
    rows, columns = int(shape[1]), int(shape[2])
    if len(data) != rows * columns * 8:
        raise invalid(f"the array must have {rows} x {columns} doubles and nothing after them; got {len(data)} bytes")
    return np.frombuffer(data, "<f8").reshape(rows, columns).astype(np.float64)


def _split(body: bytes) -> tuple[bytes, memoryview]:
    """Return the header's text, and the bytes after it."""
    width = _LENGTH_BYTES.get(body[6:8])
    if body[:6] != _MAGIC or width is None:
        raise _make_error("it does not begin as one of version 1.0 or 2.0 does")
    start = 8 + width
    length = int.from_bytes(body[8:start], "little")
    if length > _LONGEST_HEADER or len(body) < start + length:
        raise _make_error(f"its header must be whole, and of at most {_LONGEST_HEADER} bytes; it claims {length}")
    return body[start : start + length], memoryview(body)[start + length :]


def _fields(header: bytes) -> dict[bytes, bytes]:
    """Return the three fields of a header, each as it is written."""
    text = header.removesuffix(b"\n").strip(_SPACE)
    if text[:1] != b"{" or text[-1:] != b"}":
        raise _make_error(f"its header must be a dictionary; got {_excerpt(header)}")
    inside, place = text[1:-1].rstrip(_SPACE), 0
    fields: dict[bytes, bytes] = {}
    while place < len(inside):
        field = _FIELD.match(inside, place)
        if field is None or field[2] in fields:
            raise _make_error(f"its header has something else than its three fields at {_excerpt(inside[place:])}")
        fields[field[2]] = field[3]
        place = field.end()
    if len(fields) < 3:
        raise _make_error("its header must have descr, fortran_order and shape")
    return fields


def _make_error(why: str) -> HTTPError:
    return invalid(f"the body must be a file as numpy.save writes it: {why}")


def _excerpt(text: bytes) -> str:
    return repr(text[:60])[1:]
