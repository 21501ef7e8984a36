"""The examples as a reader runs them. simulate.toml is tested in tests/cli, news.py in tests/service/http."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_shop_earns_more_than_its_control_group(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "shop.py"), "4"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)  # noqa: S603
    assert ended.stderr == ""
    found = re.search(r"^(\d+) sales to (\d+) visitors; .* been (\d+), give or take (\d+)$", ended.stdout, re.MULTILINE)
    assert found is not None, ended.stdout
    sales, visitors, chance, error = map(int, found.groups())
    assert 0.01 < chance / visitors < sales / visitors < 0.05, "rates that a shop has"
    assert sales > chance + 3 * error


def test_the_shop_uses_what_we_recommend_and_rates_that_a_shop_has() -> None:
    source = (EXAMPLES / "shop.py").read_text()
    assert "lc.recommended(" in source
    rates = [float(rate) for rate in re.findall(r'": (0\.\d+),', source)]
    assert rates
    assert all(0.01 <= rate <= 0.05 for rate in rates)
    assert len(source.splitlines()) <= 75
