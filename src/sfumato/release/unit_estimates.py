"""Questions about the units of linked rows: how many rows they have, their constants, their first row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from sfumato.errors import ConfigError
from sfumato.release.estimates import Estimating
from sfumato.schema.linked import linked_tables

if TYPE_CHECKING:
    from sfumato.release.model import Release

_PART = "units"


class UnitEstimates(Estimating):
    """Answers of a release of linked rows about its units, of which each is a record.

    Its columns are the constants, the number of rows (`count_column`), and those of a unit's first row by the order,
    which are missing of a unit without rows. What a unit's later rows are is in the model, and not asked here.

    Privacy: none (a function of the release).
    """

    def __init__(self, release: Release) -> None:
        self._view = units_of(release)

    def __repr__(self) -> str:
        return f"UnitEstimates({', '.join(self.columns)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """What can be asked of."""
        return self._view.schema.released

    @property
    def _asked(self) -> Release:
        return self._view

    @property
    def _written(self) -> tuple[str, ...]:
        return self._view._written

    def _as_table(self, codes: object) -> pa.Table:
        return self._view._as_table(codes)  # type: ignore[arg-type]

    def _as_fitted(self, codes: object) -> object:
        return self._view._as_fitted(codes)  # type: ignore[arg-type]


class UnitQuestions:
    """What `Release` says of units."""

    @property
    def units(self) -> UnitEstimates:
        """Estimates about the units of linked rows: number of rows, constants, first row.

        Privacy: none (a function of the release).

        Raises:
            ConfigError: the release is not of linked rows.

        Example:
            >>> release.units.mean("number of rows of patient").interval()  # doctest: +SKIP
            (3.29, 3.41)
            >>> release.units.share({"sex": "f"})  # doctest: +SKIP
        """
        return UnitEstimates(cast("Release", self))


def units_of(release: Release) -> Release:
    """Return the part of a release of linked rows that is of units, as if it were one of single rows.

    Its noise is that of the units' own stages, in which a unit is one record. It is asked, and not saved: its
    certificate is that of the whole.

    Raises:
        ConfigError: the release is not of linked rows.
    """
    if not release.schema.linked:
        raise ConfigError(
            "Expected a release of linked rows to ask of its units, got one of single rows. Ask it itself."
        )
    tables = linked_tables(release.schema.modelled)
    known, counted = release.form, {tables.count: pa.int64()} if tables.count else {}
    storage = {**known.storage, **counted}
    form = replace(
        known,
        storage={name: storage[name] for name in tables.units.released},
        dtypes={name: dtype for name, dtype in known.dtypes.items() if name in tables.units.released and tables.fewest},
    )
    name, key = f"{_PART}: ", f"{_PART}."
    return replace(
        release,
        schema=tables.units,
        sampler=release.sampler[_PART],
        parameters={k.removeprefix(key): array for k, array in release.parameters.items() if k.startswith(key)},
        measurements=tuple(
            replace(m, name=m.name.removeprefix(name)) for m in release.measurements if m.name.startswith(name)
        ),
        form=form,
    )
