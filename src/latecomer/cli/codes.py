"""Exit codes, as shells have them."""

from latecomer.errors import InputError

USAGE, FAILURE, INTERRUPTED = 2, 1, 130


def code_of(error: Exception) -> int:
    """Tell a request that cannot be met from one that failed."""
    return USAGE if isinstance(error, InputError) else FAILURE
