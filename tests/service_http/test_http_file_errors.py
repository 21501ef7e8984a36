"""A file that cannot be read while a request is answered: 503, with its words and without the machine's folders."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from latecomer import errors
from latecomer.service.config import settings
from latecomer.service.desk import Desk
from latecomer.service.http.app import Gate
from latecomer.service.http.bodies import Intake
from latecomer.service.http.door import Door
from latecomer.service.http.reception import Reception
from latecomer.service.keys import KeyFile
from latecomer.service.logs import start_log
from latecomer.service.metrics import Metrics


def ask(store: Path, error: Exception) -> tuple[int, dict[str, str]]:
    """Let the application meet an error while it answers; give the status and the error that it sends."""
    sent: list[dict[str, Any]] = []

    async def respond(scope: Any, receive: Any, name: str) -> tuple[int, bytes]:
        raise error

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def answer() -> None:
        with Desk.open(store) as desk:
            reception = Reception(
                desk=desk,
                settings=settings(environment={}, given={"store": str(store)}),
                door=Door(KeyFile(store.with_name("keys")), always=False),
                intake=Intake(limit=1000, seconds=1.0),
                metrics=Metrics(desk),
                log=start_log("critical"),
            )
            scope = {"type": "http", "method": "POST", "path": "/v1/bandits/b/broken", "client": ("127.0.0.1", 1)}
            await Gate(reception, more={"broken": respond})(scope, None, send)

    asyncio.run(answer())
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


@pytest.mark.parametrize("kind", [errors.FileError, errors.DamagedFileError, errors.NoRoomError])
def test_a_file_that_cannot_be_read_is_told_without_its_folder(tmp_path: Path, kind: type[errors.FileError]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = tmp_path / "link" / "a.db"
    for path in (store, tmp_path / "real" / "a.db"):
        status, error = ask(store, kind(f"{path} is damaged: no page 3; restore it from a copy"))
        assert (status, error["code"]) == (503, "unavailable")
        assert error["message"] == "a.db is damaged: no page 3; restore it from a copy"
