"""The HTTP application without a server: what its routes share, over a store of its own, and requests to it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from latecomer.service.http.auth import Authenticator
from latecomer.service.http.body_reader import BodyReader
from latecomer.service.http.connection import Connection
from latecomer.service.http.context import AppContext
from latecomer.service.http.keys import KeyFile
from latecomer.service.http.logging_setup import start_log
from latecomer.service.http.metrics import Metrics
from latecomer.service.http.request import Request
from latecomer.service.http.settings import read_settings
from latecomer.service.http.store_access import LocalAccess
from latecomer.service.store import Store


@contextmanager
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, raises = root.level, logging.raiseExceptions
    try:
        yield
    finally:
        root.setLevel(level)
        logging.raiseExceptions = raises


@contextmanager
def app_context(store_path: Path) -> Iterator[AppContext]:
    """Open a store, and make what its routes share; the process's own log is set up as before afterwards."""
    with Store.open(store_path) as store, _logging_as_before():
        metrics = Metrics(store)
        yield AppContext(
            store=store,
            access=LocalAccess(store, metrics),
            settings=read_settings(environment={}, given={"store": str(store_path)}),
            authenticator=Authenticator(KeyFile(store_path.with_name("keys")), always=False),
            body_reader=BodyReader(limit=1000, seconds=1.0),
            metrics=metrics,
            log=start_log("critical"),
        )


class _FakeConnection:
    """The parts of a connection that a request without a body needs."""

    client = ("127.0.0.1", 1)


def make_request(method: str, target: str) -> Request:
    """Make a request without headers and body."""
    connection = cast(Connection, _FakeConnection())
    return Request(connection, method=method, version="1.1", target=target.encode(), headers=[], keep_alive=True)


def local_store(context: AppContext) -> Store:
    """Return the context's store, a file."""
    assert isinstance(context.store, Store)
    return context.store
