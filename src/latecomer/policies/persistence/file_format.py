"""One portable file for a policy: a zip of `.npy` arrays and one `header.json`, with a checksum for each array.

NumPy alone can read it (`numpy.load`). No pickle: a file from a stranger can be wrong, but not run code.
"""

import hashlib
import io
import json
import os
import zipfile
import zlib
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.atomic_write import replace_file
from latecomer.encoding.encoder import Encoder
from latecomer.errors import DamagedFileError, InputError, NewerFileError

FORMAT = "latecomer policy"
VERSION = 2
_HEADER = "header.json"


def pack(
    *,
    policy: str,
    parameters: dict[str, Any],
    generator: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    encoder: Encoder | None = None,
) -> bytes:
    """Return the contents of a file."""
    members = {name: _npy(array) for name, array in arrays.items()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "policy": policy,
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "generator": generator,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        **({} if encoder is None else {"encoder": encoder.to_dict()}),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            zipfile.ZipInfo(_HEADER), json.dumps(header, indent=1)
        )  # of no date: equal policies, equal files
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), data)
    return file.getvalue()


def write(path: str | PathLike[str], data: bytes) -> None:
    """Write a file atomically: it is complete and on disk before it takes the place of an older one."""
    target = Path(os.path.realpath(path))  # a link goes on pointing to the new file
    if not target.parent.is_dir():
        raise InputError(
            f"path must be in a folder that exists; there is no folder {target.parent}: make it first", field="path"
        )
    if target.is_dir():
        raise InputError(f"path must be that of a file; {target} is a folder: name a file in it", field="path")
    with replace_file(target) as temporary:
        temporary.write_bytes(data)


def unpack(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the header and the arrays of a file, each array checked against its checksum; errors call it `name`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            header = json.loads(archive.read(_HEADER))
            _check_format(name, header)
            arrays = {entry: _array(archive, entry, checksum) for entry, checksum in header["sha256"].items()}
        parameters = {entry: _rich(value) for entry, value in header["parameters"].items()}
        return {**header, "parameters": parameters}, arrays
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError) as error:
        raise _make_damage_error(name, error) from error
    except (EOFError, NotImplementedError, RuntimeError, OverflowError, MemoryError) as error:
        raise _make_damage_error(name, error) from error  # zipfile raises these for a damaged directory


def _check_format(name: str, header: dict[str, Any]) -> None:
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
    if type(header["version"]) is not int or header["version"] < VERSION:  # 1 was never released
        raise ValueError(f"its version is {header['version']!r}")
    if header["version"] > VERSION:
        raise NewerFileError(f"{name} has format {header['version']}, and this Latecomer reads up to {VERSION}: update")


def _array(archive: zipfile.ZipFile, name: str, checksum: str) -> npt.NDArray[Any]:
    data = archive.read(f"{name}.npy")
    if hashlib.sha256(data).hexdigest() != checksum:
        raise ValueError(f"the checksum of {name} does not match")
    array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def _npy(array: npt.NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    return {"microseconds": value // timedelta(microseconds=1)} if isinstance(value, timedelta) else value


def _rich(value: Any) -> Any:
    is_duration = isinstance(value, dict) and "microseconds" in value
    return timedelta(microseconds=value["microseconds"]) if is_duration else value


def _make_damage_error(name: str, error: Exception) -> DamagedFileError:
    return DamagedFileError(f"{name} is not a whole saved policy: {error}; restore it from a copy")
