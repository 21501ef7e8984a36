"""Runs a server: from its settings to its end, on one loop, beside which long batches are decided."""

import asyncio
import gc
import ipaddress
import resource
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from latecomer.errors import InputError, StoreError
from latecomer.extras import require_packages
from latecomer.service.http.app import App
from latecomer.service.http.auth import Authenticator, make_shared_authenticator, open_authenticator
from latecomer.service.http.body_reader import BodyReader
from latecomer.service.http.context import AppContext
from latecomer.service.http.keys import KeyFile
from latecomer.service.http.listener import Listener, bind_listener
from latecomer.service.http.logging_setup import Log
from latecomer.service.http.metrics import Metrics
from latecomer.service.http.router import Route
from latecomer.service.http.settings import Settings
from latecomer.service.http.store_access import LocalAccess, ReplicatedAccess, StoreAccess
from latecomer.service.http.tracing import Tracing, find_tracing
from latecomer.service.storage.postgres.address import hide_secrets, is_address
from latecomer.service.storage.private_files import is_open_to_others
from latecomer.service.store import Store

if TYPE_CHECKING:
    from latecomer.service.replicated_store import ReplicatedStore

_CANCEL_SECONDS = 1.0
"""Seconds for the answers of requests that were cancelled."""
_CLOCK_TOLERANCE = 60.0
"""Seconds that the store's time may differ from the machine's without a warning."""
_OTHER_FILES = 64
"""Open files besides the connections: the store, its copies, the loop's own."""
_COLLECT_AFTER = 10_000
"""Objects that are made and kept between two collections of garbage."""
ExtraRoutes = Callable[[AppContext], Sequence[Route]]


async def serve(settings: Settings, log: Log, *, extra: ExtraRoutes = lambda _: ()) -> None:
    """Open the store, answer until SIGTERM, SIGINT or SIGHUP, finish the requests in flight, and close the store.

    `extra` makes routes beyond those of the API, for benchmarks and tests.
    """
    is_local = is_loopback(settings.host)
    required = settings.require_keys or not is_local
    if not is_address(settings.store):
        _check_keys(settings, required=required, is_local=is_local)
    async with AsyncExitStack() as stack:
        stack.enter_context(_few_collections())
        # Before the store, so that a second server does not touch it.
        bound = stack.enter_context(bind_listener(settings.host, settings.port))
        store = await stack.enter_async_context(_open_store(settings))
        metrics, stop = Metrics(store), asyncio.Event()
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set)
        store.listen(on_commit=metrics.observe_commit, on_trouble=partial(_log_failure, log), on_death=end)
        _log_state(store, settings, log)
        tracing = find_tracing()
        authenticator, access = _connect(store, settings, log, metrics, tracing, required=required)
        context = AppContext(
            store=store,
            access=access,
            settings=settings,
            authenticator=authenticator,
            body_reader=BodyReader(limit=settings.max_body, seconds=settings.body_timeout),
            metrics=metrics,
            log=log,
            tracing=tracing,
        )
        if not is_address(settings.store):
            for path in filter(is_open_to_others, (Path(settings.store), settings.keys_file)):
                log.warning("a file can be read by others than its owner: chmod 600", path=str(path))
        app = App(context, extra=extra(context))
        gc.freeze()  # what a server starts with, it keeps
        _raise_file_limit(settings.max_connections + _OTHER_FILES)
        listener = Listener(bound, settings, app, log, count_error=metrics.count_error)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as under `nohup`
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        listener.start()
        log.info(
            "serving",
            host=settings.host,
            port=listener.address[1],
            store=hide_secrets(settings.store),
            retention=store.settings.retention,
            keys=authenticator.has_keys(),
        )
        preloading = asyncio.create_task(asyncio.to_thread(import_module, "scipy.special"))  # for looks at delays
        watching = asyncio.create_task(context.authenticator.watch())
        await stop.wait()
        log.info("draining")
        await _drain(listener, app, log, settings.drain_timeout)
        watching.cancel()
        preloading.cancel()
        app.close()
        fault = store.fault
    log.info("stopped")
    if fault:
        raise StoreError(f"the server ends, and should be started again: {fault}")


