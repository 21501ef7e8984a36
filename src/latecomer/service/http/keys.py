"""API keys, kept as hashes: in one small file that a running server reads again when it changes, or in the database.

A key reads `lc_ID_SECRET`. The secret has 256 random bits, so SHA-256 hides it as well as a slow hash would.
"""

import fcntl
import hashlib
import hmac
import math
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Literal

import msgspec
from msgspec import Struct

from latecomer.atomic_write import replace_file
from latecomer.errors import DamagedFileError, FileError, InputError

Scope = Literal["decide", "convert", "read", "admin"]
SCOPES: tuple[Scope, ...] = ("decide", "convert", "read", "admin")
EVERY_BANDIT = "*"
KEY_PATTERN = re.compile(r"lc_(?P<id>[0-9a-f]{12})_")
"""The beginning of a key."""
FRESH = 0.01
"""Seconds until the file is looked at again."""


class Key(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key's record: its hash, never the key itself."""

    id: str
    hash: str
    scopes: tuple[Scope, ...]
    bandits: tuple[str, ...] = (EVERY_BANDIT,)
    note: str = ""
    created: datetime

    def allows(self, scope: str, bandit: str) -> bool:
        """Tell whether the key has the scope for a bandit; EVERY_BANDIT takes a key for every bandit."""
        return scope in self.scopes and (EVERY_BANDIT in self.bandits or bandit in self.bandits)


class Keys(ABC):
    """The keys of a server, wherever they are kept."""

    path: object
    """Where they are kept, for messages."""

    @abstractmethod
    def recent(self) -> dict[str, Key] | None:
        """Return `keys()` as of a moment ago, for a busy server."""

    @abstractmethod
    def keys(self) -> dict[str, Key] | None:
        """Return the keys by id, or None where there have never been any."""

    def find(self, presented: str) -> Key | None:
        """Return the record of a presented key, or None where it is not one of these."""
        mark, _, rest = presented.partition("_")
        id_, _, _ = rest.partition("_")
        key = (self.recent() or {}).get(id_) if mark == "lc" else None
        wanted = key.hash if key is not None else _hash("")  # an unknown id takes the same time
        matches = hmac.compare_digest(_hash(presented), wanted)
        return key if matches else None


class EditableKeys(Keys):
    """Keys that a command changes."""

    @abstractmethod
    def add_record(self, key: Key) -> None:
        """Keep a key's record."""

    @abstractmethod
    def remove_record(self, id_: str) -> Key | None:
        """Remove a key; return its record, None where there is none."""

    def add(
        self, *, scopes: Iterable[str], bandits: Iterable[str] = (EVERY_BANDIT,), note: str = ""
    ) -> tuple[str, Key]:
        """Make a key; return the key itself, which is not kept, and its record."""
        wanted = set(scopes)
        for scope in sorted(wanted - set(SCOPES)):
            raise InputError(f"a scope must be one of {', '.join(SCOPES)}; got {scope!r}")
        chosen = tuple(scope for scope in SCOPES if scope in wanted)
        if not chosen:
            raise InputError(f"a key must have a scope; got none of {', '.join(SCOPES)}")
        id_ = secrets.token_hex(6)
        presented = f"lc_{id_}_{secrets.token_hex(32)}"
        key = Key(
            id=id_,
            hash=_hash(presented),
            scopes=chosen,
            bandits=tuple(dict.fromkeys(bandits)) or (EVERY_BANDIT,),
            note=note,
            created=datetime.now(UTC).replace(microsecond=0),
        )
        self.add_record(key)
        return presented, key

    def revoke(self, id_: str) -> Key:
        """Remove a key; return its record."""
        removed = self.remove_record(id_)
        if removed is None:
            raise InputError(f"no key has the id {id_!r} in {self.path}: `latecomer keys list` shows the ids")
        return removed


class KeyFile(EditableKeys):
    """Keys in a file. A change of the file is noticed within a hundredth of a second."""

    def __init__(self, path: Path) -> None:
        self.path: Path = path
        self._version: tuple[int, int, int] | None = None
        self._keys: dict[str, Key] | None = None
        self._read_at = -math.inf

    def recent(self) -> dict[str, Key] | None:
        """Return `keys()` as of a hundredth of a second ago at most, so that a busy server seldom stats the file."""
        now = monotonic()
        if now - self._read_at > FRESH:
            self._keys = self.keys()
            self._read_at = now
        return self._keys

    def keys(self) -> dict[str, Key] | None:
        """Return the keys by id, or None where there is no file. It is read again when it has changed."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - called at every request
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FileError(f"the keys in {self.path} cannot be read: {error.strerror}") from None
        version = (status.st_mtime_ns, status.st_ino, status.st_size)
        if self._keys is None or version != self._version:
            self._keys = {key.id: key for key in self._read()}
            self._version = version
        return self._keys

    def add_record(self, key: Key) -> None:
        """Add a key to the file."""
        with self._lock_folder():
            self._write([*(self.keys() or {}).values(), key])

    def remove_record(self, id_: str) -> Key | None:
        """Remove a key from the file."""
        with self._lock_folder():
            keys = dict(self.keys() or {})
            removed = keys.pop(id_, None)
            if removed is not None:
                self._write(list(keys.values()))
        return removed

    @contextmanager
    def _lock_folder(self) -> Iterator[None]:
        """Let commands that change the file at once take turns. Locking the folder leaves no lock file behind."""
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise FileError(f"the folder of {self.path} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _read(self) -> list[Key]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=list[Key])
        except OSError as error:
            raise FileError(f"the keys in {self.path} cannot be read: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedFileError(f"{self.path} is not a file of keys: {error}; restore it from a backup") from None

    def _write(self, keys: list[Key]) -> None:
        """Write the file atomically, readable by its owner alone."""
        try:
            with replace_file(self.path, private=True) as part:
                part.write_bytes(msgspec.json.format(msgspec.json.encode(keys), indent=1) + b"\n")
        except OSError as error:
            raise FileError(f"the keys in {self.path} cannot be written: {error.strerror}") from None


def _hash(presented: str) -> str:
    return hashlib.sha256(presented.encode()).hexdigest()
