"""Errors that Latecomer raises on purpose; each names the rule, the value and the remedy."""


class LatecomerError(Exception):
    """Any error that Latecomer raises on purpose."""


class InputError(LatecomerError, ValueError):
    """An argument breaks a rule. Nothing has changed. `field` names the argument, where it is one."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ClockError(InputError):
    """A time lies further back than a whole window, and the grace of a conversion. Nothing has changed."""


class OccurredBeforeDecisionWarning(UserWarning):
    """A conversion was accepted whose `occurred_at` lies before its decision: its zone or its unit may be wrong."""


class NotIdentifiableError(LatecomerError):
    """A quantity cannot be estimated from this kind of data, however much of it there is."""


class FileError(LatecomerError):
    """A file cannot be read: a saved policy, a log of decisions, or a log of delays."""


class LogError(FileError, InputError):
    """A log of delays does not hold what it must: its columns, its rows, its times."""


class DamagedFileError(FileError):
    """A file is of another kind, or its contents do not match their checksums."""


class QuarantinedError(DamagedFileError):
    """Rows of one bandit are damaged: nothing of it is served or written, and the others of its file go on."""


class NoRoomError(FileError):
    """The disk is too full to open the file."""


class NewerFileError(FileError):
    """The file was written by a later version of Latecomer."""


class StoreError(LatecomerError):
    """The log could not be written. What was not acknowledged may or may not exist; what was, does."""


class StoreLockedError(StoreError):
    """Another process owns the file."""


class UnknownBanditError(LatecomerError, LookupError):
    """There is no bandit of that name."""


class ConflictError(LatecomerError):
    """The name or the request id is taken, by something else."""


class ServiceError(LatecomerError):
    """A server did not answer, or refused: no connection, no key, a limit."""


class MissingPackageError(LatecomerError, ImportError):
    """A package of an optional extra is not installed."""
