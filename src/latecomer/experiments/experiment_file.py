"""An experiment as a TOML file describes it: a world, policies by name, and how much of them to play.

What a law or a policy takes is read from its constructor, and what it refuses is said by the constructor; here the
message gets its full key. So a new law needs one line, and a new parameter none.
"""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from latecomer import delays
from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.experiments.paper.released import ReleasedTS, ReleasedUCB
from latecomer.experiments.toml_tables import check_keys, choice, full_key, list_of, located, table_of
from latecomer.policies import registry as catalogue
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.recommended import recommended
from latecomer.simulation import actions
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
    "change point": delays.ChangePoint,
}
POLICIES: Makers[LinearPolicy] = {
    "recommended": recommended,
    **{name: catalogue.policy_class(name) for name in catalogue.policy_names()},
    "ReleasedUCB": ReleasedUCB,
    "ReleasedTS": ReleasedTS,
}
ELSEWHERE = {
    "dim": "it follows from world.theta",
    "seed": "the seed at the top of the file governs every draw",
    "clock": "a simulation counts rounds",
}
"""What a policy takes and a file does not say."""


@dataclass(frozen=True)
class ExperimentFile:
    """What `latecomer.simulate` takes."""

    world: World
    policies: dict[str, LinearPolicy]
    horizon: int
    runs: int = 100
    seed: int = 0


def read(path: str | PathLike[str]) -> ExperimentFile:
    """The experiment that a file describes; every error names the file and the key."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8 text; byte {error.start} is not: save it as UTF-8") from None
    values = read_toml(text, path)
    try:
        return described(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_toml(text: str, path: str | PathLike[str]) -> dict[str, Any]:
    """The tables of a file's text."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def read_law(text: str, *, name: str) -> delays.DelayLaw:
    """A delay law from the inside of a TOML table, such as `law = "geometric", mean = 100`."""
    try:
        table = tomllib.loads(f"law = {{ {text.strip().removeprefix('{').removesuffix('}')} }}")["law"]
    except ValueError as error:
        raise InputError(
            f"{name} must be a table such as 'law = \"geometric\", mean = 100'; got {text!r}: {error}"
        ) from None
    return _law(table, name, DELAYS)


def described(values: Mapping[str, object]) -> ExperimentFile:
    """The experiment of a file's contents."""
    check_keys(values, "", of="a description", needed=("horizon", "world", "policies"), optional=("runs", "seed"))
    least = {"horizon": 1, "runs": 1, "seed": 0}
    numbers = {name: check_integer(name, values[name], least=least[name]) for name in least if name in values}
    world = described_world(values["world"])
    tables = table_of(values["policies"], "policies")
    if not tables:
        raise InputError("policies must hold at least one table, [policies.NAME]; got none")
    policies = {name: _policy(table, full_key("policies", name), world.dim) for name, table in tables.items()}
    return ExperimentFile(world, policies, **numbers)


def described_world(value: object) -> World:
    """The world of a table."""
    table = table_of(value, "world")
    check_keys(table, "world", of="a world", needed=("theta", "actions", "delays"), optional=("reward", "intercept"))
    theta = _theta(table["theta"], "world.theta")
    offer = _offer(table["actions"], "world.actions")
    delay = _law(table["delays"], "world.delays", DELAYS)
    with located("world", table):
        more: dict[str, Any] = {name: table[name] for name in ("reward", "intercept") if name in table}
        return World(theta=theta, actions=offer, delays=delay, **more)


