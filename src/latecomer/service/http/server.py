"""From settings to a running server, and back: Granian on this process's own loop, which alone owns the desk."""

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from latecomer.errors import InputError, LatecomerError, StoreError
from latecomer.service.config import Settings
from latecomer.service.desk import Desk
from latecomer.service.http.app import Gate
from latecomer.service.http.bodies import Intake
from latecomer.service.http.direct import Respond
from latecomer.service.http.door import open_door
from latecomer.service.http.reception import Reception
from latecomer.service.keys import KeyFile
from latecomer.service.logs import Log
from latecomer.service.metrics import Metrics
from latecomer.service.private_files import is_open_to_others

_FAREWELL = 1.0
"""Seconds for the answers of those who are cut off."""
_CLOCK_TOLERANCE = 60.0
"""Seconds that the store's time may differ from the machine's without a word."""
Extra = Callable[[Reception], Mapping[str, Respond]]
"""Responders that only a benchmark adds."""


def no_extra(reception: Reception) -> Mapping[str, Respond]:
    """What a server has beyond its own."""
    return {}


async def serve(settings: Settings, log: Log, *, extra: Extra = no_extra) -> None:
    """Open the store, answer until SIGTERM or SIGINT, answer what is under way, and close the store."""
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
    port = free_port(settings.host, settings.port)
    desk = Desk.open(
        settings.store,
        snapshot_every=settings.snapshot_every,
        retention=settings.retention or None,
        create=settings.create,
    )
    try:
        metrics, told = Metrics(desk), asyncio.Event()
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, told.set)
        desk.listen(on_commit=metrics.committed, on_trouble=partial(_say_trouble, log), on_death=end)
        _say_state(desk, settings, log)
        reception = Reception(
            desk=desk,
            settings=settings,
            door=open_door(keys, desk, log, required=required, forget=settings.require_keys is False),
            intake=Intake(limit=settings.max_body, seconds=settings.body_timeout),
            metrics=metrics,
            log=log,
        )
        for path in filter(is_open_to_others, (Path(settings.store), settings.keys_file)):
            log.warning("a file can be read by others than its owner: chmod 600", path=str(path))
        gate = Gate(reception, more=extra(reception))
        server = _granian(gate, settings, port)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        log.info(
            "serving",
            host=settings.host,
            port=port,
            store=settings.store,
            retention=desk.retention,
            keys=keys.keys() is not None,
        )
        watching = asyncio.create_task(reception.door.watch())
        await _until(told, server, gate, log, settings.drain_timeout)
        watching.cancel()
    finally:
        fault = desk.fault
        desk.close()
    log.info("stopped")
    if fault:
        raise StoreError(f"the server ends, and should be started again: {fault}")


def _say_state(desk: Desk, settings: Settings, log: Log) -> None:
    """Log what is wrong with the store from the beginning."""
    if failure := desk.health.failure:
        _say_trouble(log, failure)
    if abs(ahead := desk.health.clock_offset) > _CLOCK_TOLERANCE:
        remedy = f"where the machine's clock is right: stop the server, latecomer log adjust-clock {settings.store}"
        log.warning("the store's time is not the machine's", ahead_seconds=round(ahead), remedy=remedy)
    for name, why in desk.quarantined.items():
        remedy = f"latecomer log verify {settings.store}"
        log.error("bandit quarantined, the others are served", bandit=name, why=why, remedy=remedy)


def _say_trouble(log: Log, failure: str | None) -> None:
    if failure is None:
        log.info("the store can be written again")
    else:
        log.error("the store cannot be written", why=failure)


async def _until(told: asyncio.Event, server: Server, gate: Gate, log: Log, patience: float) -> None:
    """Answer until told to stop; then take nothing new, and wait for the answers under way, but not for ever."""
    serving, stopping = asyncio.create_task(server.serve()), asyncio.create_task(told.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
        raise LatecomerError("the HTTP server ended by itself: look at what it said on standard error")
    log.info("draining")
    server.stop()  # type: ignore[no-untyped-call]
    _, unanswered = await asyncio.wait({serving}, timeout=patience)
    if unanswered:
        log.warning("some requests did not end in time", seconds=patience)
        gate.cut_off()
        await asyncio.wait({serving}, timeout=_FAREWELL)
    await asyncio.sleep(0.1)  # Granian's own thread still takes its leave, and needs the interpreter for it


def _granian(app: Gate, settings: Settings, port: int) -> Server:
    return Server(
        app,
        address=settings.host,
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=settings.max_connections,
        backpressure=settings.max_connections,
        http1_settings=HTTP1Settings(header_read_timeout=round(settings.header_timeout * 1000), max_buffer_size=65536),
        log_enabled=False,  # ours says what it would
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InputError(f"host must be an IP address, such as 127.0.0.1; got {host!r}") from None


def free_port(host: str, port: int) -> int:
    """The port, once it is known that nobody has it; 0 finds one. Granian itself would share a port silently."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise InputError(f"{host} port {port} cannot be bound: {error.strerror}; choose another") from None
