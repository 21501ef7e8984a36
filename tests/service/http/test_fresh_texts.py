"""Texts are made once for all who ask at the same time, and again once they are old; an error is not kept."""

import asyncio

import pytest

from latecomer.service.http.fresh_texts import FreshTexts


def test_text_is_shared_kept_by_its_cost_and_made_again() -> None:
    now: list[float] = [100.0]
    made: list[float] = []

    async def run() -> None:
        texts = FreshTexts(clock=lambda: now[0])

        async def make() -> tuple[str, float]:
            await asyncio.sleep(0)
            made.append(now[0])
            return f"text {len(made)}", 0.03

        assert await asyncio.gather(*(texts.get("a", make) for _ in range(5))) == ["text 1"] * 5
        now[0] += 1.4  # it took 0.03 s of the processor: it is kept for 1.5 s
        assert await texts.get("a", make) == "text 1"
        assert await texts.get("b", make) == "text 2"
        now[0] += 0.2
        assert await texts.get("a", make) == "text 3"

    asyncio.run(run())
    assert len(made) == 3


def test_an_error_goes_to_who_asked_and_is_not_kept() -> None:
    async def run() -> None:
        texts = FreshTexts()

        async def fail() -> tuple[str, float]:
            raise ValueError("not now")

        async def make() -> tuple[str, float]:
            return "text", 0.0

        with pytest.raises(ValueError, match="not now"):
            await texts.get("a", fail)
        await asyncio.sleep(0)
        assert await texts.get("a", make) == "text"

    asyncio.run(run())
