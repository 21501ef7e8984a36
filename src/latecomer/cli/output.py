"""The output of a verb: a folder that is checked before the work begins, and files that are never half written."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from latecomer.atomic_write import replace_file
from latecomer.cli.verb_end import call_at_end
from latecomer.errors import InputError, LatecomerError


def make_output_folder(folder: Path) -> Path:
    """Make the folder if need be, check that it can be written, and return it.

    At the end of the verb a folder that it made is removed again, where it is empty.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    call_at_end(lambda: _remove_empty(made))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # permissions alone do not tell: the disk may be read-only
            return folder
    except OSError as error:
        raise InputError(
            f"--out must be a folder that can be written; got '{folder}' ({error.strerror}): choose another"
        ) from None


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, the innermost first, up to the first that is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


@contextmanager
def replace_output(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file replaces `path` once it is whole."""
    try:
        with replace_file(path) as part:
            yield part
    except OSError as error:
        raise LatecomerError(f"{path} could not be written: {error.strerror or error}") from error
