"""Two tiers: a kernel runs as plain Python at once, and as machine code as soon as there is some.

Both do the same to the last bit, so that one takes over from the other between two calls. Machine code is made in the
background (`background`) once a kernel has taken `HOT_SECONDS` as plain Python, or at once where much work is known to
come (`prepare`). LATECOMER_COMPILE says otherwise: "bulk" for nothing in the background, "never", or "now" for the
first call of each kernel.
"""

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock
from typing import Any, ClassVar

from latecomer.core.jit import Declaration, find_declaration
from latecomer.tiers.code_cache import VARIABLE as FOLDER_VARIABLE
from latecomer.tiers.code_cache import CodeKey, code_key, find_cache_folder, is_writable
from latecomer.tiers.flatten import flatten
from latecomer.tiers.interpreter import interpret
from latecomer.tiers.source import Source, StateKind

VARIABLE = "LATECOMER_COMPILE"
MODES = ("auto", "bulk", "never", "now")

HOT_SECONDS = 0.05
"""A kernel that has taken so long as plain Python is compiled in the background."""

RETRY_SECONDS = 10.0
"""Where making it has failed, it is tried again after so long as plain Python."""

LOOK_SECONDS = 0.3
"""In the mode "bulk", a kernel that has taken so long as plain Python is looked for on disk."""

LONG_SECONDS = 4.0
"""In the mode "bulk", a kernel that has taken so long as plain Python is compiled there and then, in 2 to 8 seconds."""

GIVE_WAY_SECONDS = 1e-4
"""The sleep of each call as plain Python while a thread makes or loads machine code. A thread that calls NumPy in a
loop drops Python's lock and takes it back before another one wakes up: without the sleep, the thread may never run."""

WORTHWHILE_ROUNDS = 2000
"""So many rounds as plain Python take longer than loading machine code, or nearly as long as making it."""

Announce = Callable[[str], None]

_logger = logging.getLogger("latecomer")
_said: set[str] = set()

is_under_way = Event()
"""Set while a thread makes or loads machine code."""


def say_once(text: str) -> None:
    """Log a warning the first time in this process."""
    if text not in _said:
        _said.add(text)
        _logger.warning(text)


def say_not_kept(folder: Path | None) -> None:
    """Log once that the machine code that is made now cannot be kept."""
    say_once(
        f"machine code cannot be kept in {folder}, so that every process compiles anew: set {FOLDER_VARIABLE} to a "
        "folder that can be written"
    )


def compile_mode() -> str:
    """Return the mode of LATECOMER_COMPILE: "never" also where Numba is not installed."""
    mode = os.environ.get(VARIABLE) or "auto"
    if mode not in MODES:
        say_once(f"{VARIABLE} must be one of {', '.join(MODES)}; got {mode!r}: auto is taken")
        mode = "auto"
    if mode != "never" and not has_numba():
        say_once("Numba is not installed: decisions are made by plain Python, which is slower")
        mode = "never"
    return mode


@cache
def has_numba() -> bool:
    """Tell whether Numba is installed."""
    return find_spec("numba") is not None


@dataclass(frozen=True)
class Job:
    """An order to another process, which makes machine code: call a function of a module with these arguments."""

    module: str
    function: str
    arguments: dict[str, Any]


