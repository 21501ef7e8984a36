"""From settings to a running server, and back, on this process's own loop, which alone owns the store."""

import asyncio
import ipaddress
import resource
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from latecomer.errors import InputError, StoreError
from latecomer.service.http.app import App
from latecomer.service.http.auth import open_authenticator
from latecomer.service.http.bodies import BodyReader
from latecomer.service.http.context import AppContext
from latecomer.service.http.keys import KeyFile
from latecomer.service.http.listener import Listener, bind_listener
from latecomer.service.http.logging_setup import Log
from latecomer.service.http.metrics import Metrics
from latecomer.service.http.router import Respond
from latecomer.service.http.settings import Settings
from latecomer.service.storage.private_files import is_open_to_others
from latecomer.service.store import Store

_FAREWELL = 1.0
"""Seconds for the answers of those who are cut off."""
_CLOCK_TOLERANCE = 60.0
"""Seconds that the store's time may differ from the machine's without a word."""
_OTHER_FILES = 64
"""Files beside the connections: the store, its copies, the loop's own."""
Extra = Callable[[AppContext], Mapping[str, Respond]]
"""Responders that only a benchmark adds."""


def no_extra(reception: AppContext) -> Mapping[str, Respond]:
    """What a server has beyond its own."""
    return {}


async def serve(settings: Settings, log: Log, *, extra: Extra = no_extra) -> None:
    """Open the store, answer until SIGTERM, SIGINT or SIGHUP, answer what is under way, and close the store."""
    keys = KeyFile(settings.keys_file)
    alone = is_loopback(settings.host)
    required = settings.require_keys or not alone
    if required and not keys.keys():
        rule = "host must be a loopback address" if not alone else "require_keys must be false"
        given = settings.host if not alone else settings.require_keys
        raise InputError(
            f"{rule} as long as there are no keys; got {given!r}: "
            f"make one with `latecomer keys add --scope admin --keys {settings.keys_file}`"
        )
    with (
        bind_listener(settings.host, settings.port) as bound,  # before the store: a second server leaves that alone
        Store.open(
            settings.store,
            snapshot_every=settings.snapshot_every,
            retention=settings.retention or None,
            create=settings.create,
        ) as store,
    ):
        metrics, told = Metrics(store), asyncio.Event()
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, told.set)
        store.listen(on_commit=metrics.committed, on_trouble=partial(_say_trouble, log), on_death=end)
        _say_state(store, settings, log)
        reception = AppContext(
            store=store,
            settings=settings,
            door=open_authenticator(keys, store, log, required=required, forget=settings.require_keys is False),
            intake=BodyReader(limit=settings.max_body, seconds=settings.body_timeout),
            metrics=metrics,
            log=log,
        )
        for path in filter(is_open_to_others, (Path(settings.store), settings.keys_file)):
            log.warning("a file can be read by others than its owner: chmod 600", path=str(path))
        gate = App(reception, more=extra(reception))
        _raise_file_limit(settings.max_connections + _OTHER_FILES)
        listener = Listener(bound, settings, gate, log, refused=metrics.refused)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # `nohup` means it
                asyncio.get_running_loop().add_signal_handler(number, told.set)
        listener.start()
        log.info(
            "serving",
            host=settings.host,
            port=listener.address[1],
            store=settings.store,
            retention=store.settings.retention,
            keys=keys.keys() is not None,
        )
        watching = asyncio.create_task(reception.door.watch())
        await told.wait()
        log.info("draining")
        await _drain(listener, gate, log, settings.drain_timeout)
        watching.cancel()
        gate.close()
        fault = store.fault
    log.info("stopped")
    if fault:
        raise StoreError(f"the server ends, and should be started again: {fault}")


def _say_state(store: Store, settings: Settings, log: Log) -> None:
    """Log what is wrong with the store from the beginning."""
    if failure := store.health.failure:
        _say_trouble(log, failure)
    if abs(ahead := store.health.clock_offset) > _CLOCK_TOLERANCE:
        remedy = f"where the machine's clock is right: stop the server, latecomer log adjust-clock {settings.store}"
        log.warning("the store's time is not the machine's", ahead_seconds=round(ahead), remedy=remedy)
    for name, why in store.quarantined.items():
        remedy = f"latecomer log verify {settings.store}"
        log.error("bandit quarantined, the others are served", bandit=name, why=why, remedy=remedy)


def _say_trouble(log: Log, failure: str | None) -> None:
    if failure is None:
        log.info("the store can be written again")
    else:
        log.error("the store cannot be written", why=failure)


async def _drain(listener: Listener, gate: App, log: Log, patience: float) -> None:
    """Take nothing new, and wait for the answers under way, but not for ever."""
    closing = asyncio.create_task(listener.close())
    _, unanswered = await asyncio.wait({closing}, timeout=patience)
    if unanswered:
        log.warning("some requests did not end in time", seconds=patience)
        gate.cut_off()
        _, unsent = await asyncio.wait({closing}, timeout=_FAREWELL)
        if unsent:
            listener.abort()
            await closing


def _raise_file_limit(wanted: int) -> None:
    """Let the process have as many files open as there may be connections, as far as that is its own to say."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InputError(f"host must be an IP address, such as 127.0.0.1; got {host!r}") from None
