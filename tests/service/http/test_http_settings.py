"""Settings: the command line over the environment over the file, each documented, and mistakes named."""

import re
from pathlib import Path

import pytest
from servers import run_server

from latecomer.errors import InputError
from latecomer.service.http.settings import PREFIX, Settings, read_settings, setting_names
from latecomer.tiers import code_cache, tiered_kernel

ROOT = Path(__file__).parents[3]
MACHINE_CODE = {code_cache.VARIABLE, tiered_kernel.VARIABLE}
"""Variables of every process, not of servers alone."""


def test_the_command_line_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('port = 1\nhost = "127.0.0.2"\nmax_body = 3\nbody_timeout = 2.5\n')
    found = read_settings(file, environment={"LATECOMER_PORT": "2", "LATECOMER_HOST": "127.0.0.3"}, given={"port": 3})
    assert (found.port, found.host, found.max_body, found.body_timeout) == (3, "127.0.0.3", 3, 2.5)
    assert read_settings(environment={}) == Settings()
    assert read_settings(environment={}, given={"store": "x/y.db"}).keys_file == Path("x/y.db.keys")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", r"'prot' is not a setting; did you mean 'port'\?"),
        ("zzz = 1", "'zzz' is not a setting; there are store, host"),
        ("port = 70000", "port must be a whole number from 0 to 65,535; got 70000"),
        ("port = ", "is not valid TOML"),
        ('log_level = "loud"', "log_level must be one of debug, error, info, warning; got 'loud'"),
        ("max_body = 0", "max_body"),
        ("[port]", "port"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        read_settings(file, environment={})
    assert "a.toml" in str(raised.value)


def test_a_mistake_in_the_environment_is_named() -> None:
    for variable, value in {"LATECOMER_PORT": "many", "LATECOMER_LOG_LEVEL": "loud", "LATECOMER_MAX_BODY": ""}.items():
        with pytest.raises(InputError, match=rf"^{variable} must be .*; got '{value}': give another, or unset it$"):
            read_settings(environment={variable: value})


def test_a_mistake_of_the_command_line_is_named_by_its_option() -> None:
    for name, value, said in (
        ("port", 70000, "--port must be a whole number from 0 to 65,535; got 70000"),
        ("log_level", "loud", "--log-level must be one of debug, error, info, warning; got 'loud'"),
    ):
        with pytest.raises(InputError, match=f"^{said}$"):
            read_settings(environment={}, given={name: value})


def test_a_variable_that_is_no_setting_is_logged_at_the_start(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db", LATECOMER_PROT="9999") as server:
        (warned,) = server.logged("an unknown variable is ignored; did you mean 'LATECOMER_PORT'?")
    assert warned["variable"] == "LATECOMER_PROT"


def test_every_setting_is_documented_with_its_default() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| `(\w+)` \| (.+?) \| (.+?) \|$", (ROOT / "docs/reference/service.md").read_text(), re.M
    )
    documented = {name: (variable, default) for name, variable, default, _ in rows}
    assert list(documented) == list(setting_names())
    for name, default in msgspec_defaults().items():
        depends = {"keys": "`STORE.keys`", "retention": "as before, or `7d`", "require_keys": "as before, or no"}
        assert (default in ("", None)) == (name in depends)
        assert documented[name] == (PREFIX + name.upper(), depends.get(name, f"`{default}`"))


@pytest.mark.parametrize("file", ["latecomer.service", "Dockerfile"])
def test_deployment_files_set_known_settings(file: str) -> None:
    used = set(re.findall(rf"\b{PREFIX}\w+(?==)", (ROOT / "deploy" / file).read_text()))
    assert used
    assert used <= {PREFIX + name.upper() for name in setting_names()} | MACHINE_CODE


def test_variables_of_machine_code_are_documented_and_no_settings() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/command-line.md").read_text(), re.M)
    assert set(rows) >= MACHINE_CODE
    assert not {PREFIX + name.upper() for name in setting_names()} & MACHINE_CODE


def test_a_port_injected_by_kubernetes_is_ignored_and_logged(tmp_path: Path) -> None:
    """For a service named latecomer every pod gets LATECOMER_PORT=tcp://…, and nobody meant the setting."""
    injected = {"LATECOMER_PORT": "tcp://10.0.0.1:80", "LATECOMER_SERVICE_PORT": "80"}
    assert read_settings(environment=injected).port == Settings().port
    with run_server(tmp_path / "a.db", LATECOMER_PORT=injected["LATECOMER_PORT"]) as server:
        (said,) = server.logged("a variable that Kubernetes has set is ignored")
        assert (said["variable"], said["value"]) == ("LATECOMER_PORT", "tcp://10.0.0.1:80")
        assert "enableServiceLinks: false" in said["remedy"]
        assert server.http.get("/readyz").status_code == 200


def msgspec_defaults() -> dict[str, object]:
    return dict(zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True))
