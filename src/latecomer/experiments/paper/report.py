"""A report as one page that carries its pictures, and the files beside it."""

import base64
import html
from dataclasses import dataclass
from pathlib import Path
from string import Template

import polars as pl
from matplotlib.figure import Figure

from latecomer.atomic_write import replace_file
from latecomer.pictures import write_picture

PAGE = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class Section:
    """One finding: a picture, what it shows, and the numbers."""

    name: str
    """Stem of its files."""
    title: str
    text: str
    """Paragraphs, separated by blank lines."""
    figure: Figure
    table: pl.DataFrame
    """Shown in the page, and written as CSV."""
    data: pl.DataFrame
    """All the numbers behind it, written as Parquet."""


class Report:
    """A folder that grows section by section, complete after each: what is interrupted leaves what is done."""

    def __init__(self, folder: Path, *, title: str, subtitle: str) -> None:
        self.folder, self.title, self.subtitle = folder, title, subtitle
        self._parts: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def page(self) -> Path:
        """The page itself."""
        return self.folder / "report.html"

    def add(self, section: Section) -> None:
        """Write the section's files, and the page with it."""
        picture = self.folder / f"{section.name}.png"
        with replace_file(picture) as part:
            write_picture(section.figure, part, suffix=".png")
        with replace_file(picture.with_suffix(".svg")) as part:
            write_picture(section.figure, part, suffix=".svg")
        with replace_file(self.folder / f"{section.name}.csv") as part:
            section.table.write_csv(part)
        with replace_file(self.folder / f"{section.name}.parquet") as part:
            section.data.write_parquet(part)
        paragraphs = "".join(f"<p>{html.escape(text.strip())}</p>" for text in section.text.strip().split("\n\n"))
        encoded = base64.b64encode(picture.read_bytes()).decode()
        self._parts.append(
            f'<section id="{section.name}"><h2>{html.escape(section.title)}</h2>{paragraphs}'
            f'<img alt="{html.escape(section.title)}" src="data:image/png;base64,{encoded}">'
            f"{format_table(section.table)}"
            f'<p class="files">Numbers: {section.name}.csv, {section.name}.parquet</p></section>'
        )
        self._write()

    def _write(self) -> None:
        page = PAGE.substitute(
            title=html.escape(self.title), subtitle=html.escape(self.subtitle), body="\n".join(self._parts)
        )
        with replace_file(self.page) as part:
            part.write_text(page, encoding="utf-8")


def format_table(frame: pl.DataFrame) -> str:
    """Format a frame as a plain table; numbers to four figures."""
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in frame.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(format_cell(value))}</td>" for value in row) + "</tr>"
        for row in frame.iter_rows()
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def format_cell(value: object) -> str:
    """Format a cell for a reader."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
