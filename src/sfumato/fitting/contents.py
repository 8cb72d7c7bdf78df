"""Contents of a release beside its sampler: the form its samples come back in, and its noisy statistics.

The types of samples follow from the schema and from the kind of container, never from the types of the source: one cell
may decide these. Whoever wants them back asks for them, and the certificate says so.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import pyarrow as pa
from pyarrow import types

from sfumato.columns.kind import ColumnKind
from sfumato.columns.levels import LevelKind
from sfumato.columns.sets import is_set_storage, plain_list_type
from sfumato.entry_points import is_ours, package_of
from sfumato.errors import (
    MethodError,
    PrivacyWarning,
    ReleaseError,
    SchemaError,
    SchemaWarning,
    SfumatoError,
    require_instance,
)
from sfumato.io.arrow import write_type
from sfumato.io.chunks import Container, Source
from sfumato.measurements import Measurement
from sfumato.mechanisms.queries import Noisy
from sfumato.records.long_tables import MOST_IDS, number_ids
from sfumato.release import SourceForm
from sfumato.schema.schema import Schema

T = TypeVar("T")
AS_SOURCE = (
    "Samples come back in the storage types of the source, which are published as they were. A single cell may decide "
    "such a type: they are NOT covered by the guarantee, unless they were fixed without looking at the records."
)

COMPUTED = (
    "The rows came from a query, a plan or a stream: that each row of its result is computed from one record alone is "
    "the holder's word."
)


def versions_of(parts: Iterable[type]) -> dict[str, str]:
    """Return the versions of the packages that classes are of, where these declare plugins of ours."""
    plugins = (package_of(part) for part in parts if not is_ours(part))
    return {plugin.package: plugin.version for plugin in plugins if plugin is not None}


def assumptions_of(methods: Iterable[type], source: type, kinds: Iterable[ColumnKind] = ()) -> list[str]:
    """Say for a certificate what rests on the word of others: the bounds of a method, what records and cells are."""
    sentences = [
        f"The method {method.__name__} is {_origin(method)}, not Sfumato's: that each record adds to each statistic at "
        "most what was charged, and that nothing else leaves, rests on that code."
        for method in dict.fromkeys(methods)
        if not is_ours(method)
    ]
    if not is_ours(source):
        sentences.append(
            f"The records were read by {_origin(source)}: that each is read on its own, the same each time, rests on "
            "that code."
        )
    for kind in dict.fromkeys(map(type, kinds)):
        if not is_ours(kind):
            sentences.append(
                f"Cells of kind {kind.name} were read by {_origin(kind)}: that each is read on its own, the same each "
                "time, rests on that code."
            )
    return sentences


def silenced(run: Callable[[], T], methods: Iterable[type], *, private: bool) -> T:
    """Return `run()`; of an exception of a method that is not Sfumato's only the type is shown.

    Its text, or a frame of its traceback, may hold a cell. Sfumato's own errors, which other packages may raise as
    well, are written to be shown. A fit that is not private anyway shows everything: its author has to see it.

    Raises:
        MethodError: it failed.
    """
    strange = [method for method in methods if not is_ours(method)]
    if not strange or not private:
        return run()
    try:
        return run()
    except SfumatoError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's code
        problem = type(error).__name__
    raise MethodError(
        f"The method {strange[0].__name__}, {_origin(strange[0])}, failed ({problem}). The error's text is "
        "withheld, as it could show a record; what was charged stays charged. To see it, fit made records with a seed."
    )


def _origin(part: type) -> str:
    plugin = package_of(part)
    if plugin is None:
        return f"code of no installed plugin (module {part.__module__.partition('.')[0]})"
    return f"code of the package {plugin.package} {plugin.version}"


def form_of(source: Source, schema: Schema, *, as_source: bool = False) -> SourceForm:
    """Return the form in which samples come back. Reads metadata alone, and of the types only if they are asked for.

    Args:
        source: of the records.
        schema: every column declared or found.
        as_source: whether the types are those of the source, where these can hold the values.
    """
    storage = {name: _sample_type(schema, name, source.container) for name in schema.written}
    source_names: set[str] = set()
    if as_source:
        own = {name: source_type(source, name) for name in schema.written}
        # those whose values can be stored so; ids of a long table were checked
        kinds = {name: schema.columns[name] for name in schema.released if name in own}
        source_names = {n for n, its in own.items() if n not in kinds or kinds[n].storage_fault(its) is None}
        storage |= {name: own[name] for name in source_names}
    dtypes = {name: source.dtypes[name] for name in schema.released if name in source_names and name in source.dtypes}
    if source.container == "pandas":
        others = {name: storage[name] for name in schema.released if name not in source_names}
        dtypes |= _pandas_dtypes(others, schema)
    keys = {name: source.keys[name] for name in schema.released if name in source.keys}
    return SourceForm(container=source.container, storage=storage, dtypes=dtypes, keys=keys)


def pandas_form(schema: Schema) -> SourceForm:
    """The form in which samples come back as a data frame, of a schema alone."""
    storage = {name: _sample_type(schema, name, "pandas") for name in schema.written}
    released = {name: storage[name] for name in schema.released}
    return SourceForm("pandas", storage, _pandas_dtypes(released, schema))


def check_types(source: Source, schema: Schema, *, as_source: bool) -> None:
    """Refuse types of a source, if they are asked for, that cannot hold samples; warn that they are published.

    Warn, too, of columns whose types hold none of their labels: a cell may have decided the type, so none is refused.
    Reads metadata alone.

    Raises:
        SchemaError: a declared column has values that its own type cannot hold, or one that no release gives back.
    """
    require_instance(bool, "True or False", as_source=as_source)
    labels = [(name, kind) for name, kind in schema.of_kind(LevelKind).items() if name in source.storage]
    if unfit := [repr(name) for name, kind in labels if kind.label_fault(source.storage[name]) is not None]:
        warnings.warn(
            f"No cell of {', '.join(unfit)} is one of its labels, as the column is stored: all are read as words that "
            "the schema does not list. Check the schema: sfumato schema check SCHEMA DATA says why.",
            SchemaWarning,
            stacklevel=5,
        )
    if not as_source:
        return
    for name in schema.written:
        storage = source_type(source, name)
        _check_written(name, storage)
        if name in schema.released and name not in schema.open:
            schema.columns[name].check_storage(name, storage)
    for name in schema.ids:
        number_ids(pa.array([MOST_IDS]), source.storage[name])  # which refuses a type that cannot number sets
    warnings.warn(
        f"The storage types of {source.label} are published, as as_source asks for. One cell may decide such a type: "
        "ask for it only if they were fixed without looking at the records. The certificate says so.",
        PrivacyWarning,
        stacklevel=5,
    )


def _check_written(name: str, storage: pa.DataType) -> None:
    with contextlib.suppress(ReleaseError):
        write_type(storage)
        return
    raise SchemaError(f"Column {name!r}: no release can give back its type, {storage}. Leave out as_source.")


def source_type(source: Source, name: str) -> pa.DataType:
    """Return the type of a column, of lists whatever their field was called."""
    storage = source.storage[name]
    return plain_list_type(storage) if is_set_storage(storage) else storage


def _sample_type(schema: Schema, name: str, container: Container) -> pa.DataType:
    """Return the type of a column of samples; what numbers sets or units are whole numbers."""
    kind, ids = schema.columns[name], schema.ids
    if container == "csv" and name not in ids and getattr(kind, "written", None) is not None:
        return kind.sample_type  # how its text looks is for the file to be written
    return _contained(pa.int64() if name in ids else kind.sample_type, container)


def _contained(kind: pa.DataType, container: Container) -> pa.DataType:
    """Return a type as a container has it: files and folders of text have text, polars only large text and lists."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return kind
    if types.is_list(kind):
        items = _contained(kind.value_type, container)
        return pa.large_list(items) if container == "polars" else pa.list_(items)
    if container in ("csv", "fimi", "folder"):
        return pa.string()
    if container == "polars" and types.is_string(kind):
        return pa.large_string()
    if container == "pandas" and types.is_date(kind):
        return pa.timestamp("us")
    return kind


def _pandas_dtypes(storage: Mapping[str, pa.DataType], schema: Schema) -> dict[str, str]:
    """Return pandas' names of types; text has pandas' own."""
    dtypes = {}
    for name, kind in storage.items():
        nullable = bool(getattr(schema.columns[name], "nullable", False))
        if types.is_int64(kind):
            dtypes[name] = "Int64" if nullable else "int64"
        elif types.is_boolean(kind):
            dtypes[name] = "boolean" if nullable else "bool"
        elif types.is_float64(kind):
            dtypes[name] = "float64"
        elif types.is_timestamp(kind):
            dtypes[name] = "datetime64[us]"
        elif types.is_list(kind):
            dtypes[name] = f"{kind}[pyarrow]"
    return dtypes


def measurements_of(measured: Iterable[tuple[str, Noisy]]) -> tuple[Measurement, ...]:
    """Return named noisy statistics as a release holds them."""
    return tuple(Measurement(name, n.value, n.noise_std, n.symmetric, n.origin, n.query) for name, n in measured)
