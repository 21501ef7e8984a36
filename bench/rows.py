"""The table: one row per promise, printed as it is measured, kept as JSON and Markdown."""

import json
import platform
from importlib.metadata import version
from pathlib import Path
from textwrap import fill

from msgspec import Struct, structs

MET, MISSED, INFORMATION = "met", "MISSED", "information"
_WIDTHS = (52, 26, 34, 11)
_HEADINGS = ("work", "measured", "must reach", "verdict", "detail")


class Row(Struct, frozen=True, kw_only=True):
    """A promise, and what was measured; without `must_reach` it is there to be known."""

    work: str
    measured: str
    must_reach: str = "-"
    verdict: str = INFORMATION
    detail: str = ""


def verdict(kept: bool) -> str:
    return MET if kept else MISSED


class Table:
    """Rows as they come; the files are whole after every row, so that an interrupted run leaves what it has."""

    def __init__(self, folder: Path, *, how: str) -> None:
        self.folder, self.how = folder, how
        self.rows: list[Row] = []
        folder.mkdir(parents=True, exist_ok=True)
        print(_machine(), f"How: {how}.", "", _line(_HEADINGS), "-" * (sum(_WIDTHS) + 3 * 3), sep="\n", flush=True)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print(_line((row.work, row.measured, row.must_reach, row.verdict)), flush=True)
        if row.detail:
            print(fill(row.detail, 130, initial_indent="      ", subsequent_indent="      "), flush=True)
        self._write()

    def _write(self) -> None:
        facts = {"machine": _machine(), "how": self.how, "rows": [structs.asdict(row) for row in self.rows]}
        (self.folder / "bench.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
        (self.folder / "bench.md").write_text(self._markdown())

    def _markdown(self) -> str:
        lines = [_machine(), "", f"How: {self.how}.", "", _cells(_HEADINGS), _cells(("---",) * 5)]
        lines += [_cells(structs.astuple(row)) for row in self.rows]
        return "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return " | ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False))


def _cells(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    return f"Python {platform.python_version()}, {packages}, {_processor()}."


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.open() if "model name" in line] if info.exists() else []
    return f"{len(names)} x {names[0]}" if names else platform.processor() or platform.machine()
