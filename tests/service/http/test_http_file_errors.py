"""A file that cannot be read while a request is answered: 503, with its message and without the machine's folders."""

import asyncio
import json
from pathlib import Path

import pytest
from apps import app_context, make_request

from latecomer import errors
from latecomer.service.http.app import App
from latecomer.service.http.operations import PUBLIC, Operation
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response
from latecomer.service.http.router import Route

BROKEN = Operation(name="broken", method="POST", path="/broken", summary="Fail.", scope=PUBLIC, gives=None)


def post_broken(store_path: Path, error: Exception) -> tuple[int, dict[str, str]]:
    """Let a handler raise the error; return the status and the error of the answer."""

    async def fail(request: Request) -> Response:
        raise error

    async def answer() -> Response:
        with app_context(store_path) as context:
            return await App(context, extra=[Route(BROKEN, fail)])(make_request("POST", "/broken"))

    response = asyncio.run(answer())
    return response.status, json.loads(response.body)["error"]


@pytest.mark.parametrize("kind", [errors.FileError, errors.DamagedFileError, errors.NoRoomError, errors.StoreError])
def test_a_file_error_is_answered_with_503_and_without_the_folder(tmp_path: Path, kind: type[Exception]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store_path = tmp_path / "link" / "a.db"
    for path in (store_path, tmp_path / "real" / "a.db"):
        status, error = post_broken(store_path, kind(f"{path} is damaged: no page 3; restore it from a copy"))
        assert (status, error["code"]) == (503, "unavailable")
        assert error["message"] == "a.db is damaged: no page 3; restore it from a copy"
