"""BLAS is limited while it must be, and left as it was."""

from threading import Event, Thread

import numpy as np
import pytest
import scipy.linalg.cython_blas  # noqa: F401 - the library to look at
from threadpoolctl import ThreadpoolController

import latecomer as lc
from latecomer.core.linalg.blas import one_thread


def threads() -> set[int]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.num_threads for library in found if "scipy.libs" in str(library.filepath)}


def set_threads(count: int) -> None:
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        library.set_num_threads(count)


def test_one_thread_limits_blas_inside_and_restores_it_outside() -> None:
    set_threads(2)
    try:
        assert one_thread(threads)() == {1}
        assert threads() == {2}
        with pytest.raises(ZeroDivisionError):
            one_thread(lambda: 1 // 0)()
        assert threads() == {2}
    finally:
        set_threads(1)


def test_the_last_thread_to_leave_restores_it() -> None:
    set_threads(2)
    inside, go, seen = Event(), Event(), []

    def second() -> None:
        inside.set()
        go.wait(10)
        seen.append(threads())

    thread = Thread(target=one_thread(second))

    def first() -> None:
        thread.start()
        inside.wait(10)

    try:
        one_thread(first)()
        go.set()
        thread.join(10)
        assert (seen, threads()) == ([{1}], {2})
    finally:
        set_threads(1)


def test_a_large_set_gives_the_same_choice_as_a_direct_computation() -> None:
    dim, count = 64, 150
    rng = np.random.default_rng(0)
    policy = lc.OTFLinUCB(dim, 20)
    for _ in range(30):
        actions = rng.standard_normal((count, dim))
        actions /= np.linalg.norm(actions, axis=1, keepdims=True) * rng.uniform(1, 2, (count, 1))
        norms = np.sqrt(np.sum(actions.T * np.linalg.solve(policy.V, actions.T), axis=0))
        scores = actions @ policy.theta_hat + policy.width * norms
        decision = policy.decide(actions)
        assert decision.index == int(np.argmax(scores))
        policy.convert(decision)
