"""A release on disk: `manifest.json` and `arrays.safetensors` in a directory, or in one uncompressed zip (`.sfm`).

Nothing is unpickled and no path inside an archive is followed. A file from a stranger is measured before it is read,
and every number in it is checked against the schema before it is used.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors.numpy

from sfumato.columns.facts import shown
from sfumato.errors import OutputError, ReleaseError, SfumatoError, require_instance
from sfumato.io.arrays import KEYS
from sfumato.io.arrow import read_type, write_type
from sfumato.io.atomic import atomic_path, reason_of
from sfumato.io.baskets import SET_KEYS
from sfumato.privacy.certificate import Certificate
from sfumato.release.model import Measurement, Release, SourceForm
from sfumato.schema.schema import Schema

FORMAT_VERSION = 1
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"
FILES = (MANIFEST, ARRAYS)
ARCHIVE_SUFFIX = ".sfm"
_LARGEST = {MANIFEST: 1 << 26, ARRAYS: 1 << 33}
_LONGEST_PROBLEM = 2_000
_LONGEST_DTYPE = 200
_DTYPES = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64))
_CONTAINERS = ("csv", "parquet", "npz", "pandas", "polars", "pyarrow", "arrays", "folder", "fimi")


def save(release: Release, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a release; it is there whole or not at all.

    Args:
        release: what to write.
        path: a directory to make, or a file name that ends in `.sfm`.
        overwrite: whether an existing release may be replaced.

    Raises:
        OutputError: the path exists and may not be replaced, or cannot be written.
    """
    require_instance((str, os.PathLike), "a path", path=path)
    path = Path(path)
    arrays = {f"parameters.{name}": value for name, value in release.parameters.items()}
    names = _measurement_names(release)
    arrays |= {name: m.value for name, m in zip(names, release.measurements, strict=True)}
    packed = safetensors.numpy.save({name: np.asarray(value, order="C") for name, value in arrays.items()})
    manifest = json.dumps(_manifest(release, packed), indent=1, ensure_ascii=False, allow_nan=False)
    contents = {MANIFEST: manifest.encode(), ARRAYS: packed}
    with atomic_path(path, overwrite=overwrite, marker=FILES) as partial:
        failure = reason_of(lambda: _write(contents, partial, archive=path.suffix == ARCHIVE_SUFFIX))
        if failure:
            raise OutputError(f"Cannot write {path}: {failure}.")


def _write(contents: Mapping[str, bytes], partial: Path, *, archive: bool) -> None:
    if archive:
        with zipfile.ZipFile(partial, "x", zipfile.ZIP_STORED) as file:
            for name, content in contents.items():
                file.writestr(zipfile.ZipInfo(name), content)
    else:
        partial.mkdir()
        for name, content in contents.items():
            (partial / name).write_bytes(content)


def _measurement_names(release: Release) -> list[str]:
    """Return the names of the measurements' arrays: of the parameter's where they are one array, stored once."""
    same = {id(value): f"parameters.{name}" for name, value in release.parameters.items()}
    return [same.get(id(m.value), f"measurements.{i}") for i, m in enumerate(release.measurements)]


def _manifest(release: Release, packed: bytes) -> dict[str, Any]:
    form = release.form
    return {
        "format_version": FORMAT_VERSION,
        "schema": release.schema.to_dict(),
        "sampler": dict(release.sampler),
        "certificate": release.certificate.to_dict(),
        "measurements": [
            {
                "name": m.name,
                "array": name,
                "noise_std": m.noise_std,
                "symmetric": m.symmetric,
            }
            for name, m in zip(_measurement_names(release), release.measurements, strict=True)
        ],
        "form": {
            "container": form.container,
            "storage": {name: write_type(kind) for name, kind in form.storage.items()},
            "dtypes": dict(form.dtypes),
            "keys": dict(form.keys),
        },
        "arrays": {"file": ARRAYS, "sha256": hashlib.sha256(packed).hexdigest()},
    }


def load(path: str | os.PathLike[str]) -> Release:
    """Read a release, from anyone.

    Args:
        path: a directory or a `.sfm` file that `save` wrote.

    Returns:
        The release, checked: sampling from it will not fail.

    Raises:
        ReleaseError: not a release, damaged, hostile, or of a format that this version does not know.
    """
    if not isinstance(path, str | os.PathLike):
        raise ReleaseError(f"Expected the path of a release, got {type(path).__name__}.")
    path = Path(path)
    try:
        return _load(path)
    except SfumatoError as error:
        problem = str(error)[:_LONGEST_PROBLEM]  # it may quote the file
    except OSError as error:
        problem = f"{error.strerror or type(error).__name__}."
    except Exception as error:  # noqa: BLE001 - whatever a hostile file provokes is one clear error
        problem = f"It is malformed ({type(error).__name__})."
    raise ReleaseError(f"Cannot read the release {path}: {problem}")


