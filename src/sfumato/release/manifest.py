"""What the manifest of a release says, there and back.

A manifest may come from a stranger: every entry is checked before it is used, most of them against the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sfumato.columns.facts import shown
from sfumato.errors import ReleaseError
from sfumato.io.arrays import KEYS
from sfumato.io.arrow import read_type, write_type
from sfumato.io.baskets import SET_KEYS
from sfumato.io.sources import Container
from sfumato.privacy.certificate import Certificate
from sfumato.schema.schema import Schema

_LONGEST_DTYPE = 200
_CONTAINERS = ("csv", "parquet", "npz", "pandas", "polars", "pyarrow", "arrays", "folder", "fimi")
_PARAMETERS, _MEASUREMENTS = "parameters.", "measurements."


@dataclass(frozen=True, slots=True)
class Measurement:
    """One released noisy statistic.

    Attributes:
        name: what was measured.
        value: noisy value.
        noise_std: standard deviation of the Gaussian noise of each entry, in the value's units.
        symmetric: the last two axes are a symmetric matrix; off its diagonal the noise is noise_std/√2.
    """

    name: str
    value: np.ndarray
    noise_std: float
    symmetric: bool = False


@dataclass(frozen=True, slots=True)
class SourceForm:
    """The form the records came in, which samples are given back in: metadata, no values.

    Attributes:
        container: "csv", "parquet", "npz", "pandas", "polars", "pyarrow", "arrays", "folder" or "fimi".
        storage: pyarrow type of every column of samples.
        dtypes: the data frame's own names of those types.
        keys: keys of image columns in an `.npz` file.
    """

    container: Container
    storage: Mapping[str, pa.DataType]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)


class ReleaseContent(NamedTuple):
    """What a release is made of; see the attributes of `Release`."""

    schema: Schema
    certificate: Certificate
    sampler: Mapping[str, Any]
    parameters: Mapping[str, np.ndarray]
    measurements: tuple[Measurement, ...]
    form: SourceForm


def written(content: ReleaseContent) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what the manifest says of a release, and the arrays by name."""
    form = content.form
    arrays = {f"{_PARAMETERS}{name}": value for name, value in content.parameters.items()}
    same = {id(value): name for name, value in arrays.items()}
    # a measurement that is a parameter, the very array, is stored once
    names = [same.get(id(m.value), f"{_MEASUREMENTS}{i}") for i, m in enumerate(content.measurements)]
    arrays |= {name: m.value for name, m in zip(names, content.measurements, strict=True)}
    manifest = {
        "schema": content.schema.to_dict(),
        "sampler": dict(content.sampler),
        "certificate": content.certificate.to_dict(),
        "measurements": [
            {"name": m.name, "array": name, "noise_std": m.noise_std, "symmetric": m.symmetric}
            for name, m in zip(names, content.measurements, strict=True)
        ],
        "form": {
            "container": form.container,
            "storage": {name: write_type(kind) for name, kind in form.storage.items()},
            "dtypes": dict(form.dtypes),
            "keys": dict(form.keys),
        },
    }
    return manifest, arrays


def read(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ReleaseContent:
    """Return what `written` was given.

    Args:
        manifest: from anyone.
        arrays: finite numbers, by name.

    Raises:
        SfumatoError: an entry is not as it has to be. What else a hostile manifest provokes is the caller's to catch.
    """
    schema = Schema.from_dict(manifest["schema"])
    return ReleaseContent(
        schema=schema,
        certificate=Certificate.from_dict(manifest["certificate"]),
        sampler=dict(manifest["sampler"]),
        parameters={name.removeprefix(_PARAMETERS): a for name, a in arrays.items() if name.startswith(_PARAMETERS)},
        measurements=tuple(_measurement(entry, arrays) for entry in manifest["measurements"]),
        form=_form(manifest["form"], schema),
    )


def _measurement(entry: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Measurement:
    name, noise_std, symmetric = entry["name"], entry["noise_std"], entry["symmetric"]
    number = isinstance(noise_std, (int, float)) and not isinstance(noise_std, bool)
    if not (isinstance(name, str) and number and noise_std >= 0 and isinstance(symmetric, bool)):
        raise ReleaseError("Expected measurements with a name, a noise_std of at least 0, and symmetric true or false.")
    return Measurement(name, arrays[entry["array"]], float(noise_std), symmetric)


def _form(form: Mapping[str, Any], schema: Schema) -> SourceForm:
    container, dtypes, keys = form["container"], form["dtypes"], form["keys"]
    if container not in _CONTAINERS:
        raise ReleaseError(f"Expected a known container, got {shown(container)}.")
    for name, dtype in dtypes.items():
        if name not in schema.written or not isinstance(dtype, str) or len(dtype) > _LONGEST_DTYPE:
            raise ReleaseError("Expected dtypes to name the types of released columns.")
    # a key names a member of the archive that samples are written to
    if not any(keys.items() <= known.items() for known in (*KEYS, SET_KEYS)):
        raise ReleaseError("Expected keys that images, labels and sets have in an .npz file.")
    storage = {name: read_type(form["storage"][name]) for name in schema.written}
    return SourceForm(container, storage, dict(dtypes), dict(keys))
