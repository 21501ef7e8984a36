"""Waking those who wait on a loop of asyncio, from another thread."""

import asyncio
from contextlib import suppress

from latecomer.errors import StoreError


def tell(waiters: list[asyncio.Future[None]], failure: str | None) -> None:
    """Wake those who wait, each loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for waiter in waiters:
        loops.setdefault(waiter.get_loop(), []).append(waiter)
    for loop, theirs in loops.items():
        with suppress(RuntimeError):  # the loop has been closed, and nobody waits
            loop.call_soon_threadsafe(_settle, theirs, failure)


def _settle(waiters: list[asyncio.Future[None]], failure: str | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if failure is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(StoreError(failure))
