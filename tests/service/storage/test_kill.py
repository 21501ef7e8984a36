"""kill -9 under load: nothing acknowledged is lost, nothing counts twice."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import crash_worker
import numpy as np
import pytest

from latecomer.service.messages import RankingAnswer
from latecomer.service.store import Store


def killed_over_and_over(folder: Path, cycles: int, seed: int) -> tuple[Path, Path]:
    database, journal = folder / "store.db", folder / "journal"
    script = str(Path(crash_worker.__file__))
    subprocess.run(  # noqa: S603 - our own words
        [sys.executable, script, str(database), str(journal), str(cycles), str(seed)],
        check=True,
        timeout=60 + 5 * cycles,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(script).parent), *sys.path])},
    )
    return database, journal


def check(database: Path, journal: Path) -> int:
    """The store against an oracle that adds up what was acknowledged, once the last steps have been taken again."""
    done = crash_worker.journal_of(journal.read_text())
    requests = max(i for _, i in done) + 1
    V, B = np.eye(crash_worker.DIM), np.zeros(crash_worker.DIM)
    rounds, steps, count = set(), Counter[str](), requests + crash_worker.WORKERS
    with Store.open(database) as store:
        shown = [kind == "a" or (kind == "d" and not crash_worker.is_deferred(i)) for kind, i in done]
        assert store.stats("shop").rounds >= sum(shown)
        for i in range(count):
            answer, ticket = crash_worker.decide(store, i)
            if ("d", i) in done:
                assert done["d", i] == [str(answer.index), str(answer.round), answer.decision_id]
            for kind in crash_worker.steps_of(i)[1:]:
                verdict, ticket = crash_worker.report(store, kind, i, answer.decision_id)
                assert verdict.value in ({"duplicate"} if (kind, i) in done else {"accepted", "duplicate"})
                steps[kind] += 1
            entries = answer.ranking if isinstance(answer, RankingAnswer) else [answer]
            assert len(entries) == crash_worker.count_ranked(i)
            for entry in entries:
                rounds.add(store.registry.bandits["shop"].find_round(entry.decision_id))
                assert entry.index not in (crash_worker.excluded_of(i) or [])
                action = crash_worker.actions_of(i)[entry.index]
                V += np.outer(action, action)
            amount = (crash_worker.value_of(i) or 0.0) + crash_worker.AGAIN * crash_worker.buys_again(i)
            B += amount / crash_worker.SCALE * crash_worker.actions_of(i)[answer.index]
        store.wait(ticket)
        stats, policy = store.stats("shop"), store.registry.bandits["shop"].policy
        assert rounds == set(range(1, stats.rounds + 1))
        assert len(rounds) == sum(map(crash_worker.count_ranked, range(count)))
        assert stats.conversions["accepted"] == steps["c"] + steps["e"]
        assert stats.stages["click"].decisions == steps["s"]
        assert stats.deferred == {"waiting": 0, "activated": steps["a"], "expired": 0}
        np.testing.assert_allclose(policy.V, V, rtol=0, atol=1e-9)
        np.testing.assert_allclose(policy.B, B, rtol=0, atol=1e-9)
    return requests


def test_kill_loses_nothing_acknowledged_12_cycles(tmp_path: Path) -> None:
    assert check(*killed_over_and_over(tmp_path, 12, seed=1)) > 100


@pytest.mark.soak
def test_kill_loses_nothing_acknowledged_1000_cycles(tmp_path: Path) -> None:
    assert check(*killed_over_and_over(tmp_path, 1000, seed=2)) > 3000
