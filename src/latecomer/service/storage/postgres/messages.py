"""One message to PostgreSQL with several statements, and the rows of each, straight from libpq.

A cursor of psycopg's describes every column of every result and registers its socket anew for each wait: half a
millisecond a message, which would be a tenth of a commit.
"""

import asyncio
from binascii import unhexlify
from collections.abc import Callable, Iterable
from typing import Any

from psycopg import AsyncConnection, errors
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

_CONVERTERS: dict[int, Callable[[bytes], Any]] = {
    17: lambda text: unhexlify(text[2:]),  # bytea, as \x and hexadecimal digits
    20: int,  # bigint
    25: bytes.decode,  # text
}
"""By the number of a PostgreSQL type, the function that reads its text."""
_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


async def run(connection: AsyncConnection[Any], statements: Iterable[str]) -> list[list[tuple[Any, ...]]]:
    """Run statements as one message; return the rows of each. Columns are bigint, bytea or text."""
    pgconn = connection.pgconn
    pgconn.send_query("; ".join(statements).encode())
    while pgconn.flush():
        await _wait(pgconn, reading=False)
    results, failure = [], None
    while (result := await _get_result(pgconn)) is not None:
        if result.status in _FAILED:
            failure = failure or errors.error_from_result(result)
        results.append(_read_rows(result))
    if failure is not None:
        raise failure
    return results


async def roll_back(connection: AsyncConnection[Any]) -> None:
    """End a transaction without a change."""
    await run(connection, ["ROLLBACK"])


async def _get_result(pgconn: PGconn) -> PGresult | None:
    """Return the next result, None after the last."""
    while pgconn.is_busy():
        await _wait(pgconn, reading=True)
        pgconn.consume_input()
    return pgconn.get_result()


async def _wait(pgconn: PGconn, *, reading: bool) -> None:
    """Wait until the socket can be read; or, where it is full, until it can be written or read."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    number = pgconn.socket
    loop.add_reader(number, _resolve, ready)
    if not reading:
        loop.add_writer(number, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_reader(number)
        if not reading:
            loop.remove_writer(number)
            pgconn.consume_input()


def _resolve(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


def _read_rows(result: PGresult) -> list[tuple[Any, ...]]:
    if result.status != ExecStatus.TUPLES_OK or not result.ntuples:
        return []
    converters = [_CONVERTERS[result.ftype(column)] for column in range(result.nfields)]
    return [
        tuple(convert(result.get_value(row, column) or b"") for column, convert in enumerate(converters))
        for row in range(result.ntuples)
    ]
