"""The ring: it grows, wraps, shrinks, and nothing that it answers depends on its size."""

import os
from datetime import timedelta

import numpy as np
import pytest

import latecomer as lc
from latecomer.core import ring_memory
from latecomer.core.ring_memory import resize
from latecomer.core.state import ROUNDS_PER_BLOCK

ACTIONS = np.eye(2)


@pytest.mark.parametrize(
    "window", [0, 63, 64, 128, *(pytest.param(window, marks=pytest.mark.soak) for window in (1, 62, 65, 127, 500))]
)
def test_a_full_window_takes_little_more_than_it_holds(window: int) -> None:
    policy = lc.OTFLinUCB(2, window)
    for _ in range(3 * window + 200):
        policy.decide(ACTIONS)
    assert policy.pending == window + 1  # those that may still convert before the next decision
    assert len(policy.state.ring) * ROUNDS_PER_BLOCK <= 9 / 8 * (window + 1) + 3 * ROUNDS_PER_BLOCK


def test_the_size_of_the_ring_changes_no_bit() -> None:
    rng = np.random.default_rng(0)
    tight, roomy = lc.OTFLinUCB(2, 150), lc.OTFLinUCB(2, 150)
    for t in range(1, 400):
        actions = rng.standard_normal((4, 2)) / 8
        if t % 50 == 0:
            state = roomy.state
            state.ring = resize(state.record, state.ring, len(state.ring) + 1)
        first, second = tight.decide(actions), roomy.decide(actions)
        assert (first.index, first.score) == (second.index, second.score)
        back = int(rng.integers(0, 200))
        assert tight.convert(t - back) is roomy.convert(t - back)
    assert tight.width == roomy.width
    np.testing.assert_array_equal(tight.B, roomy.B)


def test_a_ring_that_grows_in_place_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts of decisions: the ring grows where it is, wraps, and is copied where its rounds go on at its beginning."""
    rng = np.random.default_rng(2)
    copied, grown = (lc.OTFLinUCB(2, timedelta(seconds=90)) for _ in range(2))
    in_place = wrapped = 0
    for burst in range(60):
        at, actions = 20.0 * burst, rng.standard_normal((int(rng.integers(1, 90 + 5 * burst)), 4, 2)) / 8
        first = copied.decide_many(actions, at=at)
        before, place = len(grown.state.ring), grown.state.ring.ctypes.data
        with monkeypatch.context() as patched:
            patched.setattr(ring_memory, "_LARGE", 0)
            second = grown.decide_many(actions, at=at)
        if len(grown.state.ring) > before:
            in_place += grown.state.ring.ctypes.data == place
            wrapped += grown.state.ring.ctypes.data != place
        assert [(d.index, d.score) for d in first] == [(d.index, d.score) for d in second]
        converted = [int(round_) for round_ in rng.integers(1, copied.rounds + 1, 9)]
        assert [copied.convert(r, at=at) for r in converted] == [grown.convert(r, at=at) for r in converted]
    assert in_place > 3
    assert wrapped > 3
    assert copied.width == grown.width
    others = grown.state.arrays()
    for name, array in copied.state.arrays().items():
        if name.startswith("state/"):  # lanes that hold no round may differ
            np.testing.assert_array_equal(array, others[name], name)


def test_a_forked_process_has_a_large_ring_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_memory, "_LARGE", 0)
    policy = lc.OTFLinUCB(2, 1000)
    policy.decide_many([ACTIONS] * 500)
    before = policy.state.ring.tobytes()
    child = os.fork()
    if child == 0:
        policy.state.ring.view(np.uint8)[:] = 7
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert policy.state.ring.tobytes() == before


def test_after_a_burst_the_state_is_given_back() -> None:
    policy = lc.OTFLinUCB(2, timedelta(seconds=1))
    policy.decide_many([ACTIONS] * 1900, at=0.0)
    assert len(policy.state.ring) * ROUNDS_PER_BLOCK >= 1900
    for i in range(500):
        policy.decide(ACTIONS, at=10.0 + 2 * i)
    assert len(policy.state.ring) <= 8
    assert policy.pending == 1


@pytest.mark.parametrize("count", [
    511, 512, 575, 576, 640, 704, 1280,
    *(pytest.param(count, marks=pytest.mark.soak) for count in
      (510, 513, 573, 574, 577, *range(637, 640), 641, 703, 1279)),
])  # fmt: skip
def test_a_ring_that_is_too_large_is_cut_once(count: int) -> None:
    """Block boundaries: what asks for another size, and what gives it, must measure alike."""
    in_rounds = lc.OTFLinUCB(2, 5, width="buffered")
    in_rounds.decide_many(np.stack([ACTIONS] * count))
    in_time = lc.OTFLinUCB(2, timedelta(days=1), width="buffered")
    in_time.decide_many(np.stack([ACTIONS] * count), at=0.0)
    for i in range(70):
        in_rounds.decide(ACTIONS)
        in_time.decide(ACTIONS, at=1e6 + i)
    assert (in_rounds.rounds, in_time.rounds) == (count + 70, count + 70)
    assert max(len(in_rounds.state.ring), len(in_time.state.ring)) <= 12


def test_state_of_a_pending_decision() -> None:
    for dim in (1, 5, 64):
        policy = lc.OTFLinUCB(dim, timedelta(days=1), width="buffered")
        policy.decide_many(np.full((900, 1, dim), 0.1), at=0.0)
        for _ in range(50):
            policy.decide(np.full((1, dim), 0.1), at=0.0)
        assert policy.state.ring.nbytes / policy.pending <= 1.25 * (8 * dim + 40)


@pytest.mark.parametrize(
    ("rounds", "batch"), [(6000, 1500), *(pytest.param(rounds, 20_000, marks=pytest.mark.soak)
                                          for rounds in (100_000, 1_000_000))]
)  # fmt: skip
def test_very_many_buffered_rounds_lose_nothing_of_the_sum(rounds: int, batch: int) -> None:
    rng = np.random.default_rng(1)
    policy = lc.OTFLinUCB(2, 1000, width="buffered")
    for _ in range(rounds // batch):
        policy.decide_many(rng.random((batch, 1, 2)) * rng.random((batch, 1, 1)) * 0.7)
    norms = policy.state.ring["norm"].ravel()
    held = np.sqrt(norms[norms > 0])
    assert policy.rounds == rounds
    # one round more than the next width counts is still held
    oldest = np.sqrt(norms[policy.state.number("head")])
    assert policy.pending_width == pytest.approx(held.sum() - oldest, rel=1e-13)
