"""The stand-in for SQLite's index of request ids: on PostgreSQL, that is a table."""

from latecomer.service.bandit.request_id_index import RequestIndex


class NoRequestIndex(RequestIndex):
    """Stands for the index of request ids, which on PostgreSQL is a table."""

    def __init__(self, rounds: int = 0) -> None:
        super().__init__()
        self._rounds = rounds

    @property
    def indexed(self) -> int:
        """The last round whose request is in the table: a copy in a SQLite file makes its own index."""
        return self._rounds

    def update(self, digests: list[bytes], rounds: list[int]) -> None:
        """Do nothing: they are in the table."""


def open_no_index(bandit: int, *, at_least: int) -> RequestIndex:
    """Return the stand-in for the index of request ids."""
    return NoRequestIndex(at_least)
