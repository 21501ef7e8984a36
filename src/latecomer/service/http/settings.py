"""The settings of a server, from a TOML file, the environment and the command line; the later ones win."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, inspect

from latecomer.errors import InputError
from latecomer.tiers import code_cache, tiered_kernel
from latecomer.validation import suggest

PREFIX = "LATECOMER_"
"""`LATECOMER_PORT` is the environment's name for `port`."""

_PORT = f"{PREFIX}PORT"
_INJECTED = re.compile(rf"{PREFIX}(SERVICE|PORT)_")
"""Other variables that Kubernetes sets where a service is named latecomer."""
_OTHER_VARIABLES = (f"{PREFIX}KEY", code_cache.VARIABLE, tiered_kernel.VARIABLE)
"""Variables that are no settings of a server: the key of a command, and those of machine code."""

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
    for name, value in (given or {}).items():
        if value is not None:
            found[name] = _check_value(name, value, f"--{name.replace('_', '-')}")
    return msgspec.convert(found, Settings)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"--config must be a file that can be read; got '{path}' ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    known = setting_names()
    for name, value in found.items():
        if name not in known:
            remedy = suggest(name, known) or f"; there are {', '.join(known)}"
            raise InputError(f"{path}: {name!r} is not a setting{remedy}")
        found[name] = _check_value(name, value, f"{path}: {name}")
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name in setting_names():
        variable = PREFIX + name.upper()
        if variable in environment and not _is_injected(variable, environment):
            found[name] = _check_value(name, environment[variable], variable, remedy=": give another, or unset it")
    return found


def _check_value(name: str, value: object, shown: str, *, remedy: str = "") -> object:
    """Return a setting's value in its type; the error calls it `shown`, and says what it must be."""
    try:
        return getattr(msgspec.convert({name: value}, Settings, strict=False), name)
    except msgspec.ValidationError:
        raise InputError(f"{shown} must be {_describe_rule(name)}; got {value!r}{remedy}") from None


def _describe_rule(name: str) -> str:
    """Say which values a setting may have."""
    (kind,) = (field.type for field in inspect.type_info(Settings).fields if field.name == name)  # type: ignore[attr-defined]
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, inspect.IntType):
        return f"a whole number from {kind.ge:,} to {kind.le:,}"
    if isinstance(kind, inspect.FloatType):
        return f"a number above {kind.gt:g}, and at most {kind.le:g}"
    return "a text" if isinstance(kind, inspect.StrType) else "true or false"


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


def find_unknown(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that look like settings and are none, each with what may have been meant.

    Those that Kubernetes sets for a service named latecomer are left out.

    >>> find_unknown({"LATECOMER_PROT": "9999", "LATECOMER_KEY": "…", "LATECOMER_SERVICE_HOST": "10.0.0.1"})
    {'LATECOMER_PROT': "; did you mean 'LATECOMER_PORT'?"}
    """
    settings = [PREFIX + name.upper() for name in setting_names()]
    given = os.environ if environment is None else environment
    unknown = [name for name in given if name.startswith(PREFIX) and name not in (*settings, *_OTHER_VARIABLES)]
    return {name: suggest(name, settings) for name in unknown if not _INJECTED.match(name)}


def setting_names() -> tuple[str, ...]:
    """List the names of the settings."""
    return Settings.__struct_fields__
