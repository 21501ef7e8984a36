"""What belongs together is in one commit, however slow the thread that appends it: the writer waits for its end."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_internals import chain_of, sqlite_log

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.writer import Writer
from latecomer.service.store import Store

SPEC = BanditSpec(policy="OTFLinUCB", dim=2, window=100)
PAUSE = 0.05


def test_a_creation_is_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between its two rows would leave a bandit without a chain, and its name taken."""
    append = Writer.append

    def append_late(self: Writer, bandit: int, *args: Any, **kwargs: Any) -> Any:
        time.sleep(PAUSE)
        return append(self, bandit, *args, **kwargs)

    with Store.open(tmp_path / "a.db", create=True) as store:
        monkeypatch.setattr(Writer, "append", append_late)
        store.create("a", SPEC)
        assert sqlite_log(store).writer.commits == 1


def test_no_request_id_is_kept_in_memory_once_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_request = Chain.add_request

    def add_late(self: Chain, *args: Any) -> None:
        time.sleep(PAUSE)
        add_request(self, *args)

    monkeypatch.setattr(Chain, "add_request", add_late)
    with Store.open(tmp_path / "a.db", create=True) as store:
        store.create("a", SPEC)
        for number in range(3):
            _, ticket = store.decide("a", np.eye(2), request_id=f"r{number}")
            store.wait(ticket)
        assert chain_of(store, "a").pending_requests == {}
        assert store.decide("a", np.eye(2), request_id="r1")[0].round == 2


def test_a_group_within_a_group_is_a_part_of_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db", create=True) as store:
        store.create("a", SPEC)
        writer = sqlite_log(store).writer
        before = writer.commits
        with store.group():
            for _ in range(2):
                with store.group():
                    _, ticket = store.decide("a", np.eye(2))
                time.sleep(PAUSE)
            assert writer.commits == before
        store.wait(ticket)
        assert writer.commits == before + 1
