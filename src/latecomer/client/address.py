"""The address of a server."""

from urllib.parse import urlsplit

from latecomer.errors import InputError
from latecomer.validation import short_repr


def parse_url(url: str) -> str:
    """Return a server's address, with http where no scheme is given, and without the version of the interface.

    >>> parse_url("localhost:8080"), parse_url("https://example.org/bandits/v1/")
    ('http://localhost:8080', 'https://example.org/bandits')
    """
    found = url.strip() if isinstance(url, str) else ""
    found = found if "://" in found else f"http://{found}"
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"url must be an address such as http://127.0.0.1:8080; got {short_repr(url)}")
    return found.rstrip("/").removesuffix("/v1")


def redact_url(url: str) -> str:
    """Return an address without user, password and query.

    >>> redact_url("https://me:secret@example.org:8443/bandits?token=secret")
    'https://example.org:8443/bandits'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
