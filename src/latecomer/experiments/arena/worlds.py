"""The arena's worlds: tables of `worlds.toml`."""

from dataclasses import dataclass
from importlib.resources import files

from latecomer.errors import InputError
from latecomer.experiments.experiment_file import parse_world, read_toml
from latecomer.simulation.world import World
from latecomer.validation import check_choice, check_integer

KINDS = ("paper", "fixed", "contexts")


@dataclass(frozen=True)
class ArenaWorld:
    """A world of the arena."""

    name: str
    kind: str
    world: World
    horizon: int
    window: int


def load_worlds() -> dict[str, ArenaWorld]:
    """Load every world, by name, in the order of the file."""
    text = files("latecomer.experiments.arena").joinpath("worlds.toml").read_text(encoding="utf-8")
    return {name: parse_row(name, dict(table)) for name, table in read_toml(text, "worlds.toml").items()}


def parse_row(name: str, table: dict[str, object]) -> ArenaWorld:
    """Parse one table: kind, horizon, window, and the keys of a world."""
    try:
        kind = check_choice("kind", table.pop("kind"), KINDS)
        horizon, window = (check_integer(key, table.pop(key), least=1) for key in ("horizon", "window"))
        return ArenaWorld(name, kind, parse_world(table), horizon, window)
    except KeyError as error:
        raise InputError(f"the arena's world {name!r} needs {error.args[0]}") from None
