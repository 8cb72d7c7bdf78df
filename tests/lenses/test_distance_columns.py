"""Rows whose dates lie at the distances that a sampler draws beside them: which date is moved, and which stays."""

import numpy as np
import pytest

from sfumato.errors import ConfigError
from sfumato.lenses.date_columns import DatesLens, DistantRows
from sfumato.schema.schema import Schema

DATE = {"kind": "datetime", "lower": "2020-01-01", "upper": "2022-12-31"}
SCHEMA = Schema.from_dict({"rows": 9, "columns": {"a": DATE, "b": DATE, "c": DATE}})
LAST = 1_095
GAPS = {"b": 10, "c": 4}


class Drawn:
    """A sampler of dates all over, and of distances that are always the same."""

    width, class_column, possible = 5, None, np.ones(1, dtype=bool)

    def __init__(self, refused=(), codes=None):
        self.refused, self.codes = refused, codes or {}

    def rows(self, n, rng, classes=None):
        rows = {name: rng.integers(300, 700, n) / LAST for name in "abc"}
        for distance in SCHEMA.distances.values():
            steps = distance.beside
            gap = np.full(n, (GAPS[distance.later] - steps.lower) / (steps.upper - steps.lower))
            rows[distance.column] = gap
        return {**rows, **{name: np.full(n, code) for name, code in self.codes.items()}}

    def given(self, codes):
        if set(codes) & set(self.refused):
            raise ConfigError("refused")
        return Drawn(self.refused, codes)


def days(rows):
    return {name: np.rint(rows[name] * LAST) for name in "abc"}


def sampled(given=None, **options):
    sampler = DatesLens(SCHEMA.distances, DistantRows).rows(Drawn(**options))
    if given:
        sampler = sampler.given({name: day / LAST for name, day in given.items()})
    rows = sampler.rows(50, np.random.default_rng(0))
    assert set(rows) == set("abc")
    return days(rows)


@pytest.mark.parametrize("given", [None, {"a": 500}, {"b": 500}, {"c": 500}, {"a": 500, "c": 514}])
def test_all_distances_hold_and_what_is_given_stays(given):
    rows = sampled(given)
    np.testing.assert_array_equal(rows["b"] - rows["a"], GAPS["b"])
    np.testing.assert_array_equal(rows["c"] - rows["b"], GAPS["c"])
    for name, day in (given or {}).items():
        np.testing.assert_array_equal(rows[name], day)


def test_two_given_dates_give_their_distance():
    sampler = DatesLens(SCHEMA.distances, DistantRows).rows(Drawn()).given({"a": 500 / LAST, "b": 507 / LAST})
    own = SCHEMA.distances["b"]
    assert own.beside.decoded(np.array([sampler._inner.codes[own.column]]))[0].tolist() == [7]


def test_a_distance_that_no_row_has_is_not_given():
    rows = sampled({"a": 500, "b": 450}, refused=("b: time since a",))
    assert set(rows["a"]) == {500}
    assert set(rows["b"]) == {450}
    with pytest.raises(ConfigError, match="refused"):
        sampled({"a": 500}, refused=("a",))
