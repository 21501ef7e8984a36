"""Reads the query of a request's URL."""

from urllib.parse import parse_qs

from latecomer.service.http.errors import invalid
from latecomer.service.http.operations import Operation
from latecomer.service.http.request import Request
from latecomer.validation import short_repr

_MAX_PARAMS = 10


def query_param(request: Request, name: str) -> str | None:
    """Return a parameter's value, or None where it is not there; refuse one that is there twice, or is not UTF-8."""
    values = _parse(request).get(name, [])
    if len(values) > 1:
        raise invalid(f"{name} must be there once; got {len(values)} of it", name)
    return values[0] if values else None


def check_query(request: Request, operation: Operation) -> None:
    """Refuse parameters that the operation does not have."""
    unknown = sorted(set(_parse(request)) - set(operation.query))
    if unknown:
        known = " and ".join(operation.query)
        raise invalid(f"the query may have {known}; got {short_repr(unknown[0])}")


def _parse(request: Request) -> dict[str, list[str]]:
    if not request.query:
        return {}
    text = request.query.decode("latin-1")
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=_MAX_PARAMS, errors="strict")
    except UnicodeDecodeError:
        raise invalid("the query must be UTF-8, percent-encoded") from None
    except ValueError:
        raise invalid(f"the query must have at most {_MAX_PARAMS} fields") from None