def _check_keys(settings: Settings, *, required: bool, is_local: bool) -> None:
    """Raise `InputError` where keys are required and there are none."""
    if required and not KeyFile(settings.keys_file).keys():
        rule = "host must be a loopback address" if not is_local else "require_keys must be false"
        given = settings.host if not is_local else settings.require_keys
        raise InputError(
            f"{rule} as long as there are no keys; got {given!r}: "
            f"make one with `latecomer keys add --scope admin --keys {settings.keys_file}`"
        )


@asynccontextmanager
async def _open_store(settings: Settings) -> "AsyncIterator[Store | ReplicatedStore]":
    """Open the store of the settings, a file or a database; close it at the end."""
    every, retention = settings.snapshot_every, settings.retention or None
    if is_address(settings.store):
        require_packages("a store on PostgreSQL", "psycopg")
        from latecomer.service.replicated_store import ReplicatedStore  # noqa: PLC0415 - it takes psycopg

        if settings.create:
            from latecomer.service.storage.postgres.schema import initialise  # noqa: PLC0415

            await asyncio.to_thread(initialise, settings.store)
        shared = await ReplicatedStore.open(settings.store, snapshot_every=every, retention=retention, wait=False)
        try:
            yield shared
        finally:
            await shared.close()
    else:
        with Store.open(settings.store, snapshot_every=every, retention=retention, create=settings.create) as store:
            yield store


def _connect(
    store: "Store | ReplicatedStore",
    settings: Settings,
    log: Log,
    metrics: Metrics,
    tracing: Tracing | None,
    *,
    required: bool,
) -> tuple[Authenticator, StoreAccess]:
    """Return who may use the store, and how."""
    if isinstance(store, Store):
        forget = settings.require_keys is False
        keys = KeyFile(settings.keys_file)
        authenticator = open_authenticator(keys, store, log, required=required, forget=forget)
        return authenticator, LocalAccess(store, metrics, tracing)
    from latecomer.service.http.key_table import SharedKeys  # noqa: PLC0415 - it takes psycopg

    shared = SharedKeys(settings.store, store.settings)
    return make_shared_authenticator(shared, log, required=required), ReplicatedAccess(store, tracing)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage less often.

    Requests that wait for a commit are many objects, and none is garbage: Python's own settings have them looked at
    every few requests, and with them, now and then, everything that was ever imported.
    """
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _log_state(store: "Store | ReplicatedStore", settings: Settings, log: Log) -> None:
    """Log what is wrong with the store at the start."""
    if isinstance(store, Store) and (failure := store.health.failure):
        _log_failure(log, failure)  # a database is only being opened
    if abs(ahead := store.health.clock_offset) > _CLOCK_TOLERANCE:
        remedy = f"where the machine's clock is right: stop the server, latecomer log adjust-clock {settings.store}"
        log.warning("the store's time is not the machine's", ahead_seconds=round(ahead), remedy=remedy)
    for name, why in store.quarantined.items():
        remedy = f"latecomer log verify {hide_secrets(settings.store)}"
        log.error("bandit quarantined, the others are served", bandit=name, why=why, remedy=remedy)


def _log_failure(log: Log, failure: str | None) -> None:
    if failure is None:
        log.info("the store can be written again")
    else:
        log.error("the store cannot be written", why=failure)


async def _drain(listener: Listener, app: App, log: Log, seconds: float) -> None:
    """Accept nothing new, and wait so many seconds for the requests in flight; then answer them with 503."""
    closing = asyncio.create_task(listener.close())
    _, unanswered = await asyncio.wait({closing}, timeout=seconds)
    if unanswered:
        log.warning("some requests did not end in time", seconds=seconds)
        app.cancel_requests()
        _, unsent = await asyncio.wait({closing}, timeout=_CANCEL_SECONDS)
        if unsent:
            listener.abort()
            await closing


def _raise_file_limit(wanted: int) -> None:
    """Raise the limit of open files for the connections, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def is_loopback(host: str) -> bool:
    """Tell whether the address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InputError(f"host must be an IP address, such as 127.0.0.1; got {host!r}") from None
