"""Tables of a TOML file, read with errors that name the full key, the rule and what was meant."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from latecomer.errors import InputError
from latecomer.validation import suggest


def full_key(path: str, name: str) -> str:
    """Return the full key, quoted where TOML would have it so."""
    name = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
    return f"{path}.{name}" if path else name


def check_table(value: object, path: str, *, otherwise: str = "") -> dict[str, object]:
    """Return a table; the error says what should have been there."""
    if not isinstance(value, dict):
        raise InputError(f"{path} must be {otherwise or f'a table, [{path}]'}; got {value!r}", field=path)
    return value


def check_list(value: object, path: str, of: str) -> list[object]:
    """Return a list that is not empty."""
    if not isinstance(value, list) or not value:
        raise InputError(f"{path} must be a list of {of}; got {value!r}", field=path)
    return value


def check_keys(
    table: Mapping[str, object], path: str, *, of: str, needed: Collection[str], optional: Collection[str] = ()
) -> None:
    """Check that every key is known, and that none that is needed is missing."""
    known = dict.fromkeys((*needed, *optional))
    for name in table:
        if name not in known:
            keys = ", ".join(map(repr, known))
            raise InputError(
                f"{full_key(path, name)} is not a key of {of}, which has {keys}{suggest(name, known)}",
                field=full_key(path, name),
            )
    for name in needed:
        if name not in table:
            raise InputError(f"{full_key(path, name)} is missing: {of} needs it", field=full_key(path, name))


def check_key_choice(table: Mapping[str, object], path: str, name: str, choices: Collection[str]) -> str:
    """Return the word that says which kind of table it is."""
    rule, value = f"one of {', '.join(map(repr, choices))}", table.get(name)
    if value is None:
        raise InputError(f"{full_key(path, name)} is missing: it must be {rule}", field=full_key(path, name))
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"{full_key(path, name)} must be {rule}; got {value!r}{suggest(value, choices)}", field=full_key(path, name)
        )
    return value


@contextmanager
def locate_errors(path: str, names: Collection[str]) -> Iterator[None]:
    """Let an error about an argument of a constructor name the argument's full key."""
    try:
        yield
    except InputError as error:
        is_key = error.field is not None and error.field.partition("[")[0] in names
        raise InputError(f"{path}{'.' if is_key else ': '}{error}") from None
