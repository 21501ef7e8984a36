"""Slow work in a thread of its own."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def run_in_daemon_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the function in a thread that does not hold up the end of the process: compiling can take half a minute."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def set_outcome(result: R | None, error: BaseException | None) -> None:
        if future.done():  # the caller was cancelled
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = function(*args, **kwargs)
        except BaseException as caught:  # noqa: BLE001 - it is raised in the caller
            error = caught
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(set_outcome, result, error)

    Thread(target=work, name="latecomer-daemon", daemon=True).start()
    return await future
