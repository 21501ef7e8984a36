"""What can go wrong, each error naming the rule, the value and the remedy."""


class LatecomerError(Exception):
    """Any error that Latecomer raises on purpose."""


class InputError(LatecomerError, ValueError):
    """An argument breaks a rule. Nothing has changed."""


class ClockError(InputError):
    """A time lies further back than a whole window. Nothing has changed."""


class NotIdentifiableError(LatecomerError):
    """What was asked for cannot be known from what was seen, however much of it there is."""


class FileError(LatecomerError):
    """A file cannot be read: a saved policy, or a log of delays."""


class DamagedFileError(FileError):
    """The file is not a saved policy, or its contents do not match their checksums."""


class NewerFileError(FileError):
    """The file was written by a later version of Latecomer."""
