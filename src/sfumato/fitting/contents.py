"""What a release holds beside its sampler: the form of its source, and its noisy statistics."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.io.arrow import write_type
from sfumato.io.sources import open_source
from sfumato.mechanisms.queries import Noisy
from sfumato.records.private import PrivateData
from sfumato.release import Measurement, SourceForm
from sfumato.schema.schema import Schema


def open_records(data: object, schema: Schema) -> tuple[PrivateData, SourceForm]:
    """Open the records of a source, and return their form, which samples come back in. Reads metadata alone."""
    source, released = open_source(data), schema.released
    records = PrivateData(source, schema)
    for kind in records.storage.values():
        write_type(kind)  # refuses a type that could not be saved, before anything is charged
    form = SourceForm(
        container=source.container,
        storage=records.storage,
        dtypes={name: source.dtypes[name] for name in released if name in source.dtypes},
        keys={name: source.keys[name] for name in released if name in source.keys},
    )
    return records, form


def measurements_of(measured: Iterable[tuple[str, Noisy]]) -> tuple[Measurement, ...]:
    """Return named noisy statistics as a release holds them."""
    return tuple(Measurement(name, n.value, n.noise_std, n.symmetric, n.origin) for name, n in measured)
