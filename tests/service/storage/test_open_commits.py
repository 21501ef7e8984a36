"""Commits that are not on disk yet: what they take, and whom they keep waiting."""

from threading import Event, Thread

import pytest

from latecomer.errors import StoreError
from latecomer.service.storage.open_commits import OpenCommits
from latecomer.service.storage.pending_commit import Commit


def put(commits: OpenCommits, data: bytes) -> Commit:
    return commits.append(1, data, count=1, rounds=0, stamp=0)[0]


def test_a_group_that_joins_an_open_commit_ends_before_it_is_closed() -> None:
    commits, closed = OpenCommits(None), Event()
    before = put(commits, b"a")

    def close() -> None:
        commits.close(before)
        closed.set()

    with commits.group():
        put(commits, b"b")
        thread = Thread(target=close)
        thread.start()
        assert not closed.wait(0.05)
        assert put(commits, b"c") is before
    assert closed.wait(10)
    thread.join()
    assert (before.by_bandit[1].parts, before.count_events()) == ([b"a", b"b", b"c"], 3)
    assert put(commits, b"d") is not before


def test_a_group_holds_up_no_commit_that_it_has_not_appended_to() -> None:
    commits = OpenCommits(None)
    before = put(commits, b"a")
    with commits.group():
        commits.close(before)  # returns
        after = put(commits, b"b")
    assert after is not before
    assert not commits.finish(before)
    assert before.done
    assert not after.done
    assert commits._waiting == [after]


def test_a_failure_ends_with_the_next_commit() -> None:
    commits = OpenCommits(None)
    ticket = put(commits, b"a")
    assert commits.fail("no room")
    assert not commits.fail("no room")
    with pytest.raises(StoreError, match="no room"):
        commits.wait(ticket)
    assert commits.finish(ticket)
    commits.wait(ticket)
    assert commits.failure is None
    assert commits._waiting == []
