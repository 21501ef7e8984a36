"""An experiment as a TOML file describes it: a world, policies by name, and how much of them to play.

The keys of a law or a policy are the parameters of its constructor, which also checks them; here the message gets its
full key. So a new law needs one line, and a new parameter none.
"""

import inspect
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from latecomer import delays
from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.experiments.log_delays import LAW, complete_log_laws, read_log_law
from latecomer.experiments.paper.released_code import ReleasedTS, ReleasedUCB
from latecomer.experiments.toml_tables import (
    check_key_choice,
    check_keys,
    check_list,
    check_table,
    full_key,
    locate_errors,
)
from latecomer.policies import registry
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.recommended import recommended
from latecomer.simulation import actions
from latecomer.simulation.stages import Stage
from latecomer.simulation.world import World
from latecomer.validation import check_choice, check_integer, check_positive

Made = TypeVar("Made")
Makers = Mapping[str, Callable[..., Made]]

ACTIONS: Makers[actions.ActionLaw] = {
    "binary": actions.Binary,
    "uniform": actions.Uniform,
    "sphere": actions.Sphere,
    "fixed": actions.Fixed,
    "unit vectors": actions.UnitVectors,
    "random fixed": actions.RandomFixed,
    "rotating": actions.Rotating,
    "one hot": actions.OneHot,
}
DELAYS: Makers[delays.DelayLaw] = {
    "geometric": delays.Geometric,
    "fixed": delays.Fixed,
    "never": delays.Never,
    "pareto": delays.Pareto,
    "lognormal": delays.LogNormal,
    "mixture": delays.Mixture,
    "empirical": delays.Empirical,
    "criteo": delays.Criteo,
    "histogram": delays.Histogram,
    LAW: read_log_law,
    "change point": delays.ChangePoint,
    "batched": delays.Batched,
}
POLICIES: Makers[LinearPolicy] = {
    "recommended": recommended,
    **{name: registry.policy_class(name) for name in registry.policy_names()},
    "ReleasedUCB": ReleasedUCB,
    "ReleasedTS": ReleasedTS,
}
ELSEWHERE = {
    "dim": "it follows from world.theta",
    "seed": "the seed at the top of the file governs every draw",
    "clock": "a simulation counts rounds",
}
"""Parameters of a policy that a file leaves out, and why."""


@dataclass(frozen=True)
class ExperimentFile:
    """The arguments of `latecomer.simulate`."""

    world: World
    policies: dict[str, LinearPolicy]
    horizon: int
    runs: int = 100
    seed: int = 0
    per_day: float | None = None


def read_experiment(path: str | PathLike[str]) -> ExperimentFile:
    """Read the experiment that a file describes; every error names the file and the key."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8 text; byte {error.start} is not: save it as UTF-8") from None
    values = read_toml(text, path)
    try:
        return parse_experiment(values, folder=Path(path).parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_toml(text: str, path: str | PathLike[str]) -> dict[str, Any]:
    """Parse the tables of a file's text."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def read_law(text: str, *, name: str) -> delays.DelayLaw:
    """Parse a delay law from the inside of a TOML table, such as `law = "geometric", mean = 100`."""
    try:
        table = tomllib.loads(f"law = {{ {text.strip().removeprefix('{').removesuffix('}')} }}")["law"]
    except ValueError as error:
        raise InputError(
            f"{name} must be a table such as 'law = \"geometric\", mean = 100'; got {text!r}: {error}", field=name
        ) from None
    return _parse_law(table, name, DELAYS)


def parse_experiment(values: Mapping[str, object], *, folder: Path = Path()) -> ExperimentFile:
    """Parse the contents of a file; paths in it begin at its folder."""
    optional = ("runs", "seed", "per_day")
    check_keys(values, "", of="an experiment", needed=("horizon", "world", "policies"), optional=optional)
    per_day = check_positive("per_day", values["per_day"]) if "per_day" in values else None
    least = {"horizon": 1, "runs": 1, "seed": 0}
    numbers = {name: check_integer(name, values[name], least=least[name]) for name in least if name in values}
    world = parse_world(complete_log_laws(values["world"], folder=folder, per_day=per_day))
    tables = check_table(values["policies"], "policies")
    if not tables:
        raise InputError("policies must hold at least one table, [policies.NAME]; got none", field="policies")
    policies = {name: _parse_policy(table, full_key("policies", name), world.dim) for name, table in tables.items()}
    return ExperimentFile(world, policies, per_day=per_day, **numbers)


def parse_world(value: object) -> World:
    """Parse the table of a world."""
    table = check_table(value, "world")
    check_keys(
        table,
        "world",
        of="a world",
        needed=("theta", "actions", "delays"),
        optional=("reward", "intercept", "delay_slope", "change", "stage"),
    )
    theta = _parse_theta(table["theta"], "world.theta")
    action_law = _parse_actions(table["actions"], "world.actions")
    delay = _parse_law(table["delays"], "world.delays", DELAYS)
    with locate_errors("world", table):
        more: dict[str, Any] = {name: table[name] for name in ("reward", "intercept", "change") if name in table}
        if "delay_slope" in table:
            more["delay_slope"] = _parse_numbers(table["delay_slope"], "world.delay_slope")
        if "stage" in table:
            more["stage"] = _parse_stage(table["stage"], "world.stage")
        return World(theta=theta, actions=action_law, delays=delay, **more)


