"""The reader of the Criteo attribution file, on files written here."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from processes import run_python

from latecomer.delays import Skipped, read_criteo
from latecomer.errors import FileError

COLUMNS = [
    *("timestamp", "uid", "campaign", "conversion", "conversion_timestamp", "conversion_id", "attribution", "click"),
    *("click_pos", "click_nb", "cost", "cpo", "time_since_last_click", *(f"cat{i}" for i in range(1, 10))),
]
HEADER = "\t".join(COLUMNS)


def row(timestamp: object = 10, conversion: object = 0, conversion_timestamp: object = -1) -> str:
    fields = dict.fromkeys(COLUMNS, "7")
    fields |= {"cost": "1.0e-05", "cpo": "0.29", "click_pos": "-1"}
    fields |= {"timestamp": str(timestamp), "conversion": str(conversion)}
    fields |= {"conversion_timestamp": str(conversion_timestamp)}
    return "\t".join(fields.values())


def write(path: Path, rows: Iterable[str], *, header: str = HEADER, newline: str = "\n") -> Path:
    text = newline.join([header, *rows]) + newline
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


GOOD = [row(0, 1, 250), row(5), row(7, 1, 7), row(9), row(20, 1, 2_592_020)]
BAD = {
    Skipped.COLUMNS: [row() + "\t3", row().rpartition("\t")[0], "", row() + "\t", "gibberish", row(1, 1, 5) + "\t\t"],
    Skipped.NUMBER: [row("x"), row(conversion="yes"), row(3, 1, "later"), row(3, 1, ""), row("1.5"), row(3, 1, 10**30)],
    Skipped.FLAG: [row(conversion=2), row(conversion=-1), row(3, 7, 50)],
    Skipped.NO_TIME: [row(3, 1, -1), row(-1, 1, 3)],
    Skipped.NEGATIVE: [row(30, 1, 29)],
}


@pytest.mark.parametrize("name", ["delays.tsv", "delays.tsv.gz"])
def test_read_criteo_returns_the_delays_of_converted_rows(tmp_path: Path, name: str) -> None:
    found = read_criteo(write(tmp_path / name, GOOD))
    assert found.seconds.tolist() == [250, 0, 2_592_000]
    assert found.seconds.dtype == np.int64
    assert (found.report.rows, found.report.converted, found.report.unconverted) == (5, 3, 2)
    assert set(found.report.skipped.values()) == {0}
    assert str(found.report) == "5 rows read: 3 converted, 2 not, 0 skipped"


@pytest.mark.parametrize("block", [len(HEADER) + 2, 300, 1 << 24])
@pytest.mark.parametrize("name", ["delays.tsv", "delays.tsv.gz"])
def test_read_criteo_counts_malformed_rows_by_reason_wherever_blocks_end(tmp_path: Path, name: str, block: int) -> None:
    path = tmp_path / name
    rows = [line for lines in BAD.values() for line in lines]
    mixed = [line for pair in zip(rows, GOOD * 10, strict=False) for line in pair]
    report = read_criteo(write(path, mixed), block_bytes=block).report
    assert report.skipped == {reason: len(lines) for reason, lines in BAD.items()}
    assert report.rows == 2 * len(rows)
    assert (report.converted, report.unconverted) == (11, 7)
    assert "  6 × wrong number of columns\n" in str(report)
    assert f"{len(rows)} skipped" in str(report)


@pytest.mark.parametrize("reason", BAD)
def test_read_criteo_skips_a_file_of_one_fault(tmp_path: Path, reason: Skipped) -> None:
    found = read_criteo(write(tmp_path / "bad.tsv", BAD[reason]))
    assert found.report.skipped == {other: len(BAD[reason]) if other is reason else 0 for other in Skipped}
    assert len(found.seconds) == 0


def test_read_criteo_takes_any_order_of_columns_and_any_line_ends(tmp_path: Path) -> None:
    header = "\t".join(["spare", "conversion_timestamp", "spare", "conversion", "timestamp"])
    path = write(
        tmp_path / "few.tsv", ["a\t90\tb\t1\t40", 'c\t-1\t"d\t0\t50'], header="\ufeff" + header, newline="\r\n"
    )
    found = read_criteo(path)
    assert found.seconds.tolist() == [50]
    assert found.report.unconverted == 1


def test_read_criteo_takes_a_last_line_without_an_end_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "odd.tsv"
    odd = row(1, 1, 4).replace("7", "\xff")
    path.write_bytes("\n".join([HEADER, odd, row(2, 1, 9)]).encode("latin-1"))
    assert read_criteo(path).seconds.tolist() == [3, 7]


def test_read_criteo_takes_a_file_without_rows(tmp_path: Path) -> None:
    found = read_criteo(write(tmp_path / "none.tsv.gz", []))
    assert found.seconds.dtype == np.int64
    assert str(found.report) == "0 rows read: 0 converted, 0 not, 0 skipped"


def test_read_criteo_recognises_gzip_by_its_first_bytes(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.gz", tmp_path / "packed.tsv"
    plain.write_bytes(write(tmp_path / "a.tsv", GOOD).read_bytes())
    packed.write_bytes(write(tmp_path / "a.tsv.gz", GOOD).read_bytes())
    assert read_criteo(plain).report == read_criteo(str(packed)).report


@pytest.mark.parametrize("name", ["empty.tsv", "empty.tsv.gz"])
def test_read_criteo_refuses_an_empty_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    with pytest.raises(FileError, match=r"empty\.tsv.* is empty: its first line must name the columns, timestamp"):
        read_criteo(path)


def test_read_criteo_names_missing_columns(tmp_path: Path) -> None:
    header = HEADER.replace("conversion_timestamp", "when").replace("timestamp", "time", 1)
    with pytest.raises(FileError, match=r"missing: timestamp, conversion_timestamp; its first line has 'time uid"):
        read_criteo(write(tmp_path / "a.tsv", GOOD, header=header))
    with pytest.raises(FileError, match=r"each column once; twice or more: conversion$"):
        read_criteo(write(tmp_path / "a.tsv", GOOD, header=HEADER + "\tconversion"))


def test_read_criteo_refuses_a_damaged_gzip(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [row(time, 1, time + delay) for time, delay in rng.integers(0, 10**9, (2000, 2)).tolist()]
    whole = write(tmp_path / "a.tsv.gz", rows).read_bytes()
    path = tmp_path / "broken.tsv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"broken\.tsv\.gz ends in the middle of its gzip stream: fetch it again"):
        read_criteo(path)
    path.write_bytes(whole[:1000] + bytes(100) + whole[1100:])
    with pytest.raises(FileError, match=r"broken\.tsv\.gz is a damaged gzip file"):
        read_criteo(path)


def test_read_criteo_refuses_a_line_without_end(tmp_path: Path) -> None:
    assert read_criteo(write(tmp_path / "a.tsv", ["x" * 1900, *GOOD]), block_bytes=1000).report.rows == 6
    with pytest.raises(FileError, match="has a line of more than 2,000 bytes: it is not a table"):
        read_criteo(write(tmp_path / "a.tsv", ["x" * 10_000]), block_bytes=1000)
    with pytest.raises(FileError, match="has a line of more than 1,000 bytes: it is not a table"):
        read_criteo(write(tmp_path / "a.tsv", GOOD, header=HEADER + "x" * 1000), block_bytes=1000)


def test_read_criteo_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_criteo(tmp_path / "absent.tsv")


def test_criteo_delays_become_a_law_in_rounds(tmp_path: Path) -> None:
    law = read_criteo(write(tmp_path / "a.tsv", GOOD)).law(seconds_per_round=100)
    assert law.delays.tolist() == [0, 2, 25_920]


MEASURE = """
import sys
from latecomer.delays import read_criteo
found = read_criteo(sys.argv[1])
print(found.report.rows, found.report.converted, int(found.seconds.sum()))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory of a process is read from /proc")
def test_read_criteo_of_two_million_rows_takes_little_memory(tmp_path: Path) -> None:
    """A gzip may be many, one after another: the same 100,000 rows twenty times, packed once."""
    rng = np.random.default_rng(0)
    times, delays = rng.integers(0, 2_600_000, 100_000), rng.integers(0, 2_592_000, 100_000)
    rest = "\t7\t1\t1\t-1\t-1\t1.0e-05\t0.2948427\t423858" + "\t29196072" * 9 + "\n"
    converted = (rng.random(100_000) < 0.05).tolist()
    lines = [
        f"{time}\t20073966\t22589171\t{int(paid)}\t{time + delay if paid else -1}{rest}"
        for time, delay, paid in zip(times.tolist(), delays.tolist(), converted, strict=True)
    ]
    path = tmp_path / "big.tsv.gz"
    packed = gzip.compress("".join(lines).encode(), 1)
    path.write_bytes(gzip.compress(f"{HEADER}\n".encode()) + packed * 20)
    # VmHWM, as what getrusage says of a child may be its parent's peak
    out = run_python(MEASURE, path)
    counts, peak_kb = out.splitlines()
    assert counts.split() == ["2000000", str(20 * sum(converted)), str(20 * delays[np.array(converted)].sum())]
    assert int(peak_kb) < 1_000_000
