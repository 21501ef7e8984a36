"""Before anything is imported: one BLAS thread, and where machine code is kept. And documents that are run."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parent
pytest_plugins = ["forked_workers"]

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two processes with two BLAS threads each fight for two cores


# Machine code is kept beside the source, and made where a test plays thousands of rounds; the rest is plain Python.
os.environ["LATECOMER_CACHE_DIR"] = str(ROOT / ".code_cache")
os.environ.setdefault("LATECOMER_COMPILE", "bulk")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # some hundred child processes would each parse the package again


def _enter_a_folder_of_its_own(namespace: dict[str, Any]) -> None:
    """Snippets may write files."""
    namespace["_home"], namespace["_folder"] = Path.cwd(), TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def _leave_it(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_home"])
    namespace["_folder"].cleanup()


settings.register_profile("short", max_examples=25)
settings.register_profile("long", max_examples=1000, deadline=None)


MEMORY = Path("/dev/shm")  # noqa: S108 - every test has a folder of its own there
ROOM = 2 << 30
"""The bytes that must be free in memory for the files of the tests to be there."""


def pytest_configure(config: pytest.Config) -> None:
    """Let a property be tried on a few examples, and on many in a soak, whose files are on the disk."""
    is_soak = config.getoption("markexpr") == "soak"
    settings.load_profile("long" if is_soak else "short")
    if not is_soak and "TMPDIR" not in os.environ and MEMORY.is_dir() and disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)  # a third of the time with stores is their disk's


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have every property in a soak too."""
    if config.getoption("markexpr") == "soak":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.soak)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a store that does not exist yet."""
    return tmp_path / "store.db"


@pytest.fixture
def signals_that_arrive() -> Iterator[None]:
    """A shell's background job ignores SIGINT, one under `nohup` SIGHUP, and so would their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler), signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGHUP, before[1])


@pytest.fixture
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write an empty picture for each: drawing takes a second, and a test in a real process draws what is there."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - most tests draw nothing

    write = Figure.savefig

    def write_empty(_figure: Figure, *arguments: Any, **options: Any) -> None:
        write(Figure(figsize=(1, 1)), *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", write_empty)


@pytest.fixture(scope="session")
def _cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Run a PostgreSQL for all tests of this process, in memory; that of a soak is on disk."""
    from postgres_server import cluster_folder, run_postgres  # noqa: PLC0415 - most runs of pytest need none

    in_memory = request.config.getoption("markexpr") != "soak"
    with cluster_folder(in_memory=in_memory) as folder, run_postgres(folder / "main") as server:
        yield server


@pytest.fixture
def cluster(_cluster: Any) -> Iterator[Any]:
    """Return a running PostgreSQL; a test may end it, and the next one finds it running again."""
    _cluster.ensure_running()
    yield _cluster
    _cluster.ensure_running()


@pytest.fixture
def database(cluster: Any) -> str:
    """Return the address of a new database that has the schema of a store."""
    from replicas import init_store  # noqa: PLC0415

    return init_store(cluster.create_database())


# Every Python snippet of README and docs is executed.
pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["*.md"],
    setup=_enter_a_folder_of_its_own,
    teardown=_leave_it,
).pytest()
