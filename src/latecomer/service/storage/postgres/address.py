"""Addresses of databases, postgresql://…, and what of them may be shown."""

import os
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from latecomer.errors import InputError

_SCHEMES = ("postgresql://", "postgres://")
_SECRETS = {"password", "sslpassword"}
_HIDDEN = "***"


def is_address(store: str | os.PathLike[str]) -> bool:
    """Tell whether a store is a database: its path begins with postgresql://.

    >>> is_address("postgresql://shop@db/offers"), is_address("shop.db")
    (True, False)
    """
    return os.fspath(store).startswith(_SCHEMES)


def hide_secrets(address: str) -> str:
    """Return an address without its passwords, for logs and errors; a path stays as it is.

    >>> hide_secrets("postgresql://shop:secret@db:5432/offers?sslmode=require&sslpassword=other")
    'postgresql://shop:***@db:5432/offers?sslmode=require&sslpassword=***'
    """
    if not is_address(address):
        return address
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    shown = f"{name}{colon}{_HIDDEN if colon else ''}{at}{host}"
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode([(key, _HIDDEN if key in _SECRETS else value) for key, value in pairs], safe="*/")
    return urlunsplit((parts.scheme, shown, parts.path, query, ""))


def check_no_secret(address: str) -> str:
    """Return an address of a command line; `InputError` where it has a password, which every user of the machine sees.

    >>> check_no_secret("postgresql://shop@db/offers")
    'postgresql://shop@db/offers'
    """
    if is_address(address) and hide_secrets(address) != address:
        raise InputError(
            "a password must not stand in a command line, where every user of this machine can read it; got "
            f"{hide_secrets(address)}: give the address as LATECOMER_STORE, or the password as PGPASSWORD or in a file "
            "(?passfile=…)"
        )
    return address
