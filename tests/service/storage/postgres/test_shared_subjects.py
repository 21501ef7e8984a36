"""Subjects on PostgreSQL: one process decides for a user, another hears of the user's purchase."""

import numpy as np

import latecomer as lc
from latecomer.service.messages import Conversion


def test_processes_share_subjects(database: str) -> None:
    with lc.open(database, name="shop", dim=2, window="1d") as first:
        answers = [first.decide(np.eye(2), subject="ann") for _ in range(2)]
        with lc.open(database, name="shop") as second:
            found = second.convert_many([Conversion(subject="ann")])
            assert found == [lc.Verdict.ACCEPTED]
            assert found.attributed[0].decision_ids == [answers[1].decision_id]
        assert first.convert(subject="ann") is lc.Verdict.DUPLICATE
        assert first.convert(answers[0]) is lc.Verdict.ACCEPTED
