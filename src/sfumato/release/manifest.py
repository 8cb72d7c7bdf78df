"""What the manifest of a release says, there and back; and what ties a certificate to its release.

A manifest may come from a stranger: every entry is checked before it is used, most of them against the schema.

A saved certificate carries the hash of the arrays as written, and of a canonical form of the manifest with the
certificate itself: it cannot be moved to another release by mistake, or without computing hashes anew. What this proves
and what it cannot: docs/audit_trail.md.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from sfumato.errors import ReleaseError
from sfumato.io.arrow import read_type, write_type
from sfumato.io.baskets import SET_KEYS
from sfumato.io.image_arrays import KEYS
from sfumato.io.sources import Container
from sfumato.lenses.chain import plain_schema
from sfumato.measurements.queries import LARGEST, MarginalQuery, Measurement, are_too_large
from sfumato.measurements.query_form import QueryArrays, read_query, write_query
from sfumato.measurements.score_query import ScoreQuery
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.certificate_form import Bound
from sfumato.privacy.origin import Grid, Origin
from sfumato.privacy.reading import Place, document, entry, many, mapping, number, one_of, plain, reader
from sfumato.privacy.words import Checked
from sfumato.schema.branch_schemas import branch_views
from sfumato.schema.linked import linked_tables
from sfumato.schema.schema import Schema, release_schema
from sfumato.schema.unit_features import features_in

_LONGEST_DTYPE = 200
_PLACE = Place("manifest")
_PARAMETERS, _MEASUREMENTS, _GRIDS = "parameters.", "measurements.", "grids."
UNITS_PART, STEPS_PART = "units: ", "steps: "
"""How the measurements of units of linked rows begin, and those of their steps."""
_BOUND = ("schema", "sampler", "certificate", "measurements", "form", "not_kept")


@dataclass(frozen=True, slots=True)
class SourceForm:
    """The form the records came in, which samples are given back in: metadata, no values.

    Attributes:
        container: "csv", "parquet", "npz", "pandas", "polars", "pyarrow", "arrays", "folder" or "fimi".
        storage: pyarrow type of every column of samples.
        dtypes: the data frame's own names of those types.
        keys: keys of image columns in an `.npz` file.
    """

    container: Container = entry(one_of(*get_args(Container)))  # noqa: RUF009 - a field
    storage: Mapping[str, pa.DataType] = entry(
        mapping(lambda value, place: read_type(reader(str)(value, place))),
        write=lambda kinds: {name: write_type(kind) for name, kind in kinds.items()},
    )
    dtypes: Mapping[str, str] = entry(mapping(str), factory=dict)
    keys: Mapping[str, str] = entry(mapping(str), factory=dict)


@dataclass(frozen=True)
class ReleaseContent:
    """What a release is made of; see the attributes of `Release`."""

    schema: Schema
    certificate: Certificate
    sampler: Mapping[str, Any]
    parameters: Mapping[str, np.ndarray]
    measurements: tuple[Measurement, ...]
    form: SourceForm


def _grid(value: object, place: Place) -> float | str:
    return value if isinstance(value, str) else number(0, sys.float_info.max, inside=True)(value, place)


@document
class _Measured:
    """What the manifest says of a measurement; its value is an array, and so is a grid of several steps."""

    name: str = entry(str)
    array: str = entry(str)
    noise_std: float = entry(number(0, LARGEST))
    symmetric: bool = entry(bool)
    stage: str | None = entry(str, default=None)
    norm_bound: float | None = entry(number(0, sys.float_info.max, inside=True), default=None)
    grid: float | str | None = entry(_grid, default=None)
    off_diagonal_grid: float | str | None = entry(_grid, default=None)
    query: Mapping[str, Any] | None = entry(mapping(), default=None)


@document
class _Manifest:
    """What a manifest says of a release, but for its own version and the check sum of the arrays."""

    schema: Schema = entry(lambda value, place: release_schema(value), write=Schema.to_dict)  # type: ignore[arg-type]
    sampler: Mapping[str, Any] = entry(mapping())
    certificate: Certificate = entry(lambda value, place: Certificate.from_dict(value), write=Certificate.to_dict)
    measurements: tuple[_Measured, ...] = entry(many(_Measured))
    form: SourceForm = entry(SourceForm)
    not_kept: tuple[str, ...] = entry(many(str), default=())


def written(content: ReleaseContent) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what the manifest says of a release, and the arrays by name."""
    arrays = {f"{_PARAMETERS}{name}": value for name, value in content.parameters.items()}
    same = {id(value): name for name, value in arrays.items()}
    # a measurement that is a parameter, the very array, is stored once
    names = [same.get(id(m.value), f"{_MEASUREMENTS}{i}") for i, m in enumerate(content.measurements)]
    arrays |= {name: m.value for name, m in zip(names, content.measurements, strict=True)}
    manifest = _Manifest(
        schema=content.schema,
        sampler=content.sampler,
        certificate=content.certificate,
        measurements=tuple(
            _Measured(
                name=m.name,
                array=name,
                noise_std=m.noise_std,
                symmetric=m.symmetric,
                query=None if m.query is None else write_query(m.query, arrays),
                **_origin_entries(m.origin, i, arrays),
            )
            for i, (name, m) in enumerate(zip(names, content.measurements, strict=True))
        ),
        form=content.form,
        not_kept=stages_not_kept(content.certificate, content.measurements),
    )
    return plain(manifest), arrays