def _parse_stage(value: object, path: str) -> Stage:
    table = check_table(value, path)
    check_keys(table, path, of="a stage", needed=("delays",), optional=("precision", "share"))
    given = {name: _parse_scalar(value, f"{path}.{name}") for name, value in table.items() if name != "delays"}
    return Stage(delays=_parse_delay_law(table["delays"], f"{path}.delays"), **given)  # type: ignore[arg-type]


def _parse_theta(value: object, path: str) -> Array | dict[int, Array]:
    """Parse one θ, or {0 = θ, 3000 = θ'}: what it is from each of these rounds on."""
    if isinstance(value, dict) and value and all(str(round).isdecimal() for round in value):
        return {int(round): _parse_vector(each, full_key(path, round)) for round, each in value.items()}
    return _parse_vector(value, path)


def _parse_vector(value: object, path: str) -> Array:
    """Parse a list; or {dim, value, norm}: entries all the same for "uniform", 1 to d for "ramp"; norm 1 by default."""
    if isinstance(value, list):
        return np.array(_parse_numbers(value, path), np.float64)
    table = check_table(value, path, otherwise="a list of numbers, or {dim = 5, value = 'uniform'}")
    check_keys(table, path, of="theta", needed=("dim", "value"), optional=("norm",))
    dim = check_integer(f"{path}.dim", table["dim"], least=1)
    norm = check_positive(f"{path}.norm", table.get("norm", 1.0))
    entries = (
        np.ones(dim)
        if check_choice(f"{path}.value", table["value"], ("uniform", "ramp")) == "uniform"
        else np.arange(1.0, dim + 1.0)
    )
    return np.asarray(entries * (norm / np.linalg.norm(entries)))


def _parse_actions(value: object, path: str) -> actions.ActionLaw:
    """Parse a law of actions, or the arms themselves."""
    return actions.Fixed(_parse_rows(value, path)) if isinstance(value, list) else _parse_law(value, path, ACTIONS)


def _parse_policy(value: object, path: str, dim: int) -> LinearPolicy:
    table = check_table(value, path)
    name = check_key_choice(table, path, "policy", POLICIES)
    for parameter, why in ELSEWHERE.items():
        if parameter in table:
            raise InputError(f"{path}.{parameter} must be left out: {why}")
    return _construct(partial(POLICIES[name], dim), table, path, chosen_by="policy", of=name, hidden=ELSEWHERE)


def _parse_law(value: object, path: str, laws: Makers[Made]) -> Made:
    table = check_table(value, path, otherwise="a table such as {law = 'fixed', …}")
    name = check_key_choice(table, path, "law", laws)
    return _construct(laws[name], table, path, chosen_by="law", of=f"the {name} law")


def _construct(
    make: Callable[..., Made],
    table: Mapping[str, object],
    path: str,
    *,
    chosen_by: str,
    of: str,
    hidden: Collection[str] = (),
) -> Made:
    """Call a constructor with the keys of a table, but the one that chose it; `hidden` parameters are not keys."""
    parameters = [each for each in inspect.signature(make).parameters.values() if each.name not in hidden]
    needed = [each.name for each in parameters if each.default is each.empty]
    check_keys(table, path, of=of, needed=[chosen_by, *needed], optional=[each.name for each in parameters])
    arguments = {
        name: _READERS.get(name, _parse_scalar)(value, f"{path}.{name}")
        for name, value in table.items()
        if name != chosen_by
    }
    with locate_errors(path, table):
        return make(**arguments)


# ---- values ----


def _parse_scalar(value: object, path: str) -> object:
    if isinstance(value, bool):
        raise InputError(f"{path} must be a number or a word; got {str(value).lower()}", field=path)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"{path} must fit in 64 bits, as every whole number in TOML; got {value!r:.20}…", field=path)
    return value


def _parse_rounds(value: object, path: str) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(
            f"{path} must be a whole number of rounds, for a simulation has no clock; got {value!r}: "
            "divide a time by the length of a round",
            field=path,
        )
    return value


def _parse_numbers(value: object, path: str) -> list[float]:
    numbers: list[float] = []
    for i, entry in enumerate(check_list(value, path, "numbers")):
        number = _parse_scalar(entry, f"{path}[{i}]")
        if not isinstance(number, int | float):
            raise InputError(f"{path}[{i}] must be a number; got {entry!r}")
        numbers.append(number)
    return numbers


def _parse_rows(value: object, path: str) -> list[list[float]]:
    rows = [
        _parse_numbers(row, f"{path}[{i}]")
        for i, row in enumerate(check_list(value, path, "rows, each a list of numbers"))
    ]
    for i, row in enumerate(rows):
        if not row or len(row) != len(rows[0]):
            raise InputError(f"{path}[{i}] must have a number for each dimension, as other rows have; got {row!r}")
    return rows


def _parse_laws(value: object, path: str) -> list[delays.DelayLaw]:
    return [_parse_law(entry, f"{path}[{i}]", DELAYS) for i, entry in enumerate(check_list(value, path, "tables"))]


def _parse_delay_law(value: object, path: str) -> delays.DelayLaw:
    return _parse_law(value, path, DELAYS)


_READERS: dict[str, Callable[[object, str], object]] = {
    "after": _parse_delay_law,
    "arms": _parse_rows,
    "before": _parse_delay_law,
    "delays": _parse_numbers,
    "ends": _parse_numbers,
    "laws": _parse_laws,
    "of": _parse_delay_law,
    "shares": _parse_numbers,
    "table": _parse_rows,
    "weights": _parse_numbers,
    "window": _parse_rounds,
}
"""Parsers by parameter, for one name means one thing in every law and policy; the others are numbers and words."""
