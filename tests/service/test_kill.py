"""kill -9 under load: nothing acknowledged is lost, nothing counts twice."""

import os
import subprocess
import sys
from pathlib import Path

import killed
import numpy as np
import pytest

from latecomer.service.desk import Desk
from latecomer.service.messages import Conversion


def killed_over_and_over(folder: Path, cycles: int, seed: int) -> tuple[Path, Path]:
    database, journal = folder / "desk.db", folder / "journal"
    script = str(Path(killed.__file__))
    subprocess.run(  # noqa: S603 - our own words
        [sys.executable, script, str(database), str(journal), str(cycles), str(seed)],
        check=True,
        timeout=60 + 5 * cycles,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(script).parent), *sys.path])},
    )
    return database, journal


def check(database: Path, journal: Path) -> int:
    """The desk against an oracle that adds up what was acknowledged, once the last steps have been taken again."""
    done = killed.journal_of(journal.read_text())
    told = max(i for _, i in done) + 1
    V, B, converted = np.eye(killed.DIM), np.zeros(killed.DIM), 0
    rounds = set()
    with Desk.open(database) as desk:
        assert desk.stats("shop").rounds >= sum(kind == "d" for kind, _ in done)
        for i in range(told + killed.WORKERS):
            answer, ticket = desk.decide("shop", killed.actions_of(i), request_id=f"r{i}")
            if ("d", i) in done:
                assert done["d", i] == [str(answer.index), str(answer.round), answer.decision_id]
            rounds.add(answer.round)
            action = killed.actions_of(i)[answer.index]
            V += np.outer(action, action)
            value = killed.value_of(i)
            if value is not None:
                (verdict,), ticket = desk.convert("shop", [Conversion(answer.decision_id, value)])
                assert verdict.value in ({"duplicate"} if ("c", i) in done else {"accepted", "duplicate"})
                B += value * action
                converted += 1
        desk.wait(ticket)
        stats, learner = desk.stats("shop"), desk._bandits["shop"].learner
        assert rounds == set(range(1, stats.rounds + 1))
        assert len(rounds) == told + killed.WORKERS
        assert stats.conversions["accepted"] == converted
        np.testing.assert_allclose(learner.V, V, rtol=0, atol=1e-9)
        np.testing.assert_allclose(learner.B, B, rtol=0, atol=1e-9)
    return told


def test_thirty_kills(tmp_path: Path) -> None:
    assert check(*killed_over_and_over(tmp_path, 30, seed=1)) > 100


@pytest.mark.soak
def test_a_thousand_kills(tmp_path: Path) -> None:
    assert check(*killed_over_and_over(tmp_path, 1000, seed=2)) > 3000
