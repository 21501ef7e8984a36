"""A real scheduler and real workers, each a process of its own: the same result, whatever happens to them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
from schedulers import TIMEOUT, Machines, wait_until

import latecomer as lc
from latecomer.errors import InputError, LatecomerError, MissingPackageError
from latecomer.simulation.dask_engine import DaskEngine
from latecomer.simulation.simulate import Played, Regrets, _play

MANY = 1000
"""Runs that two workers would not finish in that time, at 0.3 seconds each."""

DIM = 5
"""That of the paper, for which other tests compile."""

WORLD = lc.World(theta=[0.1, 0.5, 0.3, 0.4, 0.2], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=20))


EVERY = ("exact", "buffered", "ts", "uniform")


def policies(names: tuple[str, ...] = EVERY) -> dict[str, Any]:
    """Templates that have played: machine code, open rounds and generators go with them."""
    made: dict[str, Any] = {
        "exact": lc.OTFLinUCB(DIM, 50, width="exact"),
        "buffered": lc.OTFLinUCB(DIM, 50, width="buffered"),
        "ts": lc.OTFLinTS(DIM, 50, seed=5),
        "uniform": lc.Uniform(DIM, 50, seed=np.random.Generator(np.random.Philox(1))),
    }
    for policy in made.values():
        policy.convert(policy.decide(np.eye(DIM)))
    return {name: made[name] for name in names}


def slow(seconds: float) -> lc.World:
    """A world that takes so many seconds a block. Its law is local: like one in a script, it travels by value."""

    class Slow:
        def sample(self, rng: np.random.Generator, rounds: int, theta: Any) -> Any:
            time.sleep(seconds)
            return WORLD.actions.sample(rng, rounds, theta)

    return lc.World(theta=WORLD.theta, actions=Slow(), delays=WORLD.delays)


class InAModule:
    """A law in a module that the workers do not have."""

    def sample(self, rng: np.random.Generator, rounds: int, theta: Any) -> Any:
        return WORLD.actions.sample(rng, rounds, theta)


def same(one: lc.Result, other: lc.Result) -> bool:
    return one.policies == other.policies and all(
        np.array_equal(one.regret(name), other.regret(name)) for name in one.policies
    )


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with Machines(tmp_path_factory.mktemp("cluster")) as started:
        for _ in range(2):
            started.work()
        yield started


@pytest.fixture
def client(machines: Machines) -> Iterator[Any]:
    """Somebody who watches."""
    import distributed

    connected = distributed.Client(machines.address, timeout=TIMEOUT, set_as_default=False)  # type: ignore[no-untyped-call]
    with connected as watcher:
        watcher.wait_for_workers(2, timeout=TIMEOUT)
        yield watcher


def tasks(client: Any) -> int:
    return int(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))


def is_idle(client: Any) -> bool:
    return not tasks(client) and not any(client.run(lambda dask_worker: len(dask_worker.state.tasks)).values())


PLAIN: dict[str, Any] = {"horizon": 20, "runs": 9, "seed": 3}
"""So few rounds that no worker loads the compiler."""


@pytest.mark.parametrize(
    ("names", "arguments"),
    [
        (EVERY, PLAIN),
        pytest.param(("exact",), {"horizon": 300, "runs": 8, "seed": 3}, marks=pytest.mark.soak),  # machine code
        pytest.param(EVERY, {"horizon": 1500, "runs": 20, "seed": 3}, marks=pytest.mark.soak),
    ],
)
def test_threads_and_machines_agree_to_the_last_bit(
    client: Any, machines: Machines, names: tuple[str, ...], arguments: dict[str, Any]
) -> None:
    reference = lc.simulate(WORLD, policies(names), jobs=1, **arguments)
    assert same(lc.simulate(WORLD, policies(names), jobs=2, **arguments), reference)
    for chunk in (None, 7):
        engine = DaskEngine(machines.address, chunk)
        assert same(lc.simulate(WORLD, policies(names), engine=engine, **arguments), reference)
    assert same(lc.simulate(WORLD, policies(names), engine=DaskEngine(client), **arguments), reference)
    assert client.status == "running"  # a client that was lent stays open
    wait_until(lambda: is_idle(client))


def test_engine_survives_the_death_of_a_worker(client: Any, machines: Machines) -> None:
    victim = machines.work("--name", "victim")
    client.wait_for_workers(3, timeout=TIMEOUT)
    [address] = [a for a, worker in client.scheduler_info()["workers"].items() if worker["name"] == "victim"]
    left: list[int] = []

    class Deadly:
        def map(self, play: Callable[[int], Regrets], runs: int) -> Played:
            for number, done in enumerate(DaskEngine(machines.address, 1).map(play, runs)):
                if number == 4:
                    wait_until(lambda: bool(client.processing()[address]))
                    victim.kill()
                    left.append(runs - number)
                yield done

    arguments: dict[str, Any] = {"horizon": 10, "runs": 30, "seed": 3}
    result = lc.simulate(slow(0.05), policies(), engine=Deadly(), **arguments)
    assert (left, victim.wait(TIMEOUT)) == ([26], -signal.SIGKILL)
    assert result.is_complete
    assert same(result, lc.simulate(WORLD, policies(), jobs=2, **arguments))
    wait_until(lambda: len(client.nthreads()) == 2)


def test_closing_the_iterator_cancels_the_rest(client: Any, machines: Machines) -> None:
    play = partial(_play, slow(0.3), policies(), 10, 0, False, 10)
    for scheduler in (machines.address, client):
        runs = DaskEngine(scheduler, 1).map(play, MANY)
        next(runs)
        assert tasks(client) > MANY // 2
        runs.close()
        wait_until(lambda: is_idle(client))


def test_an_interrupt_leaves_what_is_done(client: Any, machines: Machines) -> None:
    class Interrupted:
        def map(self, play: Callable[[int], Regrets], runs: int) -> Played:
            for number, done in enumerate(DaskEngine(machines.address, 1).map(play, runs)):
                if number == 3:
                    raise KeyboardInterrupt
                yield done

    result = lc.simulate(slow(0.3), policies(), horizon=1, runs=MANY, engine=Interrupted())
    assert (result.runs, result.is_complete) == (3, False)
    wait_until(lambda: is_idle(client))


def test_engine_retries_after_an_error_that_passes(client: Any, tmp_path: Path) -> None:
    flag = tmp_path / "failed"

    class Flaky:
        def sample(self, rng: np.random.Generator, rounds: int, theta: Any) -> Any:
            if os.getpid() != here and not flag.exists():
                flag.touch()
                raise OSError("disk full, for now")
            return WORLD.actions.sample(rng, rounds, theta)

    here = os.getpid()
    world = lc.World(theta=WORLD.theta, actions=Flaky(), delays=WORLD.delays)
    result = lc.simulate(world, policies(), engine=DaskEngine(client), **PLAIN)
    assert flag.exists()
    assert same(result, lc.simulate(WORLD, policies(), jobs=1, **PLAIN))


def test_engine_explains_what_does_not_pickle(client: Any) -> None:
    def play(actions: Any) -> lc.Result:
        world = lc.World(theta=WORLD.theta, actions=actions, delays=WORLD.delays)
        return lc.simulate(world, policies(), horizon=10, runs=2, engine=DaskEngine(client))

    with pytest.raises(InputError, match=r"importable on the workers; there, No module named 'test_dask_engine'"):
        play(InAModule())
    held = InAModule()
    held.lock = Lock()  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"must pickle, to travel to the workers; got TypeError.*lock"):
        play(held)
    assert len(client.nthreads()) == 2  # nobody died of it


def test_engine_plays_a_law_defined_in_a_script(machines: Machines, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys
import numpy as np
import latecomer as lc
from latecomer.simulation.dask_engine import DaskEngine

assert "distributed" not in sys.modules

class UnitVectors:
    def sample(self, rng, rounds, theta):
        return np.broadcast_to(np.eye(len(theta)), (rounds, len(theta), len(theta)))

world = lc.World(theta=[0.2, 0.4], actions=UnitVectors(), delays=lc.delays.Geometric(mean=10))
policies = {"buffered": lc.OTFLinUCB(2, 30, width="buffered")}
here = lc.simulate(world, policies, horizon=100, runs=4, jobs=1)
there = lc.simulate(world, policies, horizon=100, runs=4, engine=DaskEngine(sys.argv[1]))
assert np.array_equal(here.regret("buffered"), there.regret("buffered"))
"""
    )
    command = [sys.executable, "-W", "error", str(script), machines.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)  # noqa: S603
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_scheduler_without_workers_then_with_one_without_latecomer(tmp_path: Path) -> None:
    play = partial(_play, WORLD, policies(), 10, 0, False, 10)
    with Machines(tmp_path) as lonely:
        with pytest.raises(InputError, match=rf"{lonely.address} had none within 0.5 s: start one with `dask worker"):
            next(DaskEngine(lonely.address, worker_timeout=0.5).map(play, 1))
        bare = tmp_path / "bare.py"
        bare.write_text("import sys; sys.modules['latecomer'] = None")
        worker = lonely.work("--preload", str(bare))
        with pytest.raises(InputError, match=r"importable on the workers; there, .*latecomer.*: install it there too"):
            next(DaskEngine(lonely.address, worker_timeout=TIMEOUT).map(play, 1))
        assert worker.poll() is None  # nor did it die of it


