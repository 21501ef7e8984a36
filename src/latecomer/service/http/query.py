"""What stands behind the question mark of an address."""

from typing import Any
from urllib.parse import parse_qs

from latecomer.service.http.errors import invalid

_MOST = 10


def query_param(scope: Any, field: str) -> str | None:
    """The value of a field, or None where it is not there; refused where it is there twice, or is no text."""
    text: str = scope["query_string"].decode("latin-1")
    if not text:
        return None
    try:
        values = parse_qs(text, keep_blank_values=True, max_num_fields=_MOST, errors="strict").get(field, [])
    except UnicodeDecodeError:
        raise invalid("the query must be UTF-8, percent-encoded") from None
    except ValueError:
        raise invalid(f"the query must have at most {_MOST} fields") from None
    if len(values) > 1:
        raise invalid(f"{field} must be there once; got {len(values)} of it", field)
    return values[0] if values else None
