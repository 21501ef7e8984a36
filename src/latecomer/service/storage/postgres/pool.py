"""A few connections to PostgreSQL for one event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection

from latecomer.service.storage.postgres.connection import (
    HOLD_SECONDS,
    STATEMENT_SECONDS,
    USE_SECONDS,
    connect_options,
    cut,
    session_settings,
)


class ConnectionPool:
    """Connections that are opened when they are needed, and closed after an error.

    Parameters
    ----------
    address
        The database.
    size
        The number of connections, at most.
    """

    def __init__(self, address: str, size: int) -> None:
        self._address = address
        self._free = asyncio.Semaphore(size)
        self._idle: list[AsyncConnection[Any]] = []

    @asynccontextmanager
    async def take(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Use a connection for one block; whatever leaves the block, no transaction stays open."""
        async with self._free:
            connection = self._idle.pop() if self._idle else await self._connect()
            watch = asyncio.get_running_loop().call_later(USE_SECONDS, cut, connection)
            try:
                yield connection
            except BaseException:
                await connection.close()  # PostgreSQL rolls back; where a commit was sent, its end is not known
                raise
            finally:
                watch.cancel()
            if not connection.closed:
                self._idle.append(connection)

    async def _connect(self) -> AsyncConnection[Any]:
        connection = await AsyncConnection.connect(self._address, **connect_options(self._address))
        watch = asyncio.get_running_loop().call_later(USE_SECONDS, cut, connection)
        try:
            limits = session_settings(hold=HOLD_SECONDS, statement=STATEMENT_SECONDS)
            await connection.execute(limits, prepare=False)
        except BaseException:
            await connection.close()
            raise
        finally:
            watch.cancel()
        return connection

    async def drop_idle(self) -> None:
        """Close the connections that nobody uses: after one has failed, the others may have too."""
        idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(psycopg.Error, OSError):
                await connection.close()
