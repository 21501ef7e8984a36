"""Makes the engine that the options --engine, --scheduler and --jobs describe."""

from typing import TYPE_CHECKING

from latecomer.errors import InputError

if TYPE_CHECKING:
    from latecomer.simulation.simulate import Engine


def make_engine(engine: str, scheduler: str | None, jobs: int | None) -> "Engine":
    """Make the threads of this machine, or the connection to a Dask cluster."""
    if engine == "threads":
        if scheduler is not None:
            raise InputError(f"--scheduler is for --engine dask; got {scheduler!r} with --engine threads")
        from latecomer.simulation.simulate import ThreadEngine  # noqa: PLC0415 - only where it is used

        return ThreadEngine(jobs)
    if engine == "dask":
        if scheduler is None:
            raise InputError("--engine dask needs the scheduler's address: --scheduler tcp://HOST:PORT")
        from latecomer.simulation.dask_engine import DaskEngine  # noqa: PLC0415

        return DaskEngine(scheduler)
    raise InputError(f"--engine must be one of 'threads', 'dask'; got {engine!r}")
