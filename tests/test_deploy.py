"""The deployment files: they parse, have known keys alone, set known settings, and probe paths that there are."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from latecomer.cli.main import app
from latecomer.service.http.operations import OPERATIONS
from latecomer.service.http.settings import PREFIX, Settings, read_settings, setting_names

DEPLOY = Path(__file__).parents[1] / "deploy"
SETTINGS = {PREFIX + name.upper() for name in setting_names()}
PATHS = {operation.path for operation in OPERATIONS if operation.method == "GET"}
FILES = ["compose.yaml", "kubernetes.yaml"]
COMMAND: Any = typer.main.get_command(app)

COMPOSE_KEYS = {"services", "configs", "volumes", "x-replica"}
SERVICE_KEYS = {
    *("image", "build", "command", "entrypoint", "environment", "depends_on", "healthcheck", "restart", "ports"),
    *("stop_grace_period", "read_only", "tmpfs", "cap_drop", "security_opt", "volumes", "configs"),
}
HEALTHCHECK_KEYS = {"test", "interval", "timeout", "retries", "start_period"}
CONDITIONS = {"service_healthy", "service_completed_successfully"}

POD = {
    *("restartPolicy", "automountServiceAccountToken", "enableServiceLinks", "securityContext", "containers"),
    *("volumes", "terminationGracePeriodSeconds", "topologySpreadConstraints"),
}
CONTAINER = {
    *("name", "image", "args", "env", "envFrom", "ports", "resources", "securityContext", "volumeMounts"),
    *("startupProbe", "readinessProbe", "livenessProbe", "lifecycle"),
}
PROBE = {"httpGet", "periodSeconds", "timeoutSeconds", "failureThreshold"}
KINDS = {
    "Secret": ("v1", {"type", "stringData"}, set()),
    "Job": ("batch/v1", {"spec"}, {"backoffLimit", "activeDeadlineSeconds", "template"}),
    "Deployment": (
        "apps/v1",
        {"spec"},
        {"replicas", "minReadySeconds", "revisionHistoryLimit", "strategy", "selector", "template"},
    ),
    "PodDisruptionBudget": ("policy/v1", {"spec"}, {"minAvailable", "selector"}),
    "Service": ("v1", {"spec"}, {"type", "selector", "ports"}),
}


class _Strict(yaml.SafeLoader):  # type: ignore[misc]
    """YAML in which a key may be there once."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        assert len(keys) == len(set(keys)), f"a key is there twice: {keys}"
        return super().construct_mapping(node, deep)


def documents(file: str) -> list[Any]:
    with (DEPLOY / file).open(encoding="utf-8") as stream:
        return [found for found in yaml.load_all(stream, Loader=_Strict) if found is not None]


def compose() -> dict[str, Any]:
    (found,) = documents("compose.yaml")
    assert isinstance(found, dict)
    return found


def replicas() -> dict[str, Any]:
    return {name: service for name, service in compose()["services"].items() if name.startswith("replica-")}


def by_kind(kind: str) -> dict[str, Any]:
    return {found["metadata"]["name"]: found for found in documents("kubernetes.yaml") if found["kind"] == kind}


def pods() -> Iterator[Any]:
    for kind in ("Deployment", "Job"):
        for found in by_kind(kind).values():
            yield found["spec"]["template"]


def deployment() -> Any:
    return by_kind("Deployment")["latecomer"]


def container() -> Any:
    (found,) = deployment()["spec"]["template"]["spec"]["containers"]
    return found


# ---- both ----


@pytest.mark.parametrize("file", FILES)
def test_every_variable_is_a_setting(file: str) -> None:
    used = set(re.findall(rf"\b{PREFIX}\w+", (DEPLOY / file).read_text()))
    assert used
    assert used <= SETTINGS


@pytest.mark.parametrize("file", FILES)
def test_no_password_is_on_a_command_line(file: str) -> None:
    """`ps` shows command lines: an address in one has a user and no password."""
    words = [*all_words(documents(file), "command"), *all_words(documents(file), "args")]
    assert words
    for address in (word for word in words if "://" in word):
        assert not re.search(r"://[^/@]*:[^/@]*@", address), address
    assert not any("PASSWORD" in word for word in words)


def all_words(found: Any, key: str) -> Iterator[str]:
    """Every text under a key, wherever it is."""
    if isinstance(found, list):
        for entry in found:
            yield from all_words(entry, key)
    elif isinstance(found, dict):
        for name, entry in found.items():
            if name == key:
                yield from (str(word) for word in (entry if isinstance(entry, list) else [entry]))
            else:
                yield from all_words(entry, key)


def commands() -> list[list[str]]:
    """Every command line of `latecomer` in the deployment files."""
    services = [service for service in compose()["services"].values() if service["image"] == "latecomer"]
    found = [service["command"] for service in services]
    return found + [entry["args"] for pod in pods() for entry in pod["spec"]["containers"]]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_are_verbs_with_known_options(words: list[str]) -> None:
    command = COMMAND
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    assert not hasattr(command, "commands"), f"{words[:1]} is no verb"
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= known
    arguments = [word for word in words if not word.startswith("-")]
    assert len(arguments) <= sum(parameter.param_type_name == "argument" for parameter in command.params)


