"""The notebooks of the documentation: their cells run, and nothing that a run gave is stored in them."""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))


def read_code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_what_it_gave(path: Path) -> None:
    cells = read_code_cells(path)
    assert cells
    assert {(cell["execution_count"], len(cell["outputs"])) for cell in cells} == {(None, 0)}


def test_lateness_costs_sales_and_the_naive_rate_is_too_low(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    with mpl.rc_context():
        for cell in read_code_cells(DOCS / "tutorials" / "late-sales.ipynb"):
            exec("".join(cell["source"]), found)  # noqa: S102 - our own page
        found["plt"].close("all")
    lost = [int(number) for number in re.findall(r": (\d+) lost sales in ten days", capsys.readouterr().out)]
    assert len(lost) == 3
    assert lost == sorted(lost)
    late = found["lost"]["two days late"][:, -1]
    assert late.mean() - found["lost"]["at once"][:, -1].mean() > 3 * late.std() / len(late) ** 0.5
    assert found["naive"][2] < 0.8 * found["matured"][2]
    assert abs(found["matured"][-1] - 0.1) < 0.015  # three standard errors of 4,200 visits
