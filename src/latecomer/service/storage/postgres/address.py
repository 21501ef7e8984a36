"""Addresses of databases, postgresql://…, and what of them may be shown."""

import os
import re

from latecomer.errors import InputError

_SCHEMES = ("postgresql://", "postgres://")
_SECRETS = (
    re.compile(r"(?<=://)([^:/?#@]*):.*@", re.DOTALL),  # whatever a password has in it, it ends before the last @
    re.compile(r"([?&](?:ssl)?password)=[^&]*"),
)
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOSTS = re.compile(r"^(?:(?:\[[^]]*\]|[^:,]*)(?::\d*)?(?:,|$))*$")
"""Hosts, each with a port that is a number where there is one."""


def is_address(store: str | os.PathLike[str]) -> bool:
    """Tell whether a store is a database: its path begins with postgresql://.

    >>> is_address("postgresql://shop@db/offers"), is_address("shop.db")
    (True, False)
    """
    return os.fspath(store).startswith(_SCHEMES)


def hide_secrets(address: str) -> str:
    """Return an address without its passwords, for logs and errors; a path stays as it is.

    >>> hide_secrets("postgresql://shop:se/c#r?et@db:5432/offers?sslmode=require&sslpassword=other")
    'postgresql://shop:***@db:5432/offers?sslmode=require&sslpassword=***'
    """
    if not is_address(address):
        return address
    shown = _SECRETS[0].sub(r"\1:***@", address)
    return _SECRETS[1].sub(r"\1=***", shown)


def check_address(address: str) -> None:
    """Raise `InputError` where an address could be read in two ways; libpq's own error would show parts of a password.

    >>> check_address("postgresql://shop:p%40ss@db:5432/offers?sslmode=require")
    """
    path, _, options = address.partition("://")[2].partition("?")
    authority, _, name = path.partition("/")
    user, _, host = authority.rpartition("@")
    is_clear = not (set("@#[]") & set(user) or "@" in name + options or " " in address) and user.count(":") <= 1
    if not is_clear or _STRAY_PERCENT.search(address) or not _HOSTS.match(host):
        raise InputError(
            f"the address {hide_secrets(address)} cannot be read: its port is a number, and in its user, password and "
            "options other characters than letters, digits and -._~ are written as % and two hexadecimal digits (@ as "
            "%40, / as %2F, : as %3A, % as %25)"
        )


def check_no_secret(address: str) -> str:
    """Return an address of a command line; `InputError` where it has a password, which every user of the machine sees.

    >>> check_no_secret("postgresql:///offers?host=/var/run/postgresql")
    'postgresql:///offers?host=/var/run/postgresql'
    """
    if is_address(address) and any(secret.search(address) for secret in _SECRETS):
        raise InputError(
            "a password must not stand in a command line, where every user of this machine can read it; got "
            f"{hide_secrets(address)}: give the address as LATECOMER_STORE, or the password as PGPASSWORD or in a file "
            "(?passfile=…)"
        )
    return address
