"""Levels and trends of linked rows: used where persons have them, idle where they do not."""

import numpy as np
import pytest

from fixtures.levels import levels, schema
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.methods.linked.intraclass import alike, without_offsets
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.linked import linked_tables

N = 2_500


def cells(schema_document, name: str, codes: np.ndarray, table: str = "units") -> tuple[ColumnGrid, np.ndarray]:
    """The cells of a column of units or steps, and the shares of codes in them."""
    kind = getattr(linked_tables(Schema.from_dict(schema_document)), table).columns[name]
    column = ColumnGrid.numbers(name, kind, 64)  # type: ignore[arg-type]
    return column, np.bincount(column.cells(codes), minlength=column.n_cells) / codes.size


@pytest.mark.parametrize("between", [0.0, 0.5, 1.0])
def test_likeness_is_about_the_intraclass_correlation_of_normal_rows(between):
    rng, document = np.random.default_rng(1), schema("levels", N)
    tables, k = linked_tables(Schema.from_dict(document)), rng.integers(1, 9, 40_000)
    level = np.sqrt(between) * rng.standard_normal(k.size)
    first = level + np.sqrt(1 - between) * rng.standard_normal(k.size)
    rest = level * (k - 1) + np.sqrt((1 - between) * (k - 1)) * rng.standard_normal(k.size)
    codes = [np.clip(0.5 + 0.1 * values, 0, 1) for values in (first, (first + rest) / k)]
    number = cells(document, tables.count, (k - 1) / 7)
    rows, means = cells(document, "score", codes[0]), cells(document, "level of score", codes[1])
    assert alike(tables, number, rows, means) == pytest.approx(between, abs=0.12)


@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_numbers_that_are_mostly_0_are_no_lines_and_offsets(zeros):
    rng, document, n = np.random.default_rng(2), schema("levels", N), 40_000
    tables = linked_tables(Schema.from_dict(document))
    line, offset, left = rng.normal(0.5, 0.08, n), rng.normal(0, 0.04, n), rng.integers(1, 8, n)
    value = line + np.where(left > 1, offset * np.sqrt((left - 1) / left), 0)
    codes = {
        tables.count: rng.choice(7, n, p=np.arange(1, 8) / 28) / 6,
        "line of score": line,
        "offset of score": np.where(left > 1, (offset + 1) / 2, np.nan),
        "score": np.where(rng.random(n) < zeros, 0.0, value),
    }
    columns, shares = zip(
        *(cells(document, name, np.clip(own, 0, 1), "steps") for name, own in codes.items()), strict=True
    )
    assert without_offsets(tables, columns, shares) == ({"score"} if zeros else set())


def test_rows_that_are_their_own_are_not_made_alike():
    """Without noise: a number of the row alone has no correlation, a cost has its zeros, a count of the person its."""
    frame = levels("plain", N)
    release = MaxEntropy(epsilon=NonPrivate(), calibration_rows=6_000).fit(frame, schema=schema("plain", N), seed=1)
    made = release.sample(2 * N, seed=1)
    persons = made.sort_values(["person", "day"], kind="stable").groupby("person")
    for lag in (1, 3):
        assert abs(made["apart"].corr(persons["apart"].shift(lag))) < 0.06
    assert (made["cost"] == 0).mean() == pytest.approx((frame["cost"] == 0).mean(), abs=0.02)
    assert made["count"].corr(persons["count"].shift(3)) > 0.2, "as the mean of a person's is"


def test_levels_outlast_single_rows():
    frame = levels("levels", N)
    release = MaxEntropy(epsilon=10.0, delta=1e-6, calibration_rows=3_000).fit(
        frame, schema=schema("levels", N), seed=1
    )
    made = release.sample(2 * N, seed=1)
    for lag in (1, 3, 5):
        real, synthetic = (
            table["score"].corr(
                table.sort_values(["person", "day"], kind="stable").groupby("person")["score"].shift(lag)
            )
            for table in (frame, made)
        )
        assert synthetic == pytest.approx(real, abs=0.12), lag
    ended = (made["state"] == "ended").astype(int)
    assert (ended.groupby(made["person"]).cumsum() - ended == 0).all()
    share = (frame["state"] == "ended").mean()
    assert 0.6 * share < ended.mean() < 1.6 * share, "ends that were drawn where none can be are made up for"
