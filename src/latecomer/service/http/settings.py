"""The settings of a server, from a TOML file, the environment and the command line; the later ones win."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from latecomer.errors import InputError

PREFIX = "LATECOMER_"
"""`LATECOMER_PORT` is the environment's name for `port`."""

_PORT = f"{PREFIX}PORT"

Count = Annotated[int, Meta(ge=1, le=1 << 40)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting, with its default; docs/reference/service.md says what each means."""

    store: str = "latecomer.db"
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    keys: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    max_body: Count = 2 << 20
    max_actions: Count = 1000
    max_terms: Count = 100_000
    max_dim: Count = 1024
    max_bandits: Count = 100
    max_connections: Count = 1024
    max_connections_per_address: Count = 512
    header_timeout: Seconds = 10.0
    body_timeout: Seconds = 10.0
    write_timeout: Seconds = 10.0
    drain_timeout: Seconds = 6.0
    snapshot_every: Count = 100_000
    retention: str = ""
    require_keys: bool | None = None
    create: bool = False
    personalizer_bandit: str = "personalizer"

    @property
    def keys_file(self) -> Path:
        """Return the path of the key file: `keys`, or a file beside the store."""
        return Path(self.keys or f"{self.store}.keys")


def read_settings(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the settings: `given` (the command line) over the environment over the file over the defaults.

    >>> read_settings(environment={"LATECOMER_PORT": "9000"}).port
    9000
    """
    found = _from_file(file) if file is not None else {}
    found |= _from_environment(os.environ if environment is None else environment)
    found |= {name: value for name, value in (given or {}).items() if value is not None}
    return _convert(found, "a setting")


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"--config must be a file that can be read; got '{path}' ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    _convert(found, str(path))
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name in setting_names():
        variable = PREFIX + name.upper()
        if variable in environment and not _is_injected(variable, environment):
            found[name] = environment[variable]
            _check_variable(variable, name, environment[variable])
    return found


def _check_variable(variable: str, name: str, value: str) -> None:
    try:
        msgspec.convert({name: value}, Settings, strict=False)
    except msgspec.ValidationError as error:
        rule, default = str(error).partition(" - at ")[0], getattr(Settings(), name)
        raise InputError(
            f"{variable}={value!r} of the environment is wrong: {rule}; give a value such as {default!r}, or unset it"
        ) from None


def _is_injected(variable: str, environment: Mapping[str, str]) -> bool:
    """Tell whether Kubernetes has set the variable: LATECOMER_PORT=tcp://… where a service is named latecomer."""
    return variable == _PORT and environment[variable].startswith("tcp://")


def find_injected(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that are ignored because Kubernetes has set them, not the operator.

    >>> find_injected({"LATECOMER_PORT": "tcp://10.0.0.1:80", "LATECOMER_HOST": "0.0.0.0"})
    {'LATECOMER_PORT': 'tcp://10.0.0.1:80'}
    """
    found = os.environ if environment is None else environment
    return {variable: value for variable, value in found.items() if _is_injected(variable, found)}


def setting_names() -> tuple[str, ...]:
    """List the names of the settings."""
    return Settings.__struct_fields__


def _convert(found: dict[str, Any], where: str) -> Settings:
    unknown = sorted(set(found) - set(setting_names()))
    if unknown:
        raise InputError(f"{where}: {unknown[0]!r} is not a setting; there are {', '.join(setting_names())}")
    try:
        return msgspec.convert(found, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{where} is wrong: {error}") from None
