"""An experiment as a TOML file describes it: a world, policies by name, and how much of them to play.

What a law or a policy takes is read from its constructor, and what it refuses is said by the constructor; here the
message gets its full key. So a new law needs one line, and a new parameter none.
"""

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np

from latecomer import delays
from latecomer.arguments import one_of, whole
from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.experiments.released import ReleasedTS, ReleasedUCB
from latecomer.policies import catalogue
from latecomer.policies.learner import Learner
from latecomer.simulation import actions
from latecomer.simulation.world import World

Made = TypeVar("Made")
Makers = Mapping[str, Callable[..., Made]]

ACTIONS: Makers[actions.ActionLaw] = {
    "binary": actions.Binary,
    "uniform": actions.Uniform,
    "sphere": actions.Sphere,
    "fixed": actions.Fixed,
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
}
POLICIES: Makers[Learner] = {
    **{name: catalogue.policy_class(name) for name in catalogue.POLICIES},
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
class Description:
    """What `latecomer.simulate` takes."""

    world: World
    policies: dict[str, Learner]
    horizon: int
    runs: int = 100
    seed: int = 0


def read(path: str | PathLike[str]) -> Description:
    """The experiment that a file describes; every error names the file and the key."""
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8 text; byte {error.start} is not: save it as UTF-8") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    try:
        return described(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_law(text: str, *, name: str) -> delays.DelayLaw:
    """A delay law from the inside of a TOML table, such as `law = "geometric", mean = 100`."""
    try:
        table = tomllib.loads(f"law = {{ {text.strip().removeprefix('{').removesuffix('}')} }}")["law"]
    except ValueError as error:
        raise InputError(
            f"{name} must be a table such as 'law = \"geometric\", mean = 100'; got {text!r}: {error}"
        ) from None
    return _law(table, name, DELAYS)


def described(values: Mapping[str, object]) -> Description:
    """The experiment of a file's contents."""
    _check_keys(values, "", of="a description", needed=("horizon", "world", "policies"), optional=("runs", "seed"))
    least = {"horizon": 1, "runs": 1, "seed": 0}
    numbers = {name: whole(name, values[name], least=least[name]) for name in least if name in values}
    world = _world(values["world"])
    tables = _table(values["policies"], "policies")
    if not tables:
        raise InputError("policies must hold at least one table, [policies.NAME]; got none")
    policies = {name: _policy(table, _key("policies", name), world.dim) for name, table in tables.items()}
    return Description(world, policies, **numbers)


def _world(value: object) -> World:
    table = _table(value, "world")
    _check_keys(table, "world", of="a world", needed=("theta", "actions", "delays"))
    theta = _theta(table["theta"], "world.theta")
    offer = _offer(table["actions"], "world.actions")
    delay = _law(table["delays"], "world.delays", DELAYS)
    with _located("world", table):
        return World(theta=theta, actions=offer, delays=delay)


def _theta(value: object, path: str) -> Array:
    """A list, or {dim, value = "uniform"}: all entries the same, of norm 1."""
    if isinstance(value, list):
        return np.array(_numbers(value, path), np.float64)
    table = _table(value, path, otherwise="a list of numbers, or {dim = 5, value = 'uniform'}")
    _check_keys(table, path, of="theta", needed=("dim", "value"))
    dim = whole(f"{path}.dim", table["dim"], least=1)
    one_of(f"{path}.value", table["value"], ("uniform",))
    return np.full(dim, dim**-0.5)


def _offer(value: object, path: str) -> actions.ActionLaw:
    """A law, or the arms themselves."""
    return actions.Fixed(_rows(value, path)) if isinstance(value, list) else _law(value, path, ACTIONS)


def _policy(value: object, path: str, dim: int) -> Learner:
    table = _table(value, path)
    name = _choice(table, path, "policy", POLICIES)
    for parameter, why in ELSEWHERE.items():
        if parameter in table:
            raise InputError(f"{path}.{parameter} must be left out: {why}")
    return _made(partial(POLICIES[name], dim), table, path, chosen_by="policy", of=name)


def _law(value: object, path: str, laws: Makers[Made]) -> Made:
    table = _table(value, path, otherwise="a table such as {law = 'fixed', …}")
    name = _choice(table, path, "law", laws)
    return _made(laws[name], table, path, chosen_by="law", of=f"the {name} law")


def _made(make: Callable[..., Made], table: Mapping[str, object], path: str, *, chosen_by: str, of: str) -> Made:
    """Call a constructor with what the table holds besides the key that chose it."""
    parameters = [each for each in inspect.signature(make).parameters.values() if each.name not in ELSEWHERE]
    needed = [each.name for each in parameters if each.default is each.empty]
    _check_keys(table, path, of=of, needed=[chosen_by, *needed], optional=[each.name for each in parameters])
    arguments = {
        name: _READERS.get(name, _scalar)(value, f"{path}.{name}") for name, value in table.items() if name != chosen_by
    }
    with _located(path, table):
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
    for i, entry in enumerate(_list(value, path, "numbers")):
        number = _scalar(entry, f"{path}[{i}]")
        if not isinstance(number, int | float):
            raise InputError(f"{path}[{i}] must be a number; got {entry!r}")
        numbers.append(number)
    return numbers


def _rows(value: object, path: str) -> list[list[float]]:
    rows = [_numbers(row, f"{path}[{i}]") for i, row in enumerate(_list(value, path, "rows, each a list of numbers"))]
    for i, row in enumerate(rows):
        if not row or len(row) != len(rows[0]):
            raise InputError(f"{path}[{i}] must have a number for each dimension, as other rows have; got {row!r}")
    return rows


def _laws(value: object, path: str) -> list[delays.DelayLaw]:
    return [_law(entry, f"{path}[{i}]", DELAYS) for i, entry in enumerate(_list(value, path, "tables"))]


_READERS: dict[str, Callable[[object, str], object]] = {
    "arms": _rows,
    "delays": _numbers,
    "laws": _laws,
    "weights": _numbers,
    "window": _rounds,
}
"""By parameter, for one name means one thing in every law and policy; the others are numbers and words."""


# ---- keys ----


def _key(path: str, name: str) -> str:
    """The full key, quoted where TOML would have it so."""
    name = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
    return f"{path}.{name}" if path else name


def _table(value: object, path: str, *, otherwise: str = "") -> dict[str, object]:
    if not isinstance(value, dict):
        raise InputError(f"{path} must be {otherwise or f'a table, [{path}]'}; got {value!r}")
    return value


def _list(value: object, path: str, of: str) -> list[object]:
    if not isinstance(value, list) or not value:
        raise InputError(f"{path} must be a list of {of}; got {value!r}")
    return value


def _check_keys(
    table: Mapping[str, object], path: str, *, of: str, needed: Collection[str], optional: Collection[str] = ()
) -> None:
    known = dict.fromkeys((*needed, *optional))
    for name in table:
        if name not in known:
            keys = ", ".join(map(repr, known))
            raise InputError(f"{_key(path, name)} is not a key of {of}, which has {keys}{_nearest(name, known)}")
    for name in needed:
        if name not in table:
            raise InputError(f"{_key(path, name)} is missing: {of} needs it")


def _choice(table: Mapping[str, object], path: str, name: str, choices: Collection[str]) -> str:
    """The word that says what the table is."""
    rule, value = f"one of {', '.join(map(repr, choices))}", table.get(name)
    if value is None:
        raise InputError(f"{_key(path, name)} is missing: it must be {rule}")
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{_key(path, name)} must be {rule}; got {value!r}{_nearest(value, choices)}")
    return value


def _nearest(word: object, choices: Collection[str]) -> str:
    folded = {choice.casefold(): choice for choice in choices}
    close = get_close_matches(str(word).casefold(), folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


@contextmanager
def _located(path: str, names: Collection[str]) -> Iterator[None]:
    """A constructor names its own argument first: here that becomes the full key."""
    try:
        yield
    except InputError as error:
        first = re.match(r"\w*", str(error))
        raise InputError(f"{path}{'.' if first and first[0] in names else ': '}{error}") from None
