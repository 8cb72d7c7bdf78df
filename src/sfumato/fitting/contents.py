"""What a release holds beside its sampler: the form of its source, and its noisy statistics."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.io.arrow import write_type
from sfumato.mechanisms.queries import Noisy
from sfumato.records.private import PrivateData
from sfumato.release import Measurement, SourceForm


def source_form(records: PrivateData) -> SourceForm:
    """Return the form of the records, which samples come back in: metadata, before anything is charged."""
    source, released = records.source, records.schema.released
    for kind in records.storage.values():
        write_type(kind)  # refuses a type that could not be saved, before anything is charged
    return SourceForm(
        container=source.container,
        storage=records.storage,
        dtypes={name: source.dtypes[name] for name in released if name in source.dtypes},
        keys={name: source.keys[name] for name in released if name in source.keys},
    )


def measurements_of(measured: Iterable[tuple[str, Noisy]]) -> tuple[Measurement, ...]:
    """Return named noisy statistics as a release holds them."""
    return tuple(Measurement(name, n.value, n.noise_std, n.symmetric) for name, n in measured)
