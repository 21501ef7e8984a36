"""Optional packages: the extra that installs each of them, and the one error for a package that is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from latecomer.errors import MissingPackageError

EXTRAS = {
    "apsw": "service",
    "cloudpickle": "dask",
    "distributed": "dask",
    "faiss": "search",
    "httptools": "service",
    "httpx": "service",
    "matplotlib": "plot",
    "opentelemetry": "traces",
    "polars": "frames",
    "prometheus_client": "service",
    "psycopg": "postgres",
    "rich": "cli",
    "structlog": "service",
    "typer": "cli",
    "uvloop": "service",
}
"""Name of an optional package, as it is imported, to the extra of Latecomer that installs it."""


def require_packages(user: str, *packages: str) -> None:
    """Raise one `MissingPackageError` for all of these packages that are not installed; `user` is what needs them."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise missing_package_error(user, *missing)


@contextmanager
def explain_missing_package(user: str) -> Iterator[None]:
    """Turn the failed import of an optional package into a `MissingPackageError`; `user` is what needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise translate_import_error(user, error) from error.__cause__


def translate_import_error(user: str, error: ModuleNotFoundError) -> ImportError:
    """Return a `MissingPackageError` where an optional package is missing, and the error itself otherwise."""
    package = (error.name or "").partition(".")[0]
    return missing_package_error(user, package) if package in EXTRAS else error


def missing_package_error(user: str, *packages: str) -> MissingPackageError:
    """Return the error that names what needs the packages, the packages, and the command that installs them.

    >>> print(missing_package_error("Result.to_frame", "polars"))
    Result.to_frame needs the package polars: pip install 'latecomer[frames]'
    """
    extras = ",".join(dict.fromkeys(EXTRAS[package] for package in packages))
    named = f"package {packages[0]}" if len(packages) == 1 else f"packages {' and '.join(packages)}"
    return MissingPackageError(f"{user} needs the {named}: pip install 'latecomer[{extras}]'", name=packages[0])
