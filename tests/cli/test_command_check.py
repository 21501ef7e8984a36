"""`latecomer check` shows the alarms of a store and of a server, as text and as JSON, with an exit code."""

import json
from pathlib import Path

import pytest
from fed_shop import NAME, FedShop
from servers import run_server
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.service.bandit_spec import BanditSpec


@pytest.fixture(scope="module")
def silent_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose conversions have stopped."""
    path = tmp_path_factory.mktemp("check") / "shop.db"
    shop = FedShop(path, hourly=60.0)
    shop.play(6)
    shop.play(4, feed=False)
    shop.store.create("empty", BanditSpec(dim=2, window="1d"))
    shop.store.close()
    return path


def own_alarms(text: str) -> list[dict[str, str]]:
    """The alarms of bandits: the machine's disk may be nearly full."""
    return [alarm for alarm in json.loads(text) if alarm["bandit"] is not None]


def test_a_store_is_checked_for_people_and_for_programs(silent_store: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(silent_store)])
    assert result.exit_code == 3, result.output
    assert "critical: offers: conversions_stopped since" in result.output
    assert "no conversion has come" in result.output
    assert "what to do: look at what reports conversions" in result.output
    result = CliRunner().invoke(app, ["check", str(silent_store), "--bandit", NAME, "--json"])
    assert result.exit_code == 3
    (alarm,) = own_alarms(result.output)
    assert set(alarm) == {"id", "severity", "bandit", "since", "sentence", "remedy"}
    assert (alarm["id"], alarm["severity"], alarm["bandit"]) == ("conversions_stopped", "critical", NAME)


def test_a_bandit_without_alarms_and_one_that_is_not_there(silent_store: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(silent_store), "--bandit", "empty", "--json"])
    assert own_alarms(result.output) == []
    assert result.exit_code == (3 if json.loads(result.output) else 0)
    result = CliRunner().invoke(app, ["check", str(silent_store), "--bandit", "nobody"])
    assert result.exit_code == 1
    assert "there is no bandit 'nobody'" in result.output


def test_a_server_is_checked(silent_store: Path) -> None:
    with run_server(silent_store) as server:
        result = CliRunner().invoke(app, ["check", str(server.http.base_url), "--json"])
        assert result.exit_code == 3, result.output
        assert [alarm["id"] for alarm in own_alarms(result.output)] == ["conversions_stopped"]
        of_store = [alarm["id"] for alarm in json.loads(result.output) if alarm["bandit"] is None]
        assert len(of_store) == len(set(of_store))  # once, not once for each bandit
        assert "clock_off" in of_store  # the shop's clock was not this machine's
        assert "Alarms (" in server.http.get(f"/page/bandits/{NAME}").text
