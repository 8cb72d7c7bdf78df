"""What tables of a database say of each other: two-way tables of columns of two of them, by person.

A row is drawn of each table of a person, at random and alone; a person without rows has a value more. So the table of
two columns is the mean over persons of the product of their shares, and so is that of a column and a number of rows.

    synthetic   samples beside the records
    dealt       the same samples, each table's rows given to other persons: what keeping nothing would score
    tenth       a tenth of the records' persons beside all of them

Not private: records are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.evaluate.fidelity import bin_codes, distance, n_bins
from sfumato.maths.streams import public_stream
from sfumato.records.context import Level
from sfumato.schema.database import Database

_MOST_NUMBER = 16  # of rows of a person that are told apart
_PART, _SEED = 10, 1

Shares = Mapping[str, np.ndarray]  # by column, of each value in a person's rows, shape (persons, values)


def pairs_between(database: Database) -> list[tuple[str, str]]:
    """Return the pairs of tables of which none is above the other, and those with that of units."""
    return [
        (one, other)
        for one, other in combinations(database.names, 2)
        if one == database.units or (one not in database.path(other) and other not in database.path(one))
    ]


def between_tables(
    real: Mapping[str, Level], synthetic: Mapping[str, Level], database: Database, kinds: Mapping[str, TabularKind]
) -> dict[str, dict[str, float]]:
    """Return for each pair of tables the mean total variation of samples, of dealt samples and of a tenth, by its name.

    Args:
        real: the records' rows that count, by table.
        synthetic: those of samples.
        database: the tables.
        kinds: of all columns.
    """
    n = real[database.units].size
    tenth = public_stream(_SEED).permutation(n)[: max(n // _PART, 1)]
    scores = {}
    for one, other in pairs_between(database):
        of_real, of_samples = ([_shares(rows, name, kinds) for name in (one, other)] for rows in (real, synthetic))
        wanted = list(_together(*of_real))
        if not wanted:  # a table of units may have its key alone
            continue
        few = ({name: column[tenth] for name, column in shares.items()} for shares in of_real)
        dealt = {name: np.roll(column, len(column) // 2 + 1, axis=0) for name, column in of_samples[1].items()}
        compared = {
            "synthetic": _together(*of_samples), "dealt": _together(of_samples[0], dealt), "tenth": _together(*few)
        }  # fmt: skip
        scores[f"{one}, {other}"] = {
            label: float(np.mean([distance(a, b) for a, b in zip(wanted, tables, strict=True)]))
            for label, tables in compared.items()
        }
    return scores


def _shares(levels: Mapping[str, Level], name: str, kinds: Mapping[str, TabularKind]) -> Shares:
    """Return the shares of each column's values in the rows of persons, and of their number."""
    level = levels[name]
    n = next(iter(levels.values())).size
    counts = np.bincount(level.owners, minlength=n)
    shares = {}
    for column, codes in level.codes.items():
        size = n_bins(kinds[column]) + 1
        bins = bin_codes(kinds[column], np.asarray(codes)).astype(np.int64)
        shares[column] = np.bincount(level.owners * size + bins, minlength=n * size).reshape(n, size).astype(np.float32)
        shares[column][counts == 0, -1] = 1
        shares[column] /= np.maximum(counts, 1)[:, None]
    if (counts != 1).any():  # of units there is one row each
        shares[""] = np.eye(_MOST_NUMBER + 1, dtype=np.float32)[np.minimum(counts, _MOST_NUMBER)]
    return shares


def _together(one: Shares, other: Shares) -> Iterator[np.ndarray]:
    """Yield the two-way tables of any column of each."""
    for first in one.values():
        for second in other.values():
            yield (first.T @ second).ravel() / len(first)