# ---- compose.yaml ----


def test_compose_has_known_keys() -> None:
    found = compose()
    assert set(found) <= COMPOSE_KEYS
    for name, service in found["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service.get("healthcheck", {})) <= HEALTHCHECK_KEYS, name
        for config in service.get("configs", ()):
            assert config["source"] in found["configs"]
        for volume in service.get("volumes", ()):
            assert volume.partition(":")[0] in found["volumes"]


def test_compose_waits_for_services_that_there_are() -> None:
    services = compose()["services"]
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            assert how["condition"] in CONDITIONS
            assert (how["condition"] == "service_healthy") == ("healthcheck" in services[name]), name


def test_compose_starts_replicas_with_valid_settings_that_are_checked_by_readiness() -> None:
    assert len(replicas()) >= 2
    for service in replicas().values():
        settings = read_settings(environment={name: str(value) for name, value in service["environment"].items()})
        assert settings.store.startswith("postgresql://")
        assert settings.host != Settings().host
        (url,) = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", service["healthcheck"]["test"][-1])
        assert url == (str(settings.port), "/readyz")
        assert url[1] in PATHS
        compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")


def test_the_balancer_checks_every_replica_by_its_readiness() -> None:
    config = compose()["configs"]["balancer"]["content"]
    assert set(re.findall(r"^ *server (\S+) (\S+):8080$", config, re.M)) == {(name, name) for name in replicas()}
    (path,) = re.findall(r"option httpchk GET (\S+)", config)
    assert path in PATHS


def test_compose_publishes_the_balancer_alone_and_to_this_machine_alone() -> None:
    published = {name: service["ports"] for name, service in compose()["services"].items() if "ports" in service}
    assert set(published) == {"balancer"}
    assert all(port.startswith("127.0.0.1:") for port in published["balancer"])


# ---- kubernetes.yaml ----


def test_the_manifest_has_known_kinds_and_keys() -> None:
    found = documents("kubernetes.yaml")
    assert {entry["kind"] for entry in found} == set(KINDS)
    for entry in found:
        version, keys, spec = KINDS[entry["kind"]]
        assert entry["apiVersion"] == version
        assert set(entry) == {"apiVersion", "kind", "metadata"} | keys
        assert set(entry.get("spec", {})) <= spec
    for pod in pods():
        assert set(pod) == {"metadata", "spec"}
        assert set(pod["spec"]) <= POD
        for entry in pod["spec"]["containers"]:
            assert set(entry) <= CONTAINER


def test_every_selector_finds_the_pods_of_the_deployment_and_no_others() -> None:
    labels = deployment()["spec"]["template"]["metadata"]["labels"]
    (budget,), (service,) = by_kind("PodDisruptionBudget").values(), by_kind("Service").values()
    for selector in (
        deployment()["spec"]["selector"]["matchLabels"],
        budget["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
    ):
        assert selector.items() <= labels.items()
        for job in by_kind("Job").values():
            assert not selector.items() <= job["spec"]["template"]["metadata"]["labels"].items()
    assert budget["spec"]["minAvailable"] < deployment()["spec"]["replicas"]


def test_probes_ask_for_paths_that_there_are() -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    expected = {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    for name, path in expected.items():
        probe = container()[name]
        assert set(probe) <= PROBE
        assert probe["httpGet"]["path"] == path
        assert path in PATHS
        assert probe["httpGet"]["port"] in ports
    (service,) = by_kind("Service").values()
    assert all(port["targetPort"] in ports for port in service["spec"]["ports"])


def test_the_pods_have_valid_settings_and_their_secrets_are_there() -> None:
    secrets = by_kind("Secret")
    for pod in pods():
        for entry in pod["spec"]["containers"]:
            named = [source["secretRef"]["name"] for source in entry["envFrom"]]
            assert set(named) <= set(secrets)
            environment = {variable["name"]: variable["value"] for variable in entry.get("env", ())}
            assert all(isinstance(value, str) for value in environment.values())
            for name in named:
                environment |= secrets[name]["stringData"]
            read_settings(environment=environment)
    environment = {variable["name"]: variable["value"] for variable in container()["env"]}
    environment |= secrets["latecomer-store"]["stringData"]
    settings = read_settings(environment=environment)
    assert settings.store.startswith("postgresql://")
    assert settings.port == container()["ports"][0]["containerPort"]


def test_an_update_takes_no_replica_away_before_the_next_is_ready() -> None:
    spec = deployment()["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    pod = spec["template"]["spec"]
    pause = re.findall(r"sleep\((\d+)\)", container()["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert int(pause[0]) + 10 < pod["terminationGracePeriodSeconds"], "it needs ten seconds to drain"
    assert pod["enableServiceLinks"] is False
    assert "latecomer" not in by_kind("Service"), "Kubernetes would set LATECOMER_PORT"
