"""The files for Prometheus and Grafana: every metric and label that they name is on a server's page of metrics."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from latecomer.service.bandit.alarms import BANDIT_ALARMS
from latecomer.service.bandit.measures import MOST_ACTIONS
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.http.metrics import Metrics
from latecomer.service.messages import Conversion
from latecomer.service.store import Store
from latecomer.service.store_alarms import STORE_ALARMS

DEPLOY = Path(__file__).parents[1] / "deploy"
RULES = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "latecomer.json"
ADDED = {"instance", "job"}
"""Labels that Prometheus adds."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """Every sample of a server after some events: its name, and the labels of each."""
    with Store.open(tmp_path_factory.mktemp("metrics") / "s.db", create=True) as store:
        store.create("b", BanditSpec(dim=2, window="1d", policy="Uniform", parameters={"seed": 1}))
        ids = [store.decide("b", np.eye(2)[:1], [f"a{number}"])[0].decision_id for number in range(MOST_ACTIONS + 2)]
        store.convert("b", [Conversion(decision, 0.5) for decision in ids[:3]])
        metrics = Metrics(store)
        metrics.observe_commit(1, 1, 0.1)
        metrics.observe_request("POST", "/v1/bandits/{name}/decisions", 201, 0.1)
        metrics.count_error("not_found")
        families = list(text_string_to_metric_families(metrics.page().decode()))
    found: dict[str, list[dict[str, str]]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, []).append({**sample.labels, "": str(sample.value)})
    return found


def expressions() -> list[str]:
    rules = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    dashboard = json.loads(DASHBOARD.read_text())
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = [found["query"]["query"] for found in dashboard["templating"]["list"] if found["type"] == "query"]
    return [*rules, *targets, *variables]


def labels_of(expression: str) -> set[str]:
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    matched = re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', expression)
    return {label.strip() for group in grouped for label in group.split(",")} | set(matched)


def test_every_metric_and_label_that_is_named_exists(served: dict[str, list[dict[str, str]]]) -> None:
    named = 0
    for expression in expressions():
        names = set(re.findall(r"\blatecomer_\w+", re.sub(r'"[^"]*"', '""', expression)))
        assert names <= set(served), expression
        known = {label for name in names for labels in served[name] for label in labels} | ADDED
        if names:
            assert labels_of(expression) <= known, expression
        named += len(names)
    assert named > 20
    assert "latecomer_made_up" not in served


def test_every_alarm_has_a_metric_and_a_rule(served: dict[str, list[dict[str, str]]]) -> None:
    series = {(labels["bandit"], labels["alarm"]) for labels in served["latecomer_alarm"]}
    assert series == {("b", id_) for id_ in BANDIT_ALARMS} | {("", id_) for id_ in STORE_ALARMS}
    for pattern in re.findall(r'alarm(?:=|!~)"([^"]+)"', RULES.read_text()):
        assert set(pattern.split("|")) <= {*BANDIT_ALARMS, *STORE_ALARMS}


def test_metrics_by_action_id_are_bounded(served: dict[str, list[dict[str, str]]]) -> None:
    choices = {labels["action"]: float(labels[""]) for labels in served["latecomer_choices_total"]}
    assert choices == {f"a{number}": 1.0 for number in range(MOST_ACTIONS)} | {"": 2.0}
    assert sum(float(labels[""]) for labels in served["latecomer_action_conversions"]) == 3
    assert sum(float(labels[""]) for labels in served["latecomer_action_value"]) == 1.5
    assert served["latecomer_value"] == [{"bandit": "b", "": "1.5"}]


def test_every_alarm_and_every_new_metric_is_on_its_page() -> None:
    text = (DEPLOY.parent / "docs" / "reference" / "alarms.md").read_text()
    for id_ in (*BANDIT_ALARMS, *STORE_ALARMS):
        assert f"| `{id_}` |" in text, id_


def test_the_dashboard_has_a_place_for_every_panel() -> None:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        places = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not places & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= places


def test_promtool_accepts_the_rules() -> None:
    promtool = shutil.which("promtool") or shutil.which("promtool", path=Path(sys.executable).parent)
    if promtool is None:
        pytest.skip("NOT CHECKED: there is no promtool; scripts/install_promtool.sh fetches it")
    command = [promtool, "check", "rules", str(RULES)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr
    assert "8 rules found" in result.stdout
