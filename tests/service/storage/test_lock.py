"""The lock of a store: free once it is released, whoever has a copy of its file, and nobody else's to release."""

import os
from pathlib import Path

import pytest

from latecomer.errors import StoreLockedError
from latecomer.service.storage.lock import StoreLock


def test_a_released_lock_is_free_while_a_forked_process_has_its_file(path: Path) -> None:
    """A thread that starts a program forks: until that program begins, it has every open file."""
    lock, (reader, writer) = StoreLock(path), os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        os.read(reader, 1)  # until the parent closes it
        os._exit(0)
    try:
        lock.release()
        StoreLock(path).release()
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)


def test_a_forked_process_cannot_release_the_lock_of_its_parent(path: Path) -> None:
    lock = StoreLock(path)
    child = os.fork()
    if not child:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
        StoreLock(path)
    lock.release()