def _origin_entries(origin: Origin | None, i: int, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the entries of an origin; a grid of several steps joins the arrays."""
    if origin is None:
        return {}
    entries: dict[str, Any] = {"stage": origin.stage, "norm_bound": origin.norm_bound}
    for key in ("grid", "off_diagonal_grid"):
        grid: Grid | None = getattr(origin, key)
        if isinstance(grid, np.ndarray):
            entries[key] = f"{_GRIDS}{i}.{key}"
            arrays[entries[key]] = grid
        elif grid is not None:
            entries[key] = grid
    return entries


def stages_not_kept(certificate: Certificate, measurements: Iterable[Measurement]) -> tuple[str, ...]:
    """Return the stages of all records that no measurement names."""
    named = {m.origin.stage for m in measurements if m.origin is not None}
    return tuple(s.name for s in certificate.events if s.inclusion is None and s.name not in named)


def read(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ReleaseContent:
    """Return what `written` was given.

    Args:
        manifest: from anyone.
        arrays: finite numbers, by name.

    Raises:
        SfumatoError: an entry is not as it has to be. What else a hostile manifest provokes is the caller's to catch.
    """
    entries = reader(_Manifest)(manifest, _PLACE)
    place = _PLACE.at("measurements")
    parts = {
        part for m in entries.measurements for part in (m.array, m.grid, m.off_diagonal_grid) if isinstance(part, str)
    }
    if not parts <= arrays.keys():
        place.refuse("names an array that is not there")
    if any(are_too_large(arrays[name]) for name in {m.array for m in entries.measurements}):
        place.refuse(f"has a value above {LARGEST:g}")
    queries = QueryArrays(arrays)
    measurements = tuple(_measurement(m, arrays, queries, place) for m in entries.measurements)
    require_queries_fit(measurements, entries.schema)
    return ReleaseContent(
        schema=entries.schema,
        certificate=entries.certificate,
        sampler=entries.sampler,
        parameters={name.removeprefix(_PARAMETERS): a for name, a in arrays.items() if name.startswith(_PARAMETERS)},
        measurements=measurements,
        form=_of_schema(entries.form, entries.schema, _PLACE.at("form")),
    )


def _measurement(entry: _Measured, arrays: Mapping[str, np.ndarray], queries: QueryArrays, place: Place) -> Measurement:
    query = None if entry.query is None else read_query(entry.query, place.at("query"), queries)
    origin = _origin(entry, arrays, place)
    return Measurement(entry.name, arrays[entry.array], float(entry.noise_std), entry.symmetric, origin, query)


def require_queries_fit(measurements: Iterable[Measurement], schema: Schema) -> None:
    """Refuse a query of other columns, cells or weights than the schema has, or of another shape than its value.

    Raises:
        ReleaseError: it is such. The message names the measurement by its place, not by what a stranger called it.
    """
    weight = "" if schema.weight is None else schema.weight.column
    parts = {"": schema} if schema.tree is None else {f"{b}: ": v.schema for b, v in branch_views(schema).items()}
    known = {part: (plain_schema(own), *_measured_tables(own)) for part, own in parts.items()}
    for i, measurement in enumerate(measurements):
        part = next((part for part in known if measurement.name.startswith(part)), next(iter(known)))
        plain, units, steps = known[part]
        table = steps if steps is not None and measurement.name.startswith(part + STEPS_PART) else units
        features = features_in(sorted(columns_of(measurement)), plain) if table is units else []
        kinds = {**table.columns, **{feature.name: feature.kind for feature in features}}
        if fault := measurement.fault(kinds, weight):
            raise ReleaseError(f"Measurement {i + 1} {fault}: this release does not say what it measured.")


def _measured_tables(schema: Schema) -> tuple[Schema, Schema | None]:
    """Return the plain table that measurements of a schema are of, and of linked rows that of steps."""
    plain = plain_schema(schema)
    if not schema.linked:
        return plain, None
    tables = linked_tables(plain, schema.weight)
    return tables.units, None if tables.steps is None else plain_schema(tables.steps)


def columns_of(measurement: Measurement) -> frozenset[str]:
    """The columns that a table or scores of a measurement are about."""
    query = measurement.query
    cells = query.cells if isinstance(query, MarginalQuery | ScoreQuery) else []
    return frozenset(own.column for own in cells)


def _origin(entry: _Measured, arrays: Mapping[str, np.ndarray], place: Place) -> Origin | None:
    """Return where a measurement says that it comes from."""
    if entry.stage is None or entry.norm_bound is None:
        stray = (entry.stage, entry.norm_bound, entry.grid, entry.off_diagonal_grid) != (None,) * 4
        return place.refuse("has a bound or a grid without a stage, or a stage without a bound") if stray else None
    value = arrays[entry.array]
    grids: list[Grid | None] = []
    for grid in (entry.grid, entry.off_diagonal_grid):
        steps = arrays[grid] if isinstance(grid, str) else grid
        if isinstance(steps, np.ndarray):
            fits = steps.ndim <= value.ndim and (steps > 0).all()
            fits = fits and all(a in (1, b) for a, b in zip(steps.shape[::-1], value.shape[::-1], strict=False))
            if not fits:
                place.refuse("has a grid that does not fit its values")
        grids.append(steps)
    square = value.ndim > 1 and value.shape[-1] == value.shape[-2]
    if (entry.off_diagonal_grid is not None) != (entry.symmetric and entry.grid is not None) or (
        entry.symmetric and not square
    ):
        place.refuse("has a grid off the diagonal of what is no symmetric matrix, or lacks it")
    return Origin(entry.stage, float(entry.norm_bound), *grids)


def _of_schema(form: SourceForm, schema: Schema, place: Place) -> SourceForm:
    """Return the form of a table of this schema, if it is one."""
    if not all(name in schema.written and len(dtype) <= _LONGEST_DTYPE for name, dtype in form.dtypes.items()):
        place.at("dtypes").refuse("names other things than types of released columns")
    # a key names a member of the archive that samples are written to
    if not any(form.keys.items() <= known.items() for known in (*KEYS, SET_KEYS)):
        place.at("keys").refuse("is not what images, labels and sets have in an .npz file")
    if not all(name in form.storage for name in schema.written):
        place.at("storage").refuse("lacks a released column")
    return replace(form, storage={name: form.storage[name] for name in schema.written})


def bound(manifest: Mapping[str, Any], packed: bytes) -> dict[str, Any]:
    """Return a manifest whose certificate names the arrays and the manifest."""
    return {**manifest, "certificate": {**manifest["certificate"], "release": plain(hashes(manifest, packed))}}


def hashes(manifest: Mapping[str, Any], packed: bytes) -> Bound:
    """Return what a certificate names its release by: hashes of the arrays, and of what the manifest says."""
    return Bound(arrays=hashlib.sha256(packed).hexdigest(), content=content_hash(manifest))


def content_hash(manifest: Mapping[str, Any]) -> str:
    """Return SHA-256 of a canonical form of a manifest, as it was parsed, in hexadecimal digits.

    The form is a JSON object of those of the keys schema, sampler, certificate (without its `release`), measurements,
    form and not_kept that are there, as `json.dumps(..., sort_keys=True, separators=(",", ":"))` writes it: ASCII,
    numbers as Python's shortest repr.
    """
    bound_parts = {key: manifest[key] for key in _BOUND if key in manifest}
    bound_parts["certificate"] = {key: value for key, value in bound_parts["certificate"].items() if key != "release"}
    canonical = json.dumps(bound_parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def check_binding(manifest: Mapping[str, Any], certificate: Certificate) -> None:
    """Refuse a certificate that was written for other arrays or another manifest, or names none.

    Args:
        manifest: as it was parsed; that its check sum is that of the arrays is known.
        certificate: as it was read.

    Raises:
        ReleaseError: it belongs to another release, or something was changed.
    """
    hashes = certificate.release
    if hashes is None:
        raise ReleaseError("Expected a certificate that names its release, got one that names none: it was taken out.")
    if hashes.arrays != manifest["arrays"]["sha256"]:
        raise ReleaseError("The certificate was written for other arrays: it belongs to another release.")
    if hashes.content != content_hash(manifest):
        raise ReleaseError(
            "The certificate was written for another schema, sampler, measurements or form, or was changed since: it "
            "does not belong to this release."
        )


def check_measurements(measurements: tuple[Measurement, ...], certificate: Certificate, not_kept: object) -> None:
    """Refuse measurements whose noise is not that of their stages, or which lie off the grid of their noise.

    Raises:
        ReleaseError: so it is; or a stage of all records has no measurement, and is not listed as not kept.
    """
    stages = {s.name: s for s in certificate.events if s.inclusion is None}
    factor = 1.0 if certificate.joint is None else certificate.joint.noise_factor
    for i, m in enumerate(measurements):
        if m.origin is None:
            continue
        stage, problem = stages.get(m.origin.stage), "names no stage of all records in the certificate"
        if stage is not None:
            problem = m.origin.contradiction(m.value, m.noise_std, stage.noise_multiplier * factor)
        if problem is not None:
            raise ReleaseError(f"Measurement {i + 1} {problem}: the certificate does not belong to it.")
    if list(stages_not_kept(certificate, measurements)) != (not_kept or []):
        raise ReleaseError("A stage of all records has no measurement, and is not listed under 'not_kept'.")


def what_was_checked(measurements: tuple[Measurement, ...], certificate: Certificate, *, loaded: bool) -> Checked:
    """Return what `load` found to be so.

    Args:
        measurements: of the release.
        certificate: of the release.
        loaded: whether the release is as it was read from a file, and bound: of others nothing is said.
    """
    origins = [m.origin for m in measurements if m.origin is not None]
    return Checked(
        loaded=loaded,
        measurements=len(measurements),
        with_stage=len(origins),
        on_grid=sum(origin.grid is not None for origin in origins),
        not_kept=stages_not_kept(certificate, measurements),
    )
