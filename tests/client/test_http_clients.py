"""The clients: every call, retries that are one decision, batches, and errors as errors."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from lossy_proxy import LossyProxy
from servers import Server, run_server, wait_until

import latecomer as lc
from latecomer.client.protocol import extend_delay
from latecomer.errors import ConflictError, InputError, ServiceError, UnknownBanditError
from latecomer.service.http.keys import KeyFile
from latecomer.service.messages import Conversion

ROWS = [[0.6, 0.0], [0.0, 0.8]]
LIMIT = 60.0
"""Seconds for an answer: the clients' own limit, 10, may pass where many processes share a machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(tmp_path_factory.mktemp("clients") / "a.db") as server:
        yield server


def test_every_call_of_the_client(server: Server) -> None:
    with server.client() as client:
        info = client.create("sync", dim=2, window=timedelta(days=7), policy="OTFLinUCB", parameters={"ridge": 2.0})
        assert info == client.info("sync") == client.bandits()[0]
        assert (info.window, info.policy) == ("604800s", "OTFLinUCB")
        first = client.decide("sync", ROWS, ids=["x", "y"], request_id="one")
        assert client.decide("sync", ROWS, ids=["x", "y"], request_id="one") == first
        assert first.action_id in ("x", "y")
        array = client.decide("sync", np.array(ROWS))
        named = client.decide("sync", np.array(ROWS), ids=["x", "y"])
        wide = client.create("wide", dim=5, window=100, features={"price": {"scale": 50}})
        chosen = client.decide_features(
            "wide", {"book": {"price": 12}, "lamp": {"price": 40}}, context={"country": "NO"}
        )
        assert chosen.action_id in ("book", "lamp")
        assert client.delete("wide") == wide
        now = datetime.now(UTC)
        assert client.convert("sync", first.decision_id, value=0.5, occurred_at=now) is lc.Verdict.ACCEPTED
        reports = [Conversion(answer.decision_id) for answer in (first, array, named)]
        assert client.convert_many("sync", reports) == [lc.Verdict.DUPLICATE, lc.Verdict.ACCEPTED, lc.Verdict.ACCEPTED]
        assert client.revoke("sync", first.decision_id) is lc.Verdict.ACCEPTED
        client.freeze("sync")
        assert client.stats("sync").frozen
        client.unfreeze("sync")
        stats = client.stats("sync")
        assert not stats.frozen
        assert (stats.rounds, stats.conversions["accepted"], stats.revocations["accepted"]) == (3, 3, 1)
        assert client.delete("sync") == info
        assert client.bandits() == []


def test_every_call_of_the_async_client(server: Server) -> None:
    async def calls() -> None:
        async with lc.AsyncClient(server.url, timeout=LIMIT) as client:
            info = await client.create("async", dim=2, window=100)
            assert info == await client.info("async") == (await client.bandits())[0]
            answers = await asyncio.gather(*(client.decide("async", np.array(ROWS)) for _ in range(20)))
            assert sorted(answer.round for answer in answers) == list(range(1, 21))
            await client.create("wide", dim=5, window=100, features={"price": {"scale": 50}})
            chosen = await client.decide_features("wide", {"book": {"price": 12}})
            assert chosen.action_id == "book"
            await client.delete("wide")
            assert await client.convert("async", answers[0].decision_id) is lc.Verdict.ACCEPTED
            assert await client.revoke("async", answers[0].decision_id) is lc.Verdict.ACCEPTED
            async with client.batch("async", size=7, seconds=0.05) as batch:
                for answer in answers:
                    await batch.convert(answer.decision_id)
                end = time.monotonic() + LIMIT
                while batch.verdicts.total() < 20 and time.monotonic() < end:  # what is left over goes by itself
                    await asyncio.sleep(0.01)
                assert batch.verdicts.total() == 20
            assert batch.verdicts == {lc.Verdict.ACCEPTED: 19, lc.Verdict.DUPLICATE: 1}
            assert (await client.stats("async")).rounds == 20
            with pytest.raises(UnknownBanditError):
                await client.decide("none", ROWS)
            await client.delete("async")

    asyncio.run(calls())