def test_engine_raises_when_the_scheduler_is_lost(tmp_path: Path) -> None:
    with Machines(tmp_path) as doomed:
        doomed.work()
        runs = DaskEngine(doomed.address, 1, worker_timeout=TIMEOUT).map(
            partial(_play, slow(0.02), policies(), 10, 0, False, 10), 200
        )
        next(runs)
        doomed.processes[0].kill()
        with pytest.raises(LatecomerError, match=r"the scheduler was lost, or .*scheduler-connection-lost"):
            list(runs)


@pytest.mark.parametrize("listens", [False, True])
def test_engine_says_that_no_scheduler_answers(listens: bool) -> None:
    begun = time.monotonic()
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        if listens:
            deaf.listen()
        address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(InputError, match=rf"running Dask scheduler, .*; got '{address}', where none answered: \w+"):
            lc.simulate(WORLD, policies(), horizon=10, runs=2, engine=DaskEngine(address, connect_timeout=1.0))
    assert time.monotonic() - begun < 30.0


@pytest.mark.parametrize("address", ["", "localhost", "carrier-pigeon://loft:1"])
def test_engine_refuses_what_is_no_address(address: str) -> None:
    with pytest.raises(InputError, match=rf"got '{address}', where none answered: (missing port|unknown address)"):
        lc.simulate(WORLD, policies(), horizon=10, runs=2, engine=DaskEngine(address))


def test_engine_refuses_bad_arguments(client: Any) -> None:
    with pytest.raises(InputError, match=r"scheduler must be an address, or a distributed.Client; got 8786"):
        DaskEngine(8786)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="chunk must be at least 1"):
        DaskEngine(client, 0)
    with pytest.raises(InputError, match="worker_timeout must be above 0"):
        DaskEngine(client, worker_timeout=0)


def test_engine_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'latecomer\[dask\]'"):
        DaskEngine("tcp://127.0.0.1:8786")
