"""Without the extra, the error says what to install."""

import subprocess
import sys


def test_missing_service_package_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['apsw'] = None\n"
        "import latecomer as lc\n"
        "try:\n    lc.open\n"
        "except lc.errors.MissingPackageError as error:\n    print(error)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "latecomer.open needs the package apsw: pip install 'latecomer[service]'"