def _load(path: Path) -> Release:
    manifest_bytes, packed = _contents(path)
    manifest = _parse(manifest_bytes)
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        rule = f"Expected format_version {FORMAT_VERSION}, got {shown(version)}"
        _refuse(f"{rule}. Upgrade Sfumato, or ask for another file.")
    if hashlib.sha256(packed).hexdigest() != manifest["arrays"]["sha256"]:
        _refuse("The arrays are not those the manifest describes: the file is damaged.")
    arrays = safetensors.numpy.load(packed)
    for name, array in arrays.items():
        if array.dtype not in _DTYPES or not np.isfinite(array).all():
            _refuse(f"Expected finite numbers of a known type in the array {shown(name)}.")
    schema = Schema.from_dict(manifest["schema"])
    prefix = "parameters."
    release = Release(
        schema=schema,
        certificate=Certificate.from_dict(manifest["certificate"]),
        sampler=dict(manifest["sampler"]),
        parameters={name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)},
        measurements=tuple(_measurement(entry, arrays) for entry in manifest["measurements"]),
        form=_form(manifest["form"], schema),
    )
    release.check()
    return release


def _measurement(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> Measurement:
    name, noise_std, symmetric = entry["name"], entry["noise_std"], entry["symmetric"]
    number = isinstance(noise_std, (int, float)) and not isinstance(noise_std, bool)
    if not (isinstance(name, str) and number and noise_std >= 0 and isinstance(symmetric, bool)):
        _refuse("Expected measurements with a name, a noise_std of at least 0, and symmetric true or false.")
    return Measurement(name, arrays[entry["array"]], float(noise_std), symmetric)


def _form(form: dict[str, Any], schema: Schema) -> SourceForm:
    container, dtypes, keys = form["container"], form["dtypes"], form["keys"]
    if container not in _CONTAINERS:
        _refuse(f"Expected a known container, got {shown(container)}.")
    for name, dtype in dtypes.items():
        if name not in schema.written or not isinstance(dtype, str) or len(dtype) > _LONGEST_DTYPE:
            _refuse("Expected dtypes to name the types of released columns.")
    # a key names a member of the archive that samples are written to
    if not any(keys.items() <= known.items() for known in (*KEYS, SET_KEYS)):
        _refuse("Expected keys that images, labels and sets have in an .npz file.")
    storage = {name: read_type(form["storage"][name]) for name in schema.written}
    return SourceForm(container, storage, dict(dtypes), dict(keys))


def _parse(content: bytes) -> dict[str, Any]:
    problem = "the manifest is not valid JSON"
    try:
        manifest = json.loads(content.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
        if isinstance(manifest, dict):
            return manifest
        problem = "the manifest is not a mapping"
    except (ValueError, RecursionError):
        pass
    raise ReleaseError(f"{problem}.".capitalize())


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # such as 1e999
        raise ValueError
    return number


def _contents(path: Path) -> tuple[bytes, bytes]:
    if path.is_dir():
        return _read_file(path / MANIFEST), _read_file(path / ARRAYS)
    if not path.is_file():
        _refuse("There is no such file or directory.")
    if not zipfile.is_zipfile(path):
        _refuse("It is neither a directory nor a .sfm archive.")
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if set(members) != {MANIFEST, ARRAYS} or len(archive.infolist()) != len(members):
            _refuse(f"Expected exactly {MANIFEST} and {ARRAYS} in the archive.")
        for name, info in members.items():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > _LARGEST[name]:
                _refuse(f"Expected {name} to be stored uncompressed and of at most {_LARGEST[name]} bytes.")
        return archive.read(MANIFEST), archive.read(ARRAYS)


def _read_file(path: Path) -> bytes:
    if not path.exists():
        _refuse(f"It has no {path.name}.")
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST[path.name]:
        _refuse(f"Expected {path.name} to be a regular file of at most {_LARGEST[path.name]} bytes.")
    return path.read_bytes()


def _refuse(problem: str) -> NoReturn:
    raise ReleaseError(problem)
