"""The identity of the store's files: device and inode of each, as they were when the store was opened.

A process goes on writing into a file that has been removed, moved or replaced, and all of it is lost when the process
ends. So device and inode of each path are compared with those at opening. An inode is not used again while its file is
open.
"""

import os
from pathlib import Path

from latecomer.errors import FileError


class OpenedFiles:
    """The files at these paths, as they are now. A link that takes the place of one of them is another file."""

    def __init__(self, *paths: Path) -> None:
        self._opened = [(os.fspath(path), _identify(os.fspath(path))) for path in paths]

    def check(self) -> None:
        """Raise `FileError` where a path leads to nothing, or to another file."""
        for path, opened in self._opened:
            if _identify(path) != opened:
                raise FileError(
                    f"{_name(path)} is not the file that was opened: put that back, or open the store again"
                )


def _identify(path: str) -> tuple[int, int]:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        raise FileError(
            f"{_name(path)} has been removed or moved: put it back, or restore a copy and open the store again"
        ) from None
    except OSError as error:
        raise FileError(f"{_name(path)} cannot be looked at: {error.strerror}") from None
    return found.st_dev, found.st_ino


def _name(path: str) -> str:
    """Return the name without its folder: readiness shows it to anybody who asks."""
    return os.path.basename(path)  # noqa: PTH119
