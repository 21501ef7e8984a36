"""Sources of logs: folders of files, columns of other names, other encodings."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from latecomer.delays import read_conversions
from latecomer.errors import FileError, InputError


def test_a_folder_of_files_with_columns_of_other_names_is_the_same_log(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    decided = rng.uniform(0.0, 1e6, 4000)
    small = pl.DataFrame({"decided_at": decided, "converted_at": decided + rng.exponential(1e4, 4000)})
    renamed = small.rename({"decided_at": "shown", "converted_at": "bought"})
    (tmp_path / "log" / "later").mkdir(parents=True)
    renamed[:1000].write_parquet(tmp_path / "log" / "a.parquet")
    renamed[1000:3000].write_parquet(tmp_path / "log" / "b.pq")
    renamed[3000:].write_parquet(tmp_path / "log" / "later" / "c.parquet")
    (tmp_path / "log" / "README").write_text("no log")
    log = read_conversions(tmp_path / "log", decided_at="shown", converted_at="bought")
    np.testing.assert_array_equal(log.curve.cdf, read_conversions(small).curve.cdf)
    with pytest.raises(FileError, match=r"a\.parquet must have the columns decided_at, converted_at; missing"):
        read_conversions(tmp_path / "log")


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must hold files that end in \.parquet"):
        read_conversions(tmp_path)


def test_utf_16_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("decided_at,converted_at\n1,2\n", encoding="utf-16")
    with pytest.raises(FileError, match="is in UTF-16: save it as UTF-8"):
        read_conversions(path)
