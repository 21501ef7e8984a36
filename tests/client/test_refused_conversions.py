"""A conversion of a batch that the server refuses does not hold up the others."""

import asyncio
from pathlib import Path

import pytest
from servers import run_server

import latecomer as lc
from latecomer.errors import InputError


def test_the_others_of_a_batch_are_sent(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, server.client() as client:
        client.create("offers", dim=2, window=1000)
        ids = [client.decide("offers", [[0.6, 0.0], [0.0, 0.8]]).decision_id for _ in range(3)]
        batch = client.batch("offers", size=50, seconds=60)
        batch.__enter__()
        for decision_id, value in zip(ids, (1, 2, 0.5), strict=True):
            batch.convert(decision_id, value=value)
        with pytest.raises(InputError, match="value of conversion 1 must be in"):
            batch.__exit__()
        assert batch.verdicts == {lc.Verdict.ACCEPTED: 2}
        assert client.stats("offers").conversions["accepted"] == 2


def test_the_others_of_an_asynchronous_batch_are_sent(tmp_path: Path) -> None:
    async def scenario(url: str) -> None:
        async with lc.AsyncClient(url) as client:
            await client.create("offers", dim=2, window=1000)
            ids = [(await client.decide("offers", [[0.6, 0.0], [0.0, 0.8]])).decision_id for _ in range(3)]
            batch = client.batch("offers", size=50, seconds=60)
            await batch.__aenter__()
            for decision_id, value in zip(ids, (2, 1, 0.5), strict=True):
                await batch.convert(decision_id, value=value)
            with pytest.raises(InputError, match="value of conversion 0 must be in"):
                await batch.__aexit__()
            assert batch.verdicts == {lc.Verdict.ACCEPTED: 2}

    with run_server(tmp_path / "a.db") as server:
        asyncio.run(scenario(server.url))
