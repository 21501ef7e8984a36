"""A file that cannot be read while a request is answered: 503, with its words and without the machine's folders."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from latecomer import errors
from latecomer.service.http.app import App
from latecomer.service.http.auth import Authenticator
from latecomer.service.http.bodies import BodyReader
from latecomer.service.http.context import AppContext
from latecomer.service.http.keys import KeyFile
from latecomer.service.http.logging_setup import start_log
from latecomer.service.http.metrics import Metrics
from latecomer.service.http.settings import settings
from latecomer.service.store import Store


def ask(store_path: Path, error: Exception) -> tuple[int, dict[str, str]]:
    """Let the application meet an error while it answers; give the status and the error that it sends."""
    sent: list[dict[str, Any]] = []

    async def respond(scope: Any, receive: Any, name: str) -> tuple[int, bytes]:
        raise error

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def answer() -> None:
        with Store.open(store_path) as store:
            reception = AppContext(
                store=store,
                settings=settings(environment={}, given={"store": str(store_path)}),
                door=Authenticator(KeyFile(store_path.with_name("keys")), always=False),
                intake=BodyReader(limit=1000, seconds=1.0),
                metrics=Metrics(store),
                log=start_log("critical"),
            )
            scope = {"type": "http", "method": "POST", "path": "/v1/bandits/b/broken", "client": ("127.0.0.1", 1)}
            await App(reception, more={"broken": respond})(scope, None, send)

    asyncio.run(answer())
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


@pytest.mark.parametrize("kind", [errors.FileError, errors.DamagedFileError, errors.NoRoomError])
def test_a_file_that_cannot_be_read_is_told_without_its_folder(tmp_path: Path, kind: type[errors.FileError]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store_path = tmp_path / "link" / "a.db"
    for path in (store_path, tmp_path / "real" / "a.db"):
        status, error = ask(store_path, kind(f"{path} is damaged: no page 3; restore it from a copy"))
        assert (status, error["code"]) == (503, "unavailable")
        assert error["message"] == "a.db is damaged: no page 3; restore it from a copy"
