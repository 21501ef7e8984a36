"""Where a verb leaves its files: a folder known to be writable before the work begins, and never half a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from latecomer.atomic_write import replace_file
from latecomer.errors import InputError, LatecomerError


def writable_folder(folder: Path) -> Path:
    """The folder, made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # permissions alone do not tell: the disk may be read-only
            return folder
    except OSError as error:
        raise InputError(
            f"--out must be a folder that can be written; got '{folder}' ({error.strerror}): choose another"
        ) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; what was written takes the place of `path` once it is whole."""
    try:
        with replace_file(path) as part:
            yield part
    except OSError as error:
        raise LatecomerError(f"{path} could not be written: {error.strerror or error}") from error
