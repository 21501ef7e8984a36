"""Settings that the log keeps for its store: retention, the clock's shift, and whether keys are expected."""

from collections.abc import Callable

from latecomer.service.durations import FOREVER, parse_retention
from latecomer.service.log_interface import Log
from latecomer.service.storage.clock import StoreClock

_YES, _NO = "yes", "no"


class StoreSettings:
    """Reads and changes settings; a change is in the log after everything that was appended before it.

    Parameters
    ----------
    log
        Where settings are kept.
    clock
        The store's time.
    check_open
        Raises `StoreError` where changes are refused.
    """

    def __init__(self, log: Log, clock: StoreClock, check_open: Callable[[], None]) -> None:
        self._log, self._clock, self._check_open = log, clock, check_open

    @property
    def retention(self) -> str:
        """The time that decisions stay in the log after their window."""
        retention = self._log.retention
        return FOREVER if retention is None else f"{retention // 1_000_000}s"

    def set_retention(self, retention: str) -> None:
        """Change the time that decisions stay in the log ("7d", "forever")."""
        parse_retention(retention)
        with self._log.lock:
            self._check_open()
            self._log.set_retention(retention)

    def adjust_clock(self) -> float:
        """Accept the machine's clock as right; return the seconds by which the store's time was ahead of it.

        The store's time goes on as it was, so that windows stay as they are; times shown as calendar times change.
        """
        with self._log.lock:
            self._check_open()
            lead = self._clock.adjust()
            self._log.write_setting("shift", str(self._clock.shift))
        return lead

    def expects_keys(self) -> bool:
        """Tell whether this store has been served with keys."""
        with self._log.lock:
            return self._log.read_setting("keys", _NO) == _YES

    def set_expects_keys(self, expected: bool) -> None:
        """Change whether keys are needed from now on."""
        with self._log.lock:
            self._check_open()
            self._log.write_setting("keys", _YES if expected else _NO)
