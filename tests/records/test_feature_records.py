"""Features of units: what the rows say, a unit by itself, exactly as the schema bounds it."""

import numpy as np
import pandas as pd
import pytest

from fixtures import linked
from harness.unit_cases import CENTRE, FEATURES, KINDS, LAG, MOST, SCALE, TABLES, UNITS, records_of, rows_of_units
from sfumato.io.sources import open_source
from sfumato.records.linked import FeatureRecords, LinkedData, feature_records
from sfumato.records.sequences import Sequences
from sfumato.schema.unit_features import ONE, Lag, features_in


def test_a_unit_is_read_by_itself_to_the_last_bit():
    units = rows_of_units(60, seed=4)
    together, order = records_of(units), np.random.default_rng(0).permutation(len(units))
    shuffled = records_of([units[i] for i in order])
    for place, unit in enumerate(units):
        alone = records_of([unit])
        for name, codes in together.items():
            assert codes[place].tobytes() == alone[name][0].tobytes(), name
    for name, codes in together.items():
        assert codes[order].tobytes() == shuffled[name].tobytes()


def test_codes_stay_in_the_domain():
    records = records_of(rows_of_units(200, seed=5))
    for feature in FEATURES:
        codes = records[feature.name]
        if feature.kind.is_numeric:
            assert ((codes >= 0) & (codes <= 1) | np.isnan(codes)).all()
            assert feature.kind.nullable or not np.isnan(codes).any()
        else:
            assert ((codes >= 0) & (codes < feature.kind.n_levels)).all()


def test_they_are_those_of_the_rows():
    frame, schema = linked.visits(300, 2), linked.schema(units=300)
    names = ["mean of score", "first of score", "last of state", "change of score", "ever of state=c"]
    (records,) = FeatureRecords(LinkedData(open_source(frame), schema), features_in(names, schema)).coded()
    frame = linked.in_order(frame)
    groups, scores = frame.groupby("patient"), frame.groupby("patient")["score"]
    change = (scores.last() - scores.first()).where(scores.size() > 1)

    def same(name, values):
        np.testing.assert_allclose(np.sort(records[name]), np.sort(values), atol=1e-6)

    same("mean of score", scores.mean() / 100)
    same("first of score", scores.first() / 100)
    same("change of score", (change + 100) / 200)
    same("last of state", groups["state"].last().map(list("abcd").index))
    same("ever of state=c", (frame["state"] == "c").groupby(frame["patient"]).any())


def test_sums_over_pairs_are_those_of_the_rows():
    units, lag = rows_of_units(80, seed=6), Lag("score", 2)
    records = records_of(units)
    for place, unit in enumerate(units):
        values = pd.Series(np.clip((np.rint(unit["score"] * ONE) - CENTRE) / SCALE, -1, 1))
        earlier, later = values.shift(2), values
        seen = earlier.notna() & later.notna()
        x, y = earlier[seen].to_numpy(), later[seen].to_numpy()
        sums = np.array([x.size, x.sum(), y.sum(), (x**2).sum(), (y**2).sum(), (x * y).sum()]) / (MOST - 2)
        got = [records[name][place] for name in lag.moments(CENTRE, SCALE)]
        signed = [2 * got[i] - 1 if i in (1, 2, 5) else got[i] for i in range(6)]
        np.testing.assert_allclose(signed, sums, atol=1e-5)


def test_units_without_rows_have_no_feature_but_that_nothing_ever_was():
    codes = {"day": np.zeros(2), "sex": np.zeros(2, int), "score": np.full(2, 0.7), "state": np.ones(2, int)}
    (records,) = feature_records(TABLES, Sequences.joined(np.array([0, 1]), codes, TABLES.constants), FEATURES, KINDS)
    assert np.isnan(records["mean of score"][0])
    assert records["mean of score"][1] == pytest.approx(0.7, abs=1e-6)
    assert records["ever of state=ill"].tolist() == [0, 1]
    assert np.isnan(records["change of score"]).all()
    assert records[LAG.moments(CENTRE, SCALE)[0]].tolist() == [0.0, 0.0]
    assert UNITS.linked
