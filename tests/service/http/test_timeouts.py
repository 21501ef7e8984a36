"""One timer for many limits: who is overdue is given up, the others are left alone."""

import asyncio
import time

import pytest

from latecomer.service.http.timeouts import SharedTimeout


async def waits(timeout: SharedTimeout, seconds: float) -> str:
    with timeout:
        await asyncio.sleep(seconds)
    return "done"


def test_only_overdue_tasks_time_out() -> None:
    async def main() -> list[object]:
        timeout = SharedTimeout(0.2)
        some = [waits(timeout, seconds) for seconds in (0.0, 5.0, 0.05, 5.0, 0.1)]
        return list(await asyncio.gather(*some, return_exceptions=True))

    start = time.monotonic()
    ended = asyncio.run(main())
    assert [repr(end) for end in ended] == ["'done'", "TimeoutError()", "'done'", "TimeoutError()", "'done'"]
    assert 0.2 <= time.monotonic() - start < 2.0


def test_a_shared_timeout_works_again_after_a_pause() -> None:
    async def main() -> None:
        timeout = SharedTimeout(0.1)
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await waits(timeout, 5.0)
            assert await waits(timeout, 0.0) == "done"
            await asyncio.sleep(0.15)
            assert timeout._timer is None
        assert not timeout._deadlines
        assert not timeout._overdue

    asyncio.run(main())


def test_a_cancelled_task_does_not_time_out() -> None:
    async def main() -> None:
        timeout = SharedTimeout(0.1)
        task = asyncio.create_task(waits(timeout, 5.0))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        both = asyncio.create_task(waits(timeout, 5.0))  # overdue, and cancelled before it has heard of that
        await asyncio.sleep(0)
        timeout._deadlines[both] = 0.0
        timeout._check()
        both.cancel()
        with pytest.raises(asyncio.CancelledError):
            await both

    asyncio.run(main())


def test_an_error_within_the_timeout_is_raised_as_it_is() -> None:
    async def main() -> None:
        timeout = SharedTimeout(0.1)
        with pytest.raises(KeyError), timeout:
            raise KeyError

    asyncio.run(main())
