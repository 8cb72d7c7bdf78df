"""One value is one label, whatever type its column had; a word that is no label has a place, or none is said."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato
from sfumato.columns import Boolean, Categorical, Ordinal
from sfumato.columns.levels import UNKNOWN
from sfumato.schema.schema import Schema

STORED = {
    "texts": pa.array(["60.0", "40.0"]),
    "whole texts": pa.array(["60", "40"]),
    "whole": pa.array([60, 40]),
    "floats": pa.array([60.0, 40.0]),
    "narrow": pa.array([60.0, 40.0], pa.float32()),
    "decimals": pa.array([Decimal("60.0"), Decimal("40.0")]),
    "dictionary": pa.array(["60.0", "40"]).dictionary_encode(),
    "powers": pa.array(["6e+01", "4.0e+01"]),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("labels", [("60", "40"), (60, 40), (60.0, 40.0), ("60.0", "40.0"), ("60.00", "40.0")])
@pytest.mark.parametrize("name", STORED)
def test_a_number_is_its_label_however_it_is_stored(name, labels, exact):
    kind = Categorical(categories=labels, exact=exact)
    assert kind.find(STORED[name], ()).tolist() == [0, 1]


def test_labels_that_differ_in_letters_alone_stay_two():
    kind = Categorical(categories=("250.0", "250.00", "9007199254740993"), exact=True)
    cells = pa.array(["250.00", "250.0", "250", "9007199254740993", "9007199254740992", "9007199254740993.0"])
    assert kind.find(cells, ()).tolist() == [1, 0, UNKNOWN, 2, UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.decimal128(5, 2), pa.null()])
def test_no_type_that_a_record_may_change_refuses_labels(type_):
    assert Categorical(categories=("low", "high")).reading_fault(type_) is None


def test_what_cannot_be_labels_is_refused():
    kind = Categorical(categories=("low", "high"))
    assert kind.reading_fault(pa.list_(pa.int64())) is not None
    assert kind.reading_fault(pa.date32()) is not None
    assert "that type double can hold, got 'low'" in str(kind.label_fault(pa.int64()))
    assert kind.label_fault(pa.string()) is None
    assert Categorical(categories=("40.0", "low")).label_fault(pa.int64()) is None


@pytest.mark.parametrize(
    ("kind", "hides"),
    [
        (Categorical(categories=("low", "high")), True),
        (Ordinal(categories=("low", "middle", "high")), True),
        (Boolean(), True),
        (Categorical(categories=("low", "high"), other="none of them"), False),
        (Categorical(categories=("low", "high"), nullable=True), False),
        (Boolean(nullable=True), False),
    ],
)
def test_a_column_without_a_place_for_other_words_says_so(kind, hides):
    assert kind.hides_blank == hides
    assert ("it counts for none" in kind.becomes("unknown")) == hides
    assert kind.goes_to_other or (kind.unknown_code, kind.missing_code) == (len(kind.labels),) * 2
    assert kind.width == kind.n_levels - hides
    card = Schema(columns={"x": kind})._repr_html_()
    assert ("anything else counts for no label" in card) == hides


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("as_table", [lambda frame: frame, pa.Table.from_pandas, lambda f: pa.table(dict(f.items()))])
def test_floats_are_not_all_the_first_label(as_table, exact):
    frame = pd.DataFrame({"dose": [40.0, 60.0, 60.0, 60.0] * 100, "sex": ["f", "m"] * 200})
    columns = {"dose": {"kind": "categorical", "categories": ["40.0", "60.0"], "exact": exact}, "sex": ["f", "m"]}
    release = sfumato.fit(as_table(frame), {"rows": 400, "columns": columns}, epsilon=20.0, delta=1e-6)
    assert release.share({"dose": "60.0"}, target="table").value == pytest.approx(0.75, abs=0.05)


def test_a_record_does_not_decide_whether_a_fit_is_refused():
    """Arrow makes whole numbers of these rows, and text beside one word more."""
    rows = [{"x": 1 + i % 2, "sex": "fm"[i % 2]} for i in range(400)]
    schema = {"rows": 400, "columns": {"x": ["low", "high"], "sex": ["f", "m"]}}
    for table in (pa.Table.from_pylist(rows), pa.table({"x": np.repeat("low", 400), "sex": ["f", "m"] * 200})):
        assert sfumato.fit(table, schema, epsilon=1.0, delta=1e-6).sample(5).num_rows == 5