@pytest.mark.parametrize("count", [10_002, pytest.param(25_000, marks=pytest.mark.soak)])
def test_conversions_beyond_the_limit_are_sent_in_several_requests(server: Server, count: int) -> None:
    """A request has at most 10,000."""
    with server.client() as client:
        client.create("many", dim=2, window=100)
        verdicts = client.convert_many("many", (Conversion("none") for _ in range(count)))
        assert verdicts == [lc.Verdict.UNKNOWN] * count
        client.delete("many")


def test_a_batch_is_sent_when_full_after_its_interval_and_at_the_end(server: Server) -> None:
    with server.client() as client:
        client.create("batched", dim=2, window=1000)
        ids = [client.decide("batched", ROWS).decision_id for _ in range(12)]

        def accepted() -> int:
            return client.stats("batched").conversions["accepted"]

        with client.batch("batched", size=100, seconds=0.2) as batch:
            batch.convert(ids[0])
            assert wait_until(lambda: accepted() == 1)
        assert batch.verdicts == {lc.Verdict.ACCEPTED: 1}
        with client.batch("batched", size=5, seconds=LIMIT) as batch:
            for decision_id in ids[1:6]:
                batch.convert(decision_id)
            assert accepted() == 6
            batch.convert(ids[6], value=0.25)
            assert accepted() == 6
            with pytest.raises(InputError, match="value must be"):
                batch.convert(ids[7], value=-2)
        assert accepted() == 7
        assert batch.verdicts == {lc.Verdict.ACCEPTED: 6}
        with pytest.raises(InputError, match="size must be at least 1"):
            client.batch("batched", size=0)
        client.delete("batched")


def test_a_lost_answer_is_retried_and_decided_once(server: Server) -> None:
    with server.client() as client:
        client.create("lossy", dim=2, window=1000)
    proxy = LossyProxy(server.port, loses={1, 2, 3, 6, 9})
    try:
        with lc.Client(proxy.url, retries=5, timeout=LIMIT) as client:
            answers = [client.decide("lossy", ROWS) for _ in range(6)]
            assert [answer.round for answer in answers] == [1, 2, 3, 4, 5, 6]
            verdict = client.convert("lossy", answers[0].decision_id)
            assert verdict in (lc.Verdict.ACCEPTED, lc.Verdict.DUPLICATE)
        assert proxy.lost == 5
        with lc.Client(proxy.url, retries=5, timeout=LIMIT) as client:
            stats = client.stats("lossy")
            assert (stats.rounds, stats.conversions["accepted"]) == (6, 1)
    finally:
        proxy.close()


def test_a_retried_deletion_that_finds_nothing_succeeds(server: Server) -> None:
    with server.client() as client:
        client.create("short-lived", dim=2, window=1000)
    proxy = LossyProxy(server.port, loses={0})
    try:
        with lc.Client(proxy.url, timeout=LIMIT) as client:
            assert client.delete("short-lived") is None
            with pytest.raises(UnknownBanditError):
                client.delete("short-lived")
    finally:
        proxy.close()


def test_retry_after_delays_the_next_try() -> None:
    """Fifteen seconds are too long to wait; a second is not."""
    waits = [
        extend_delay(0.1, headers)
        for headers in ({}, {"retry-after": "1"}, {"retry-after": "15"}, {"retry-after": "x"})
    ]
    assert waits == [0.1, 1.0, 5.0, 0.1]


def test_error_answers_are_raised_as_their_errors(server: Server) -> None:
    with server.client() as client:
        client.create("strict", dim=2, window=1000)
        with pytest.raises(UnknownBanditError, match="there is no bandit 'none'"):
            client.stats("none")
        with pytest.raises(ConflictError, match="another specification"):
            client.create("strict", dim=2, window=5)
        with pytest.raises(InputError, match=r"^actions must have 2 columns, one per dimension; row 0 has 1$"):
            client.decide("strict", [[0.1]])
        with pytest.raises(InputError, match="whole seconds"):
            client.create("odd", dim=2, window=timedelta(milliseconds=1500))
        client.delete("strict")
    with (
        lc.Client("http://127.0.0.1:9", retries=1) as client,
        pytest.raises(ServiceError, match=r"refused; is the server running\?"),
    ):
        client.bandits()


