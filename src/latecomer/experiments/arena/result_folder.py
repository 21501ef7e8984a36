"""Results of worlds that are done, one file each, so that a long run goes on where it was interrupted."""

import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from latecomer.atomic_write import replace_file
from latecomer.core.state import Array
from latecomer.delays import draw
from latecomer.errors import InputError, LatecomerError
from latecomer.experiments.arena.worlds import ArenaWorld

FORMAT = 1
_SHOWN = 256
"""Rounds by which a world is told from another of the same name."""


class ResultFolder:
    """A folder with a file for each world: the regret at the horizon of every run, by policy.

    Parameters
    ----------
    path
        The folder; it is made when the first result is written.
    runs, seed
        Results of other numbers of runs, or of another seed, are refused.
    """

    def __init__(self, path: Path, *, runs: int, seed: int) -> None:
        self.path, self.runs, self.seed = path, runs, seed

    def read(self, row: ArenaWorld, wanted: Mapping[str, str]) -> dict[str, Array]:
        """Return the results that are there of the policies wanted, given by name and `repr`; others are left out."""
        path = self._path_of(row)
        try:
            held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise LatecomerError(f"{path} cannot be read: {error}; remove it, and its world is played again") from error
        expected = self._describe(row)
        for name, value in expected.items():
            if held.get(name) != value:
                raise InputError(
                    f"{path} holds results of {name} {held.get(name)!r}, where this is {value!r}: "
                    "give another --out, or remove the file"
                )
        return {
            name: np.array(one["regret"])
            for name, one in held["policies"].items()
            if name in wanted and one["policy"] == wanted[name]
        }

    def write(self, row: ArenaWorld, made: Mapping[str, str], finals: Mapping[str, Array]) -> None:
        """Keep the results of a world; those of policies that are not given stay."""
        path = self._path_of(row)
        others = json.loads(path.read_text(encoding="utf-8"))["policies"] if path.exists() else {}
        policies = {name: {"policy": made[name], "regret": values.tolist()} for name, values in finals.items()}
        self.path.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as part:
            part.write_text(
                json.dumps({**self._describe(row), "policies": {**others, **policies}}, ensure_ascii=False),
                encoding="utf-8",
            )

    def _path_of(self, row: ArenaWorld) -> Path:
        return self.path / f"{re.sub(r'[^a-z0-9]+', '-', row.name.partition(':')[0].lower()).strip('-')}.json"

    def _describe(self, row: ArenaWorld) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "world": row.name,
            "seed": self.seed,
            "runs": self.runs,
            "horizon": row.horizon,
            "window": row.window,
            "fingerprint": _fingerprint(row),
        }


def _fingerprint(row: ArenaWorld) -> int:
    """Return a number of a world's first rewards and delays: a row that was edited is another world."""
    rng = np.random.default_rng(0)
    means = np.round(row.world.block(rng, _SHOWN).means, 9)
    return zlib.crc32(means.tobytes() + draw(row.world.delays, rng, _SHOWN).tobytes())
