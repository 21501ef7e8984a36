"""Why this one: the decision as the log has it, its fate, its actions and its features; and units, imports and lift."""

from pathlib import Path

import numpy as np
import pytest
from fake_clocks import HOUR, SECOND, FakeClocks

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.bandit_spec import BanditSpec, ValueUnit, parse_unit
from latecomer.service.messages import Conversion, ImportBatch, Revocation
from latecomer.service.store import Store

IDS = ["left", "right"]
CONTROL = {"control": {"share": 0.5, "policy": "uniform"}, "seed": 1}


def test_fates_and_repeated_offers(tmp_path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(tmp_path / "a.db", clock=clocks) as store:
        store.create("b", BanditSpec(dim=8, window="2h", parameters={"seed": 1}))
        described = ({"country": "fr"}, [{"price": 0.2}, {"price": 0.9}])
        answers = []
        for _ in range(4):  # the same offer: it is in the log once
            clocks.advance(SECOND)
            answers.append(store.decide("b", np.eye(8)[:2], IDS, described=described)[0])
        store.convert("b", [Conversion(answers[1].decision_id, 0.5), Conversion(answers[2].decision_id)])
        store.revoke("b", [Revocation(answers[2].decision_id)])
        clocks.advance(3 * HOUR)
        answers.append(store.decide("b", np.eye(8)[:2], IDS, described=described)[0])
        store.wait(store.convert("b", [Conversion(answers[0].decision_id)])[1])
        found = [store.explain("b", answer) for answer in answers]
        report = store.bandit_report("b")
    assert [each.decision.fate for each in found] == ["closed", "converted", "revoked", "closed", "open"]
    assert [each.decision.value for each in found] == [None, 0.5, 1.0, None, None]
    assert [each.decision for each in reversed(found)] == report.recent
    for each, answer in zip(found, answers, strict=True):
        assert each.context == {"country": "fr"}
        assert [action.action_id for action in each.actions if action.is_chosen] == [answer.action_id]
        assert (each.decision.score, each.decision.propensity) == (answer.score, answer.propensity)
        assert sum(action.propensity or 0.0 for action in each.actions) == pytest.approx(1.0)
        assert {(part.side, part.feature) for part in each.contributions} == {
            ("context", "country"),
            ("action", "price"),
        }


def test_decision_without_its_offer_and_of_the_control(tmp_path: Path) -> None:
    with lc.open(tmp_path / "a.db", dim=2, window=50, log_offers=False) as bandit:
        why = bandit.explain(bandit.decide(np.eye(2)))
        assert (why.actions, [part.side for part in why.contributions]) == ([], ["column"])
        assert "does not have the other actions" in why.note
        for wrong in ("1-000000000000000000000000", "nonsense"):
            with pytest.raises(InputError, match="this bandit has not given it"):
                bandit.explain(wrong)
    with lc.open(tmp_path / "b.db", dim=2, window=50, parameters=CONTROL) as bandit:
        answers = [bandit.decide(np.eye(2), ids=IDS) for _ in range(20)]
        notes = {answer.is_control: bandit.explain(answer).note for answer in answers}
    assert notes[True].startswith("The control made this choice")
    assert "estimate" in notes[False]


def test_imported_decisions_are_of_neither_arm(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db", clock=FakeClocks(10**15)) as store:
        store.create("b", BanditSpec(dim=2, window=3, parameters=CONTROL))
        store.import_batch("b", ImportBatch(import_id="log", decided_at=[1.0] * 20, actions=[[0.5, 0.0]] * 20))
        answers = [store.decide("b", np.eye(2), IDS)[0] for _ in range(10)]
        report = store.bandit_report("b")
    closed = [answer for answer in answers if answer.round <= 30 - report.open_decisions]
    assert report.decisions == 30
    assert report.lift is not None
    controls = sum(answer.is_control for answer in closed)
    assert 0 < controls < len(closed)
    assert (report.lift.decisions, report.lift.control_decisions) == (len(closed) - controls, controls)


def test_unit_is_checked_and_kept(tmp_path: Path) -> None:
    unit = {"name": "EUR", "scale": 250}
    with lc.open(tmp_path / "a.db", dim=2, window=5, unit=unit) as bandit:
        assert bandit.report().unit == ValueUnit(name="EUR", scale=250.0) == parse_unit(unit)
    for wrong in ({"name": ""}, {"name": "EUR", "scale": 0}, {"scale": 2}, {"name": "EUR", "size": 2}):
        with pytest.raises(InputError, match="unit must be as"):
            lc.open(tmp_path / "b.db", dim=2, window=5, unit=wrong)
    assert not (tmp_path / "b.db").exists()
