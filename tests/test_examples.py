"""The examples as a reader runs them. simulate.toml is tested in tests/cli, news.py in tests/service/http."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def play_shop(path: Path, folder: Path) -> tuple[int, int, int, int]:
    """Play four weeks; return the sales, the visitors, what chance would have sold, and its error."""
    command = [sys.executable, str(path), "4"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)  # noqa: S603
    assert ended.stderr == ""
    found = re.search(r"^(\d+) sales to (\d+) visitors; .* been (\d+), give or take (\d+)$", ended.stdout, re.MULTILINE)
    assert found is not None, ended.stdout
    sales, visitors, chance, error = map(int, found.groups())
    return sales, visitors, chance, error


def test_the_shop_sells_to_a_tenth_of_its_visitors(tmp_path: Path) -> None:
    """So few that nothing is compiled, and too few to show more than rates that a shop has."""
    whole = (EXAMPLES / "shop.py").read_text()
    small = whole.replace("SEED = 1000, 0.5, 0", "SEED = 100, 0.5, 0")
    assert small != whole
    (tmp_path / "shop.py").write_text(small)
    sales, visitors, chance, _ = play_shop(tmp_path / "shop.py", tmp_path)
    assert 1000 < visitors < 2000
    assert 0.01 < sales / visitors < 0.05
    assert 0.01 < chance / visitors < 0.05


@pytest.mark.soak
def test_the_shop_earns_more_than_its_control_group(tmp_path: Path) -> None:
    sales, visitors, chance, error = play_shop(EXAMPLES / "shop.py", tmp_path)
    assert 0.01 < chance / visitors < sales / visitors < 0.05, "rates that a shop has"
    assert sales > chance + 3 * error


def test_the_shop_uses_what_we_recommend_and_rates_that_a_shop_has() -> None:
    source = (EXAMPLES / "shop.py").read_text()
    assert "lc.recommended(" in source
    rates = [float(rate) for rate in re.findall(r'": (0\.\d+),', source)]
    assert rates
    assert all(0.01 <= rate <= 0.05 for rate in rates)
    assert len(source.splitlines()) <= 75
