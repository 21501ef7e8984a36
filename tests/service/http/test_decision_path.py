"""The way of a decision in docs/explanation/design.md: at most 25 functions, called in that order over HTTP."""

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from apps import app_context

import latecomer as lc
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.http.app import App
from latecomer.service.http.listener import Listener, bind_listener

ROOT = Path(__file__).parents[3]
SOURCE = Path(lc.__file__).parent
ROW = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \| .+ \|$", re.MULTILINE)
HOPS = ROW.findall((ROOT / "docs/explanation/design.md").read_text(encoding="utf-8"))
MAX_HOPS = 25
COMPILED = {"policies/base/kernels.py", "core/ridge_statistics.py"}
"""Files of which a decision calls machine code, which no profiler sees."""
BY_WRITER = {"Writer._commit", "insert_row"}
"""Functions that the writer's thread calls, while the loop goes on."""


class Profile:
    """The package's functions that are called in threads begun under it, and in this one, while `is_on`."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls: dict[int, list[tuple[str, str]]] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.is_on and event == "call" and Path(frame.f_code.co_filename).is_relative_to(SOURCE):
            name = frame.f_code.co_qualname.rpartition("<locals>.")[2]
            file = Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix()
            self.calls.setdefault(threading.get_ident(), []).append((file, name))


@contextmanager
def profiled(profile: Profile) -> Iterator[None]:
    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    yield
    sys.setprofile(before)
    threading.setprofile(None)


async def decide_over_http(store: Path, profile: Profile) -> bytes:
    """Make two decisions on one connection, and profile the second; return its answer."""
    with app_context(store) as context, bind_listener("127.0.0.1", 0) as bound:
        context.store.create("b", BanditSpec(dim=2, window=100, policy="OTFLinUCB"))
        listener = Listener(bound, context.settings, App(context), context.log, count_error=lambda _: None)
        listener.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.address[1])
        for is_on in (False, True):
            profile.is_on = is_on
            body = b'{"actions": [[1, 0], [0, 1]]}'
            head = b"POST /v1/bandits/b/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            answer = await reader.readuntil(b"}")
        profile.is_on = False
        writer.close()
        await writer.wait_closed()
        await listener.close()
    return answer


def test_a_decision_over_http_calls_the_functions_of_the_design_in_their_order(tmp_path: Path) -> None:
    profile = Profile()
    with profiled(profile):
        answer = asyncio.run(decide_over_http(tmp_path / "a.db", profile))
    assert answer.startswith(b"HTTP/1.1 201 Created")
    hops = [(file, name) for _, file, name in HOPS if file not in COMPILED]
    by_thread = {
        thread: [hop for hop in dict.fromkeys(calls) if hop in hops] for thread, calls in profile.calls.items()
    }
    assert by_thread.pop(threading.get_ident()) == [hop for hop in hops if hop[1] not in BY_WRITER]
    assert list(by_thread.values()) == [[hop for hop in hops if hop[1] in BY_WRITER]]


def test_the_way_of_a_decision_has_at_most_25_functions() -> None:
    assert [int(number) for number, _, _ in HOPS] == list(range(1, len(HOPS) + 1))
    assert 20 <= len(HOPS) <= MAX_HOPS
