"""The exit codes of the command."""

from latecomer.errors import InputError

USAGE, FAILURE, INTERRUPTED = 2, 1, 130
ALARM = 3
"""`latecomer check` has found an alarm."""


def exit_code(error: Exception) -> int:
    """Return the exit code of an error: 2 for wrong arguments, 1 for a failure."""
    return USAGE if isinstance(error, InputError) else FAILURE
