"""The command `latecomer`, also as `python -m latecomer`."""

from latecomer.errors import MissingPackageError
from latecomer.extras import explain_missing_package


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        with explain_missing_package("the command latecomer"):
            from latecomer.cli.main import app  # noqa: PLC0415 - its packages are optional
    except MissingPackageError as error:
        raise SystemExit(str(error)) from None
    app(prog_name="latecomer")


if __name__ == "__main__":
    main()
