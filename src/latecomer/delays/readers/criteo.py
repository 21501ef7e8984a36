"""Read conversion delays from the public Criteo attribution file: 16.5 million rows, tab-separated, gzipped or not.

The file is unpacked and read in blocks of whole lines, so memory does not grow with it. NumPy counts the tabs of each
line, because polars would cut a long line and fill a short one without a word; polars then parses the lines that are
left.
"""

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BufferedIOBase
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.delays.readers.criteo_report import CriteoDelays, CriteoReport, Skipped
from latecomer.errors import LogError

_BLOCK_BYTES = 1 << 24
"""Bytes unpacked at a time."""

_NEEDED = ("timestamp", "conversion", "conversion_timestamp")
_GZIP = b"\x1f\x8b"
_TAB, _NEWLINE = b"\t\n"


def read_criteo(path: str | PathLike[str], *, block_bytes: int = _BLOCK_BYTES) -> CriteoDelays:
    r"""Read the delay of every converted row, conversion_timestamp − timestamp in seconds, and count what was skipped.

    The first line names the columns: `timestamp`, `conversion` and `conversion_timestamp` must be among them, in any
    order; −1 stands for no time. A gzipped file is recognised by its first bytes, not by its name.

    Parameters
    ----------
    path
        The file.
    block_bytes
        How much is unpacked at a time; no line may be longer than twice that.

    Raises
    ------
    LogError
        The file is empty, lacks a column, is a damaged or incomplete gzip, or is no table at all.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from latecomer import delays
    >>> rows = ["timestamp\tconversion\tconversion_timestamp", "0\t1\t250", "3\t0\t-1", "5\t1\toops"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.tsv")
    ...     size = path.write_text("\n".join(rows))
    ...     found = delays.read_criteo(path)
    >>> found.seconds
    array([250])
    >>> print(found.report)
    3 rows read: 1 converted, 1 not, 1 skipped
      1 × a number that does not parse
    >>> found.law(seconds_per_round=100).mean
    2.0
    """
    counts: Counter[str] = Counter()
    try:
        with _open_unpacked(path) as file:
            columns = _parse_columns(path, file.readline(block_bytes), block_bytes)
            blocks = _read_ahead(_read_blocks(path, file, block_bytes))
            delays = [_select_delays(_parse_table(block, columns, counts), counts) for block in blocks]
    except EOFError:
        raise LogError(f"{os.fspath(path)} ends in the middle of its gzip stream: fetch it again, whole") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise LogError(f"{os.fspath(path)} is a damaged gzip file ({error}): fetch it again") from error
    seconds = np.concatenate([np.empty(0, np.int64), *delays])
    skipped = {reason: counts[reason] for reason in Skipped}
    unconverted = counts["rows"] - len(seconds) - sum(skipped.values())
    return CriteoDelays(seconds, CriteoReport(counts["rows"], len(seconds), unconverted, skipped))


@contextmanager
def _open_unpacked(path: str | PathLike[str]) -> Iterator[BufferedIOBase]:
    with Path(path).open("rb") as file:
        if file.peek(len(_GZIP)).startswith(_GZIP):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file


def _parse_columns(path: str | PathLike[str], header: bytes, block_bytes: int) -> list[str]:
    """Return the names in the first line."""
    if not header:
        raise LogError(
            f"{os.fspath(path)} is empty: its first line must name the columns, {', '.join(_NEEDED)} among them"
        )
    if len(header) == block_bytes:
        raise _not_a_table(path, block_bytes)
    columns = header.decode("utf-8-sig", errors="replace").rstrip("\r\n").split("\t")
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise LogError(
            f"{os.fspath(path)} must name in its first line the columns {', '.join(_NEEDED)}, separated by tabs; "
            f"missing: {', '.join(missing)}; its first line has {' '.join(columns)[:200]!r}"
        )
    repeated = [name for name in _NEEDED if columns.count(name) > 1]
    if repeated:
        raise LogError(f"{os.fspath(path)} must name each column once; twice or more: {', '.join(repeated)}")
    return columns


def _not_a_table(path: str | PathLike[str], size: int) -> LogError:
    return LogError(
        f"{os.fspath(path)} has a line of more than {size:,} bytes: it is not a table of tab-separated rows"
    )


def _read_blocks(path: str | PathLike[str], file: BufferedIOBase, block_bytes: int) -> Iterator[bytes]:
    """Yield the rest of the file in blocks of whole lines; the last line is made to end."""
    rest = b""
    while block := file.read(block_bytes):
        lines, newline, tail = block.rpartition(b"\n")
        if newline:
            yield rest + lines + newline
            rest = tail
        else:
            rest += tail
        if len(rest) > 2 * block_bytes:
            raise _not_a_table(path, 2 * block_bytes)
    if rest:
        yield rest + b"\n"


def _read_ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks; the next one is unpacked while this one is parsed."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


def _parse_table(block: bytes, columns: list[str], counts: Counter[str]) -> pl.DataFrame:
    """Parse the needed columns of the lines with as many fields as the header; null for what is no number."""
    text = np.frombuffer(block, np.uint8)
    tabs = np.searchsorted(np.flatnonzero(text == _TAB), np.flatnonzero(text == _NEWLINE))
    whole = np.diff(tabs, prepend=0) == len(columns) - 1
    counts["rows"] += len(whole)
    counts[Skipped.COLUMNS] += int(np.count_nonzero(~whole))
    if not whole.all():
        block = b"".join(line + b"\n" for line, fits in zip(block.split(b"\n"), whole, strict=False) if fits)
    if not block:
        return pl.DataFrame(schema=dict.fromkeys(_NEEDED, pl.Int64))
    # a column that does not matter goes by its number, as it may share its name with another
    names = [name if name in _NEEDED else str(i) for i, name in enumerate(columns)]
    return pl.read_csv(
        block,
        separator="\t",
        quote_char=None,
        has_header=False,
        schema={name: pl.Int64 if name in _NEEDED else pl.String for name in names},
        columns=sorted(map(columns.index, _NEEDED)),
        ignore_errors=True,
        encoding="utf8-lossy",
    )


def _select_delays(table: pl.DataFrame, counts: Counter[str]) -> npt.NDArray[np.int64]:
    """Return the delays of the converted rows; each step drops the rows with one thing wrong, and counts them."""
    sieve = {
        Skipped.NUMBER: pl.all_horizontal(pl.all().is_not_null()),
        Skipped.FLAG: pl.col("conversion").is_between(0, 1),
        None: pl.col("conversion") == 1,
        Skipped.NO_TIME: (pl.col("timestamp") >= 0) & (pl.col("conversion_timestamp") >= 0),
        Skipped.NEGATIVE: pl.col("conversion_timestamp") >= pl.col("timestamp"),
    }
    for reason, condition in sieve.items():
        passed = table.filter(condition)
        if reason is not None:
            counts[reason] += table.height - passed.height
        table = passed
    return table.select(pl.col("conversion_timestamp") - pl.col("timestamp")).to_series().to_numpy()
