"""API keys: made here, shown once, kept as hashes in one small file that a running server notices.

A key reads `lc_ID_SECRET`. The secret has 256 random bits, so SHA-256 hides it as well as a slow hash would.
"""

import fcntl
import hashlib
import hmac
import math
import os
import re
import secrets
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
KEY = re.compile(r"lc_(?P<id>[0-9a-f]{12})_")
"""The beginning of what looks like a key of ours."""
FRESH = 0.01
"""Seconds for which a look at the file holds."""


class Key(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a key: never the key itself."""

    id: str
    hash: str
    scopes: tuple[Scope, ...]
    bandits: tuple[str, ...] = (EVERY_BANDIT,)
    note: str = ""
    created: datetime

    def allows(self, scope: Scope, bandit: str | None) -> bool:
        """Whether it may do that, there; what concerns no single bandit needs a key for every bandit."""
        return scope in self.scopes and (EVERY_BANDIT in self.bandits or bandit in self.bandits)


class KeyFile:
    """The keys of a server. Whatever is done to the file is noticed within a hundredth of a second."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._keys: dict[str, Key] | None = None
        self._looked = -math.inf

    def recent(self) -> dict[str, Key] | None:
        """What `keys` said, a hundredth of a second ago at most: a busy server does not look at every request."""
        now = monotonic()
        if now - self._looked > FRESH:
            self._keys = self.keys()
            self._looked = now
        return self._keys

    def keys(self) -> dict[str, Key] | None:
        """By id; none where there is no file. It is read again when it has changed: asking is a look at its dates."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - asked at every request
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FileError(f"the keys in {self.path} cannot be read: {error.strerror}") from None
        seen = (status.st_mtime_ns, status.st_ino, status.st_size)
        if self._keys is None or seen != self._seen:
            self._keys = {key.id: key for key in self._read()}
            self._seen = seen
        return self._keys

    def find(self, presented: str) -> Key | None:
        """The key that was presented, if it is one of ours."""
        mark, _, rest = presented.partition("_")
        id_, _, _ = rest.partition("_")
        key = (self.recent() or {}).get(id_) if mark == "lc" else None
        wanted = key.hash if key is not None else _hash("")  # an unknown id takes the same time
        matches = hmac.compare_digest(_hash(presented), wanted)
        return key if matches else None

    def add(
        self, *, scopes: Iterable[str], bandits: Iterable[str] = (EVERY_BANDIT,), note: str = ""
    ) -> tuple[str, Key]:
        """Make a key; the first of the two is the key itself, which is not kept."""
        asked = set(scopes)
        for scope in sorted(asked - set(SCOPES)):
            raise InputError(f"a scope must be one of {', '.join(SCOPES)}; got {scope!r}")
        chosen = tuple(scope for scope in SCOPES if scope in asked)
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
        with self._alone():
            self._write([*(self.keys() or {}).values(), key])
        return presented, key

    def revoke(self, id_: str) -> Key:
        """Forget a key, from now on."""
        with self._alone():
            keys = dict(self.keys() or {})
            if id_ not in keys:
                raise InputError(f"no key has the id {id_!r} in {self.path}: `latecomer keys list` shows the ids")
            gone = keys.pop(id_)
            self._write(list(keys.values()))
        return gone

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two commands that change the file at once take turns; they lock the folder, so nothing is left over."""
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
        """Atomically, and for the owner's eyes alone."""
        try:
            with replace_file(self.path, private=True) as part:
                part.write_bytes(msgspec.json.format(msgspec.json.encode(keys), indent=1) + b"\n")
        except OSError as error:
            raise FileError(f"the keys in {self.path} cannot be written: {error.strerror}") from None


def _hash(presented: str) -> str:
    return hashlib.sha256(presented.encode()).hexdigest()