WRONG_ID = "^decision_id must be a text, as it was given, or the answer that has it; got 5$"


def test_an_answer_is_accepted_in_place_of_its_decision_id(server: Server) -> None:
    wrong: Any = 5
    with server.client() as client:
        client.create("named", dim=2, window=1000)
        first, second = client.decide("named", ROWS), client.decide("named", ROWS)
        assert client.convert("named", first) is lc.Verdict.ACCEPTED
        assert client.revoke("named", first) is lc.Verdict.ACCEPTED
        with client.batch("named") as batch:
            batch.convert(second)
            with pytest.raises(InputError, match=WRONG_ID):
                batch.convert(wrong)
        assert batch.verdicts == {lc.Verdict.ACCEPTED: 1}
        for call in (client.convert, client.revoke):
            with pytest.raises(InputError, match=WRONG_ID):
                call("named", wrong)
        with pytest.raises(InputError, match=WRONG_ID):
            client.convert_many("named", [Conversion(wrong)])
        third: Any = client.decide("named", ROWS)
        assert client.convert_many("named", [Conversion(third)]) == [lc.Verdict.ACCEPTED]

    async def awaited() -> None:
        async with lc.AsyncClient(server.url, timeout=LIMIT) as client:
            first, second = [await client.decide("named", ROWS) for _ in range(2)]
            assert await client.convert("named", first) is lc.Verdict.ACCEPTED
            assert await client.revoke("named", first) is lc.Verdict.ACCEPTED
            async with client.batch("named") as batch:
                await batch.convert(second)
                with pytest.raises(InputError, match=WRONG_ID):
                    await batch.convert(wrong)
            assert batch.verdicts == {lc.Verdict.ACCEPTED: 1}
            for call in (client.convert, client.revoke):
                with pytest.raises(InputError, match=WRONG_ID):
                    await call("named", wrong)
            await client.delete("named")

    asyncio.run(awaited())


def test_the_repr_of_a_client_has_no_secret() -> None:
    with lc.Client("https://me:secret@127.0.0.1:9/far?token=secret", key="secret", retries=0) as client:
        assert repr(client) == "Client('https://127.0.0.1:9/far')"
        with pytest.raises(ServiceError, match=r"^https://127.0.0.1:9/far does not answer") as raised:
            client.bandits()
        assert "secret" not in str(raised.value)
    assert repr(lc.AsyncClient("localhost:9", key="secret")) == "AsyncClient('http://localhost:9')"


def test_the_client_sends_its_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = tmp_path_factory.mktemp("keyed") / "a.db"
    key, _ = KeyFile(store.with_name("a.db.keys")).add(scopes=["read"])
    with run_server(store) as server:
        with server.client(key=key) as client:
            assert client.bandits() == []
            with pytest.raises(ServiceError, match="may not do that"):
                client.create("b", dim=2, window=1)
            assert key not in repr(client)
        with server.client(retries=0) as client, pytest.raises(ServiceError, match="a valid key is needed"):
            client.bandits()


def test_a_url_without_a_scheme_is_http(server: Server) -> None:
    with server.client() as client:
        every = client.bandits()
    for url in (f"localhost:{server.port}", f"http://localhost:{server.port}/v1", f"localhost:{server.port}/v1/"):
        with lc.Client(url, timeout=LIMIT) as client:
            assert client.bandits() == every

    async def awaited() -> None:
        async with lc.AsyncClient(f"127.0.0.1:{server.port}", timeout=LIMIT) as client:
            assert await client.bandits() == every

    asyncio.run(awaited())


@pytest.mark.parametrize("url", ["", "ftp://localhost", "http://", "://x", None, 8080])
def test_a_bad_url_is_refused(url: Any) -> None:
    for client in (lc.Client, lc.AsyncClient):
        with pytest.raises(InputError, match=r"^url must be an address such as http://127.0.0.1:8080; got "):
            client(url)
