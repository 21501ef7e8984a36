"""The connection that the storage's SQL runs on: apsw's to a SQLite file, or `storage.postgres`'s to a database.

Statements are ordinary SQL with `?` for parameters, so that one text serves both.
"""

from collections.abc import Iterable
from typing import Any, Protocol


class SQLConnection(Protocol):
    """Runs statements; a `with` block is a transaction with one view of the data."""

    def execute(self, statements: str, bindings: Any = None, /) -> Iterable[Any]:
        """Run a statement; return its rows."""

    def __enter__(self) -> object:
        """Begin a transaction."""

    def __exit__(self, kind: Any, error: Any, traceback: Any, /) -> bool | None:
        """Commit, or roll back where an error leaves the block."""