def _theta(value: object, path: str) -> Array:
    """A list; or {dim, value = "uniform"}, all entries the same, or "ramp", 1 to d; of norm 1 where none is given."""
    if isinstance(value, list):
        return np.array(_numbers(value, path), np.float64)
    table = table_of(value, path, otherwise="a list of numbers, or {dim = 5, value = 'uniform'}")
    check_keys(table, path, of="theta", needed=("dim", "value"), optional=("norm",))
    dim = check_integer(f"{path}.dim", table["dim"], least=1)
    norm = check_positive(f"{path}.norm", table.get("norm", 1.0))
    entries = (
        np.ones(dim)
        if check_choice(f"{path}.value", table["value"], ("uniform", "ramp")) == "uniform"
        else np.arange(1.0, dim + 1.0)
    )
    return np.asarray(entries * (norm / np.linalg.norm(entries)))


def _offer(value: object, path: str) -> actions.ActionLaw:
    """A law, or the arms themselves."""
    return actions.Fixed(_rows(value, path)) if isinstance(value, list) else _law(value, path, ACTIONS)


def _policy(value: object, path: str, dim: int) -> LinearPolicy:
    table = table_of(value, path)
    name = choice(table, path, "policy", POLICIES)
    for parameter, why in ELSEWHERE.items():
        if parameter in table:
            raise InputError(f"{path}.{parameter} must be left out: {why}")
    return _made(partial(POLICIES[name], dim), table, path, chosen_by="policy", of=name)


def _law(value: object, path: str, laws: Makers[Made]) -> Made:
    table = table_of(value, path, otherwise="a table such as {law = 'fixed', …}")
    name = choice(table, path, "law", laws)
    return _made(laws[name], table, path, chosen_by="law", of=f"the {name} law")


def _made(make: Callable[..., Made], table: Mapping[str, object], path: str, *, chosen_by: str, of: str) -> Made:
    """Call a constructor with what the table holds besides the key that chose it."""
    parameters = [each for each in inspect.signature(make).parameters.values() if each.name not in ELSEWHERE]
    needed = [each.name for each in parameters if each.default is each.empty]
    check_keys(table, path, of=of, needed=[chosen_by, *needed], optional=[each.name for each in parameters])
    arguments = {
        name: _READERS.get(name, _scalar)(value, f"{path}.{name}") for name, value in table.items() if name != chosen_by
    }
    with located(path, table):
        return make(**arguments)


# ---- values ----


def _scalar(value: object, path: str) -> object:
    if isinstance(value, bool):
        raise InputError(f"{path} must be a number or a word; got {str(value).lower()}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"{path} must fit in 64 bits, as every whole number in TOML; got {value!r:.20}…")
    return value


def _rounds(value: object, path: str) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(
            f"{path} must be a whole number of rounds, for a simulation has no clock; got {value!r}: "
            "divide a time by the length of a round"
        )
    return value


def _numbers(value: object, path: str) -> list[float]:
    numbers: list[float] = []
    for i, entry in enumerate(list_of(value, path, "numbers")):
        number = _scalar(entry, f"{path}[{i}]")
        if not isinstance(number, int | float):
            raise InputError(f"{path}[{i}] must be a number; got {entry!r}")
        numbers.append(number)
    return numbers


def _rows(value: object, path: str) -> list[list[float]]:
    rows = [_numbers(row, f"{path}[{i}]") for i, row in enumerate(list_of(value, path, "rows, each a list of numbers"))]
    for i, row in enumerate(rows):
        if not row or len(row) != len(rows[0]):
            raise InputError(f"{path}[{i}] must have a number for each dimension, as other rows have; got {row!r}")
    return rows


def _laws(value: object, path: str) -> list[delays.DelayLaw]:
    return [_law(entry, f"{path}[{i}]", DELAYS) for i, entry in enumerate(list_of(value, path, "tables"))]


def _delay_law(value: object, path: str) -> delays.DelayLaw:
    return _law(value, path, DELAYS)


_READERS: dict[str, Callable[[object, str], object]] = {
    "after": _delay_law,
    "arms": _rows,
    "before": _delay_law,
    "delays": _numbers,
    "laws": _laws,
    "weights": _numbers,
    "window": _rounds,
}
"""By parameter, for one name means one thing in every law and policy; the others are numbers and words."""
