"""Decisions of one turn of the loop are made together, and each gets its own answer or its own error."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apps import app_context, local_store
from store_internals import sqlite_log

from latecomer.errors import ConflictError, InputError, StoreError, UnknownBanditError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.http.context import AppContext
from latecomer.service.http.decision_queue import DecisionQueue
from latecomer.service.http.errors import HTTPError, invalid
from latecomer.service.http.pending_decision import ParsedDecision
from latecomer.service.messages import DecisionAnswer

SPEC = BanditSpec(dim=2, window="7d", policy="OTFLinTS", parameters={"seed": 1})


def parse(body: bytes, _: object) -> ParsedDecision:
    if body == b"bad":
        raise invalid("a bad body")
    return ParsedDecision(np.eye(2), None, body.decode() or None)


def decide_all(context: AppContext, *sources: bytes | ParsedDecision) -> list[Any]:
    """Ask for decisions in one turn of a loop; each is counted as a request in flight."""
    queue, info = DecisionQueue(context, parse), local_store(context).info("shop")

    async def one(source: bytes | ParsedDecision) -> DecisionAnswer:
        context.metrics.in_flight += 1
        try:
            return await queue.decide(info, source)
        finally:
            context.metrics.in_flight -= 1

    async def main() -> list[Any]:
        return await asyncio.gather(*map(one, sources), return_exceptions=True)

    found = asyncio.run(main())
    assert (context.metrics.in_flight, context.metrics.waiting) == (0, 0)
    return found


def test_an_error_is_the_answer_to_its_own_request_alone(path: Path) -> None:
    with app_context(path) as context:
        local_store(context).create("shop", SPEC)
        too_long = ParsedDecision(2 * np.eye(2), None, None)
        other = ParsedDecision(np.eye(2)[:1], None, "a")
        found = decide_all(context, b"", b"bad", too_long, b"a", b"a", other, b"")
        assert [getattr(answer, "round", None) for answer in found] == [1, None, None, 2, 2, None, 3]
        assert [type(found[place]) for place in (1, 2, 5)] == [HTTPError, InputError, ConflictError]
        assert found[3] == found[4]
        assert local_store(context).health.commits == 2  # the creation, and one for all decisions


def test_a_request_that_was_cancelled_before_its_turn_is_not_decided(path: Path) -> None:
    with app_context(path) as context:
        local_store(context).create("shop", SPEC)
        queue, info = DecisionQueue(context, parse), local_store(context).info("shop")

        async def main() -> None:
            tasks = [asyncio.create_task(queue.decide(info, b"")) for _ in range(2)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            assert (await tasks[1]).round == 1
            assert tasks[0].cancelled()

        asyncio.run(main())
        assert local_store(context).stats("shop").rounds == 1


def test_a_bandit_that_was_deleted_meanwhile_is_unknown(path: Path) -> None:
    with app_context(path) as context:
        local_store(context).create("shop", SPEC)
        queue, info = DecisionQueue(context, parse), local_store(context).info("shop")

        async def main() -> None:
            asked = asyncio.create_task(queue.decide(info, b""))
            await asyncio.sleep(0)
            local_store(context).delete("shop")
            with pytest.raises(UnknownBanditError):
                await asked

        asyncio.run(main())


def test_a_commit_that_fails_is_the_answer_to_every_request_in_it(path: Path) -> None:
    with app_context(path) as context:
        local_store(context).create("shop", SPEC)
        writer: Any = sqlite_log(local_store(context)).writer
        good, writer._retry = writer._write, 0.01

        def fail(_: object) -> None:
            raise OSError("the disk is on fire")

        writer._write = fail
        found = decide_all(context, b"", b"")
        assert [type(error) for error in found] == [StoreError, StoreError]
        writer._write = good
