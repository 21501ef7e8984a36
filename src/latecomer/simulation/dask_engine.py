"""Runs on many machines: a Dask cluster as the engine of `simulate`.

A task is a few consecutive runs. It is a function of their numbers alone, so that it may be played twice, or begun on a
worker that dies and played on another: the result is the same to the last bit, given the same versions and processors.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from math import ceil
from typing import TYPE_CHECKING, Any

from latecomer import __version__
from latecomer.core.linalg.blas import one_thread
from latecomer.errors import InputError, LatecomerError
from latecomer.extras import explain_missing_package
from latecomer.simulation.simulate import Outcome, Played
from latecomer.validation import check_integer, check_positive

if TYPE_CHECKING:
    from distributed import Client

_CHUNKS_A_THREAD = 8
"""Small enough chunks that the slowest worker holds nobody up for long, and that a worker's death loses little."""
_LARGEST_CHUNK = 16
"""A chunk's regrets are in memory at once, and a chunk that was begun is finished even after Ctrl-C."""
_RETRIES = 2
"""Retries after errors that pass, such as a full disk. Dask has its own limit for deaths of workers."""

Chunk = list[tuple[int, Outcome]]


class DaskEngine:
    """The workers of a running Dask scheduler. Each needs Latecomer, of the version that is here.

    A law of one's own travels to the workers if it is defined in the script or notebook itself; one that is in a module
    needs the module there too. Where all workers are lost midway, it waits for new ones.

    Parameters
    ----------
    scheduler
        An address, such as ``"tcp://SCHEDULER:8786"``, or a `distributed.Client`.
    chunk
        Runs in a task; the result does not depend on it. By default about eight tasks for each thread of the workers.
    worker_timeout
        Seconds to wait for the first worker.
    connect_timeout
        Seconds to wait for the scheduler's answer.

    Examples
    --------
    >>> import latecomer as lc
    >>> from latecomer.simulation.dask_engine import DaskEngine
    >>> engine = DaskEngine("tcp://SCHEDULER:8786")
    >>> lc.simulate(world, policies, horizon=3000, runs=10_000, engine=engine)  # doctest: +SKIP
    """

    def __init__(
        self,
        scheduler: "str | Client",
        chunk: int | None = None,
        *,
        worker_timeout: float = 30.0,
        connect_timeout: float = 10.0,
    ) -> None:
        client_type = _import_distributed().Client
        if not isinstance(scheduler, str | client_type):
            raise InputError(f"scheduler must be an address, or a distributed.Client; got {scheduler!r}")
        if isinstance(scheduler, client_type) and scheduler.asynchronous:
            raise InputError("scheduler must be a Client that blocks; got one with asynchronous=True")
        self._scheduler = scheduler
        self._chunk = None if chunk is None else check_integer("chunk", chunk, least=1)
        self._worker_timeout = check_positive("worker_timeout", worker_timeout)
        self._connect_timeout = check_positive("connect_timeout", connect_timeout)

    def map(self, play: Callable[[int], Outcome], runs: int) -> Played:
        """Play runs 0 … runs − 1; what is not done when the iterator is closed is cancelled."""
        task = _make_task(_pickle(play), __version__)
        with self._connected() as client:
            chunk = self._chunk or _choose_chunk(runs, self._threads(client))
            firsts = list(range(0, runs, chunk))
            stops = [min(first + chunk, runs) for first in firsts]
            # Impure only in name: simulations that share no tasks can be cancelled one by one.
            waiting = set(client.map(task, firsts, stops, key="latecomer-runs", pure=False, retries=_RETRIES))
            try:
                for future in _import_distributed().as_completed(waiting, loop=client.loop):
                    yield from _take_result(future)
                    waiting.discard(future)  # so that its worker can forget it
            finally:
                client.cancel(list(waiting))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield a client, closed afterwards unless the caller gave it."""
        if not isinstance(self._scheduler, str):
            yield self._scheduler
            return
        _check_scheduler(self._scheduler, self._connect_timeout)
        connect = _import_distributed().Client
        with connect(self._scheduler, timeout=self._connect_timeout, set_as_default=False) as client:
            yield client

    def _threads(self, client: Any) -> int:
        """Return the number of runs that can be played at once."""
        try:
            client.wait_for_workers(1, timeout=self._worker_timeout)
        except TimeoutError:
            address = client.scheduler.address
            raise InputError(
                f"scheduler must have workers; {address} had none within {self._worker_timeout:g} s: start one with "
                f"`dask worker {address}`, or raise worker_timeout"
            ) from None
        return sum(client.nthreads().values())


def _choose_chunk(runs: int, threads: int) -> int:
    return min(_LARGEST_CHUNK, max(1, ceil(runs / (_CHUNKS_A_THREAD * max(1, threads)))))


def _import_distributed() -> Any:
    """Import the library, which only those with a cluster need."""
    with explain_missing_package("DaskEngine"):
        return import_module("distributed")


def _check_scheduler(address: str, timeout: float) -> None:
    """Check that a scheduler answers: a client would wait for ever on what is not one, and leave a thread behind."""
    distributed = _import_distributed()

    async def connect() -> None:
        arguments = distributed.Security().get_connection_args("client")
        comm = await asyncio.wait_for(distributed.comm.connect(address, timeout=timeout, **arguments), timeout + 1.0)
        await comm.close()

    try:
        with ThreadPoolExecutor(1) as thread:  # of its own: in a notebook, this one has a loop already
            thread.submit(asyncio.run, connect()).result()
    except Exception as error:
        raise InputError(
            "scheduler must be the address of a running Dask scheduler, such as 'tcp://SCHEDULER:8786'; "
            f"got {address!r}, where none answered: {str(error) or f'silence for {timeout:g} s'}"
        ) from error


def _pickle(play: Callable[[int], Outcome]) -> bytes:
    """Pickle the runs once, and here, where an error can be explained; the scheduler passes them on unread."""
    try:
        return bytes(import_module("cloudpickle").dumps(play))
    except Exception as error:
        raise InputError(f"world and policies must pickle, to travel to the workers; got {error!r}") from error


def _make_task(packed: bytes, version: str) -> Callable[[int, int], Chunk]:
    """Return a function that a machine without Latecomer can unpickle, and fail in.

    A worker dies of a task that it cannot unpickle.

    It is local, so it travels by value. It holds its data, because `client.map` gives large arguments one name in all
    simulations, and could take one's for another's.
    """

    def task(first: int, stop: int) -> Any:
        return import_module("latecomer.simulation.dask_engine").play_chunk(packed, version, first, stop)

    return task


def play_chunk(packed: bytes, version: str, first: int, stop: int) -> Chunk:
    """Play runs first … stop − 1, on a worker."""
    if version != __version__:
        raise InputError(f"Latecomer must be of one version everywhere; got {version}, and {__version__} on a worker")
    play = import_module("cloudpickle").loads(packed)
    return one_thread(_play_all)(play, first, stop)


def _play_all(play: Callable[[int], Outcome], first: int, stop: int) -> Chunk:
    return [(run, play(run)) for run in range(first, stop)]


def _take_result(future: Any) -> Chunk:
    distributed = _import_distributed()
    try:
        return future.result()  # type: ignore[no-any-return]
    except ImportError as error:
        raise InputError(
            f"world and policies must be importable on the workers; there, {error}: install it there too, define the "
            "law in the script itself, or see cloudpickle.register_pickle_by_value"
        ) from error
    except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
        why = error if isinstance(error, distributed.CancelledError) else f"scheduler-connection-lost, {error}"
        raise LatecomerError(
            f"the scheduler was lost, or the work cancelled, before all runs were done: {why}"
        ) from error
    except distributed.KilledWorker as error:
        raise LatecomerError(
            f"the same runs ended worker after worker: give them more memory, or choose a smaller chunk. {error}"
        ) from error