@dataclass(eq=False)
class TieredKernel:
    """A kernel, called as plain Python until there is machine code.

    Parameters
    ----------
    function
        The kernel.
    examples
        Returns arguments of the types that calls have.
    kind
        What is known of the state that the first argument holds, if it is one.
    label
        What to call it while it is compiled: "OTFLinUCB for d = 5".
    job
        How another process compiles it; without one it is compiled in a thread of this.
    worthwhile
        So many rounds are worth waiting until it is compiled; more where plain Python is NumPy, and nearly as fast.
    install
        Called with the machine code, for callers that keep it in a place of their own.
    wrap
        Makes of the machine code what is to be called in its place.
    """

    function: Callable[..., Any]
    examples: Callable[[], tuple[Any, ...]]
    kind: StateKind | None = None
    label: str = ""
    job: Job | None = None
    worthwhile: int = WORTHWHILE_ROUNDS
    compiled_kernels: ClassVar[int] = 0
    """Kernels of this process that have machine code: while it is the same, so is what their callers measure."""
    companions: "list[TieredKernel]" = field(default_factory=list)
    """Kernels to be compiled with it."""
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda code: code
    install: Callable[[Callable[..., Any]], None] = lambda _: None

    def __post_init__(self) -> None:
        self._spent = 0.0
        self._lock = Lock()
        self.is_compiled = self.is_requested = self._was_looked_for = False
        self.call: Callable[..., Any] = self.interpret
        """The kernel, in whichever tier."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        return self.call(*arguments)

    def interpret(self, *arguments: Any) -> Any:
        """Run it as plain Python; ask for machine code where that has taken long enough."""
        mode = compile_mode()
        if mode == "now" or (mode == "bulk" and self._is_worth_waiting()):
            return self.compile()(*arguments)
        if is_under_way.is_set():
            time.sleep(GIVE_WAY_SECONDS)
        began = time.thread_time()  # what other threads and processes do meanwhile does not count
        result = interpret(self.function, *arguments)
        self._spent += time.thread_time() - began
        if mode != "bulk" and self._spent > HOT_SECONDS and not self.is_requested:
            request([self, *self.companions])
        return result

    def _is_worth_waiting(self) -> bool:
        """Tell whether a kernel has taken so long that machine code is loaded, or even made, before the next call."""
        if self._spent > LOOK_SECONDS and not self._was_looked_for:
            self._was_looked_for = True
            return self.is_on_disk
        return self._spent > LONG_SECONDS

    def retry_later(self) -> None:
        """Let machine code be requested again after `RETRY_SECONDS` more as plain Python."""
        self._spent, self.is_requested = HOT_SECONDS - RETRY_SECONDS, False

    def forget_request(self) -> None:
        """In a forked child: request machine code at the next call; the thread that may have held the lock is gone."""
        self._lock, self.is_requested = Lock(), self.is_compiled

    def prepare(self, rounds: int, announce: Announce | None = None) -> Callable[..., Any]:
        """Return the kernel for so many rounds: machine code where that is worth waiting for it."""
        if self.is_compiled or rounds < WORTHWHILE_ROUNDS or compile_mode() == "never":
            return self.call
        return self.compile(announce) if rounds >= self.worthwhile or self.is_on_disk else self.call

    @property
    def is_on_disk(self) -> bool:
        """True where its machine code only has to be loaded."""
        return self.key.is_in(find_cache_folder())

    def compile(self, announce: Announce | None = None, folder: Path | None = None) -> Callable[..., Any]:
        """Load machine code, or make it, and return it; say so where it takes a while."""
        with self._lock:
            if not self.is_compiled:
                code = self.wrap(self._machine_code(announce, folder or find_cache_folder()))
                self.call, self.is_compiled = code, True
                TieredKernel.compiled_kernels += 1
                self.install(code)
                del self._source
        return self.call

    def _machine_code(self, announce: Announce | None, folder: Path | None) -> Callable[..., Any]:
        from latecomer.tiers.compiler import machine_code  # noqa: PLC0415 - it imports Numba

        is_new = not self.key.is_in(folder)
        is_kept = is_new and folder is not None and is_writable(folder)
        if announce is not None and is_new:
            once = ", once on this machine" if is_kept else ""
            announce(f"compiling {self.label or self.function.__name__}{once} …")
        if is_new and not is_kept:
            say_not_kept(folder)
        try:
            code, seconds = machine_code(
                self._source, self.key, self.examples(), folder=folder, holds_gil=self._holds_gil
            )
        except KeyboardInterrupt:  # without the hundred lines of where the compiler was
            raise KeyboardInterrupt(f"while compiling {self.label or self.function.__name__}") from None
        if announce is not None and is_new:
            announce(f"compiled in {seconds:.1f} s")
        return code

    @cached_property
    def _source(self) -> Source:
        return flatten(self.function, self.kind)

    @cached_property
    def key(self) -> CodeKey:
        """The key of its machine code."""
        return code_key(self.function, self._source.text, holds_gil=self._holds_gil)

    @property
    def _holds_gil(self) -> bool:
        declaration = find_declaration(self.function)
        return isinstance(declaration, Declaration) and declaration.holds_gil


def request(kernels: Sequence[TieredKernel]) -> None:
    """Have machine code made in the background, for kernels of which none has been requested before."""
    wanted = [kernel for kernel in kernels if not kernel.is_requested and not kernel.is_compiled]
    for kernel in wanted:
        kernel.is_requested = True
    mode = compile_mode()
    if mode == "never":
        say_once(f"{VARIABLE} is never: decisions are made by plain Python, which is slower")
    elif wanted and mode != "bulk":
        from latecomer.tiers.background import submit  # noqa: PLC0415 - no thread before one is needed

        submit(wanted)
