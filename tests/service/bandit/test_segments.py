"""Segments equal a count of the events one by one: live, in a replay, from a snapshot, however they were grouped."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from fake_clocks import SECOND, FakeClocks

from latecomer.service.bandit.tally.segments import MOST_LEVELS, OTHER_LEVELS, Segments, name_range
from latecomer.service.bandit.tally.tally import Tally
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation
from latecomer.service.store import Store

IDS = ["red", "green", "blue"]
Counts = Counter[tuple[str, str, str]]


def play(store: Store, clocks: FakeClocks, rounds: int, seed: int) -> tuple[Counts, Counts]:
    """Decide with contexts, some repeated and some empty; return decisions and conversions by segment and action id."""
    rng = np.random.default_rng(seed)
    decided: Counts = Counter()
    converted: Counts = Counter()
    context: dict[str, Any] = {}
    for round_ in range(rounds):
        clocks.advance(30 * SECOND)
        if rng.random() < 0.6:  # otherwise the offer is the same again
            context = {"country": str(rng.choice(["de", "fr", "it"])), "age": float(rng.integers(18, 80)), "new": True}
            context = context if rng.random() < 0.9 else {}
        described = (context, [{"colour": label} for label in IDS]) if round_ > 20 else None
        answer, _ = store.decide("b", np.eye(3), IDS, described=described)
        if described is None:
            continue
        levels = {"country": context.get("country"), "age": context and name_range(context["age"]), "new": "yes"}
        found = [(name, str(levels[name]), str(answer.action_id)) for name in context]
        decided.update(found)
        if rng.random() < 0.3:
            store.convert("b", [Conversion(answer.decision_id)])
            converted.update(found)
            if rng.random() < 0.3:
                store.revoke("b", [Revocation(answer.decision_id)])
                converted.subtract(found)
    return decided, converted


def read(tally: Tally) -> tuple[Counts, Counts]:
    segments = tally.segments
    found: tuple[Counts, Counts] = (Counter(), Counter())
    for counter, counts in zip(found, segments.counts, strict=True):
        for name, feature in segments.features.items():
            for text, code in segments.levels[feature].items():
                counter.update({(name, text, label): int(counts[feature, code, tally.slots[label]]) for label in IDS})
    return +found[0], +found[1]


def test_segments_equal_a_count_one_by_one_and_survive(tmp_path: Path) -> None:
    clocks, path = FakeClocks(), tmp_path / "a.db"

    def count(store: Store) -> dict[str, Any]:
        store.read_bandit("b").count_notes()
        return store.read_bandit("b").tally.to_dict()

    with Store.open(path, clock=clocks, retention="forever") as store:
        store.create("b", BanditSpec(dim=3, window="2h", parameters={"seed": 1}))
        decided, converted = play(store, clocks, 400, seed=0)
        live = count(store)
        assert read(store.read_bandit("b").tally) == (decided, +converted)
    with Store.open(path, clock=clocks) as store:  # from a snapshot
        assert count(store) == live
    with apsw.Connection(str(path)) as connection:
        connection.execute("DELETE FROM snapshot; DELETE FROM snapshot_part")
    with Store.open(path, clock=clocks) as store:  # from every row
        assert count(store) == live
        play(store, clocks, 10, seed=1)  # its first offers may repeat ones from before


def test_codes_do_not_depend_on_groups() -> None:
    contexts = [None, None, {"a": "x"}, 1, {"a": "y", "b": 3.0}, 2, None, 3]

    def split(step: int) -> tuple[Any, Any]:
        segments = Segments()
        found: list[list[int]] = []
        for first in range(0, len(contexts), step):
            group = contexts[first : first + step]
            known = {place: context for place, context in enumerate(group) if context is not None}
            part = segments.encode(known, first + 1, len(group))
            found += [[0] * 8] * len(group) if part is None else part.tolist()
        return found, segments.levels

    whole = split(len(contexts))
    assert [row[:2] for row in whole[0]] == [[0, 0], [0, 0], [2, 0], [2, 0], [3, 2], [2, 0], [0, 0], [3, 2]]
    assert all(split(step) == whole for step in (1, 2, 3))


def test_values_beyond_the_most_are_counted_together() -> None:
    segments = Segments()
    codes = segments.encode({i: {"page": f"p{i}"} for i in range(MOST_LEVELS + 5)}, 1, MOST_LEVELS + 5)
    assert codes is not None
    assert codes[MOST_LEVELS:, 0].tolist() == [OTHER_LEVELS] * 5
    many = segments.encode({0: {f"f{i}": True for i in range(20)}}, 100, 1)
    assert many is not None
    assert len(segments.features) == 8


def test_every_number_has_a_range() -> None:
    in_range: Callable[[float], bool] = lambda x: bool(name_range(x))  # noqa: E731
    assert all(in_range(x) for x in (1e-320, 1e308, -1e308, 5e-324, 0.1, 0.2, 0.5, 1, 2, 5, 10, float("inf")))
    assert [name_range(x) for x in (1, 1.99, 2, 5, 9.99, 10, 0.1, 1000)] == [
        "1 to 2", "1 to 2", "2 to 5", "5 to 10", "5 to 10", "10 to 20", "0.1 to 0.2", "1000 to 2000"
    ]  # fmt: skip
