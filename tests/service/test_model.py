"""A state machine: whatever happens in whatever order, the store agrees with a model that keeps everything in lists."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pytest
from bandit_model import SCALE, WINDOW
from fake_clocks import DAY, HOUR, SECOND, FakeClocks
from guardrail_rules import OFFERS, make_guards
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test
from stage_model import PRIOR, TAUGHT, StageModel
from stage_rules import StageRules

from latecomer.errors import InputError
from latecomer.service.bandit_spec import BanditSpec, RewardSpec
from latecomer.service.decision_batch import decide_batch
from latecomer.service.messages import Activation, Conversion, DecisionAnswer, RankingAnswer, Revocation, Verdict
from latecomer.service.store import Store

RETENTION = 5 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DeskAndModel(StageRules):
    """Events, faults and the passing of time."""

    @initialize(
        in_rounds=st.booleans(),
        grace=st.sampled_from([0, 8]),
        aggregate=st.sampled_from([None, "sum", "max"]),
        guards=st.tuples(st.booleans(), st.booleans()),
        is_taught=st.booleans(),
    )
    def begin(self, in_rounds: bool, grace: int, aggregate: Any, guards: tuple[bool, bool], is_taught: bool) -> None:
        self.is_limited, self.is_contested = guards
        self.folder = TemporaryDirectory()
        self.machine, later = FakeClocks(), 4 if in_rounds else 15 * SECOND
        grace_time, returns = 0 if in_rounds else grace * SECOND, later if aggregate else 0
        self.model = StageModel(in_rounds, grace_time, aggregate, returns, is_taught=is_taught)
        self.requests: dict[str, DecisionAnswer] = {}
        self.ids: list[str] = []
        self.deferred: list[str] = []
        self.offered: dict[int, tuple[int, list[str]]] = {}
        self.copies = 0
        self.path = Path(self.folder.name) / "store.db"
        self.open()
        spec = BanditSpec(dim=2, window=3) if in_rounds else BanditSpec(dim=2, window="10s", grace=f"{grace}s")
        if aggregate:
            reward = RewardSpec(scale=SCALE, aggregate=aggregate)
            spec = msgspec.structs.replace(spec, reward=reward, returns=4 if in_rounds else "15s")
        guarded = make_guards(*guards)
        if is_taught:
            taught = {**guarded["parameters"], "stages": [TAUGHT], "stage_prior": PRIOR}
            guarded["parameters"] = taught
            if guarded["challenger"]:
                guarded["challenger"] = msgspec.structs.replace(guarded["challenger"], parameters=taught)
        self.store.create("shop", msgspec.structs.replace(spec, **guarded))

    def open(self) -> None:
        self.store = Store.open(self.path, clock=self.machine, snapshot_every=4, retention="5s")

    def played(self, answer: DecisionAnswer) -> None:
        """A new decision, which the model follows."""
        assert answer.round == self.model.decide(OFFERS[answer.index], self.now, answer.is_control)
        assert answer.action_id == "abc"[answer.index]
        self.ids.append(answer.decision_id)

    @rule()
    def decide(self) -> None:
        answer, ticket = self.store.decide("shop", OFFERS, ["a", "b", "c"])
        self.store.wait(ticket)
        self.played(answer)

    @rule(kinds=st.lists(st.sampled_from(["new", "x", "norm"]), min_size=1, max_size=5))
    def decide_batch(self, kinds: list[str]) -> None:
        """A batch is as many decisions; those that break a rule change nothing."""
        requests: dict[str, dict[str, Any]] = {
            "new": {"actions": OFFERS, "ids": ["a", "b", "c"]},
            "x": {"actions": OFFERS, "ids": ["a", "b", "c"], "request_id": "x"},
            "norm": {"actions": 2 * OFFERS},
        }
        outcomes, tickets = decide_batch(self.store, "shop", [requests[kind] for kind in kinds])
        for ticket in tickets:
            self.store.wait(ticket)
        for kind, outcome in zip(kinds, outcomes, strict=True):
            if kind == "norm":
                assert isinstance(outcome, InputError)
                continue
            assert isinstance(outcome, DecisionAnswer)
            if kind == "new":
                self.played(outcome)
            else:
                self.asked("x", outcome)

    @rule(k=st.integers(2, 3))
    def decide_ranking(self, k: int) -> None:
        """A ranking is k decisions, one after the other, each with an id of its own; limits refuse it."""
        if self.is_limited:
            with pytest.raises(InputError, match="ceiling"):
                self.store.decide("shop", OFFERS, ["a", "b", "c"], k=k)
            return
        answer, ticket = self.store.decide("shop", OFFERS, ["a", "b", "c"], k=k)
        self.store.wait(ticket)
        assert isinstance(answer, RankingAnswer)
        assert len({entry.index for entry in answer.ranking}) == k
        for entry in answer.ranking:
            assert entry.round == self.model.decide(OFFERS[entry.index], self.now, answer.is_control)
            self.ids.append(entry.decision_id)

    @rule(subject=st.sampled_from(["ann", "bob"]))
    def decide_for(self, subject: str) -> None:
        answer, ticket = self.store.decide("shop", OFFERS, ["a", "b", "c"], subject=subject)
        self.store.wait(ticket)
        self.played(answer)
        self.model.subjects.setdefault(subject, []).append(answer.round)

    @rule(data=st.data(), subject=st.sampled_from(["ann", "bob", "zoe"]), value=st.sampled_from([0.25, 1.0]))
    def convert_subject(self, data: Any, subject: str, value: float) -> None:
        occurred, moment = self.moment(data)
        report = Conversion(value=value, occurred_at=occurred, subject=subject)
        verdicts, ticket = self.store.convert("shop", [report])
        self.store.wait(ticket)
        round_ = self.model.attribute(subject, moment)
        assert verdicts == [self.model.convert(round_, value, moment, self.now)]
        bandit = self.store.registry.bandits["shop"]
        assert [bandit.find_round(id_) for id_ in verdicts.attributed[0].decision_ids] == [round_] * (round_ > 0)

    @rule(name=st.sampled_from("xyz"))
    def ask(self, name: str) -> None:
        """A repeated request gets its first answer as long as the log keeps it, and may get a new one afterwards."""
        answer, ticket = self.store.decide("shop", OFFERS, ["a", "b", "c"], request_id=name)
        self.store.wait(ticket)
        self.asked(name, answer)

    def asked(self, name: str, answer: DecisionAnswer) -> None:
        """An answer to a request id, new or known."""
        known = self.requests.get(name)
        if answer != known:
            if known is not None:
                self.check_pruned(known.round)
            self.played(answer)
            self.requests[name] = answer

    def pick(self, data: Any) -> tuple[str, int]:
        """A decision: often a recent one, sometimes one that never was."""
        round_ = len(self.ids) - data.draw(st.integers(-1, 8))
        if 1 <= round_ <= len(self.ids):
            return self.ids[round_ - 1], round_
        return "0" * 16 + "-1", 0

    def known(self, id_: str, round_: int) -> int:
        """The round of a decision's id; 0 where the log has pruned it, and what its id was made with."""
        if round_ and not self.store.registry.bandits["shop"].find_round(id_):
            if id_ in self.deferred:  # it is forgotten after twice the time for reports, whatever the log keeps
                assert self.model.find_age(round_, self.now) > 2 * (self.model.commits + self.model.correctable)
            else:
                self.check_pruned(round_)
            return 0
        return round_

    def check_pruned(self, round_: int) -> None:
        """A decision that the log does not have has passed its window, its retention and its grace."""
        assert round_ <= self.model.forgotten
        age = self.now - self.model.stamps[round_ - 1]
        assert age > (RETENTION if self.model.in_rounds else WINDOW + max(RETENTION, self.model.grace))

    def moment(self, data: Any) -> tuple[datetime | None, int]:
        """Return when it occurred, where that is given, and when it counts as arrived."""
        ago = data.draw(st.sampled_from([None, None, -2 * SECOND, 0, SECOND, 5 * SECOND, 8 * SECOND, 11 * SECOND]))
        if ago is None:
            return None, self.now
        return EPOCH + timedelta(microseconds=self.now - ago), min(self.now, self.now - ago)

    @rule(data=st.data(), value=st.sampled_from([0.0, 0.25, 1.0]), times=st.integers(1, 3))
    def convert(self, data: Any, value: float, times: int) -> None:
        """A report comes one to three times, in one batch."""
        id_, round_ = self.pick(data)
        round_ = self.known(id_, round_)
        occurred, moment = self.moment(data)
        verdicts, ticket = self.store.convert("shop", [Conversion(id_, value, occurred)] * times)
        self.store.wait(ticket)
        assert verdicts == [self.model.convert(round_, value, moment, self.now) for _ in range(times)]

    @rule(data=st.data())
    def revoke(self, data: Any) -> None:
        id_, round_ = self.pick(data)
        round_ = self.known(id_, round_)
        occurred, moment = self.moment(data)
        verdicts, ticket = self.store.revoke("shop", [Revocation(id_, occurred)])
        self.store.wait(ticket)
        assert verdicts == [self.model.revoke(round_, moment, self.now)]

    @rule()
    def defer(self) -> None:
        answer, ticket = self.store.decide("shop", OFFERS, ["a", "b", "c"], deferred=True)
        self.store.wait(ticket)
        number = self.model.defer(OFFERS[answer.index], self.now, answer.is_control)
        assert answer.round == -(number + 1)
        self.deferred.append(answer.decision_id)

    @precondition(lambda self: self.deferred)
    @rule(data=st.data())
    def activate(self, data: Any) -> None:
        number = len(self.deferred) - data.draw(st.integers(1, min(4, len(self.deferred))))
        before = len(self.model.stamps)
        verdicts, ticket = self.store.activate("shop", [Activation(self.deferred[number])])
        self.store.wait(ticket)
        assert verdicts == [self.model.activate(number, self.now)]
        if len(self.model.stamps) > before:
            self.ids.append(self.deferred[number])

    @rule(is_frozen=st.booleans())
    def freeze(self, is_frozen: bool) -> None:
        verdicts, ticket = self.store.freeze("shop", is_frozen)
        self.store.wait(ticket)
        assert verdicts == [Verdict.DUPLICATE if is_frozen == self.model.is_frozen else Verdict.ACCEPTED]
        self.model.is_frozen = is_frozen

    @rule(seconds=st.sampled_from([1, 4, 9, 10, 11, 30]))
    def wait(self, seconds: int) -> None:
        self.machine.advance(seconds * SECOND)

    @rule(step=st.sampled_from([HOUR, -HOUR, 30 * DAY, -30 * DAY]))
    def set_clock(self, step: int) -> None:
        self.machine.set_clock(step)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @precondition(lambda self: self.copies < 3)
    @rule()
    def crash(self) -> None:
        """Open a copy of the files as they are now, which is what a kill leaves."""
        self.copies += 1
        path = self.path.with_name(f"copy{self.copies}.db")
        for suffix in ("", "-wal"):
            shutil.copy(f"{self.path}{suffix}", f"{path}{suffix}")
        self.store.close()
        self.path = path
        self.open()

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "store"):
            return
        stats, policy = self.store.stats("shop"), self.store.registry.bandits["shop"].policy
        assert (stats.rounds, stats.pending) == (len(self.model.stamps), self.model.pending)
        assert stats.deferred["activated"] == sum(found.round > 0 for found in self.model.deferred)
        assert stats.deferred["expired"] == self.model.expired
        assert stats.frozen == self.model.is_frozen
        for kind, counts in (("c", stats.conversions), ("r", stats.revocations)):
            assert counts == {verdict.value: self.model.counts[kind, verdict] for verdict in Verdict}
        catalogue = self.store.registry.bandits["shop"].catalogue
        wanted = {id_: OFFERS[row].astype(np.float32).tolist() for id_, row in self.model.versions[-1].items()}
        assert {id_: catalogue.vectors[place].tolist() for id_, place in catalogue.places.items()} == wanted
        assert catalogue.version == len(self.model.versions) - 1
        assert stats.capped == self.model.capped
        stages = {name: (found.decisions, found.conversions) for name, found in stats.stages.items()}
        assert stages == self.model.count_stages()
        assert stats.value == pytest.approx(self.model.value * (SCALE if self.model.aggregate else 1.0), abs=1e-6)
        self.check_arms(stats)
        np.testing.assert_allclose(policy.B, self.model.B, rtol=0, atol=1e-12)
        np.testing.assert_allclose(policy.V, self.model.V, rtol=0, atol=1e-12)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
PLAIN = settings(deadline=None, database=None, suppress_health_check=QUIET)


def test_store_agrees_with_a_model() -> None:
    short = settings(PLAIN, max_examples=10, stateful_step_count=30, derandomize=True)
    run_state_machine_as_test(DeskAndModel, settings=short)


@pytest.mark.soak
def test_store_agrees_with_a_model_for_long() -> None:
    run_state_machine_as_test(DeskAndModel, settings=settings(PLAIN, max_examples=2000, stateful_step_count=60))
