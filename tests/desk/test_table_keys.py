"""What is wrong with keys of several tables, level by level: for the holder's own screen."""

import pandas as pd

from fixtures.database import hospital, schema
from sfumato.desk.validation import validate
from sfumato.records.table_sources import open_records


def findings(tables, known):
    return {(f.column, f.problem): f.count for f in validate(open_records(tables, known), known)}


def test_of_whole_tables_only_rows_above_without_rows_are_told():
    tables, known = hospital(60, 1), schema(60)
    below = {"visits": ("person", "persons"), "measurements": ("visit", "visits"), "drugs": ("person", "persons")}
    assert findings(tables, known) == {
        (f"{name}.{by}", "no_rows"): int((~tables[above][by].isin(tables[name][by])).sum())
        for name, (by, above) in below.items()
    }


def test_keys_are_counted_at_every_level():
    tables = {
        "persons": pd.DataFrame({"person": ["p", "p", "q", None], "sex": "f", "age": 30, "note": "x", "score": 1.0}),
        "visits": pd.DataFrame(
            {
                "visit": ["1", "1", "2", None, "4", "5", "6", "7"],
                "person": ["p", "q", "p", "p", "stranger", None, "q", "q"],
                "start": 0, "end": 1, "score": 1.0, "state": ["well"] * 7 + ["gone"],
            }
        ),
        "measurements": pd.DataFrame({"visit": ["1", "2", "2", "2", "9", None, "4"], "at": 0, "value": 1.0}),
        "drugs": pd.DataFrame({"person": ["p"] * 6, "drug": ["a"] * 6}),
    }  # fmt: skip
    assert findings(tables, schema()) == {
        ("state", "unknown"): 1,
        ("persons.note", "undeclared"): 0,
        ("persons.score", "undeclared"): 0,
        ("persons.person", "no_key"): 1,
        ("persons.person", "repeated"): 1,
        ("visits.person", "no_key"): 1,
        ("visits.person", "orphans"): 1,
        ("visits.visit", "no_key"): 1,
        ("visits.visit", "repeated"): 1,
        ("measurements.visit", "no_key"): 1,
        ("measurements.visit", "orphans"): 2,
        ("measurements.visit", "no_rows"): 4,
        ("drugs.person", "no_rows"): 1,
        ("drugs.person", "too_many"): 2,
    }


def test_where_rows_name_their_unit_keys_repeat_within_it_alone():
    tables, known = hospital(30, 2), schema(30, measurements={"unit": "person"})
    owners = tables["visits"].set_index("visit")["person"]
    tables["measurements"]["person"] = owners[tables["measurements"]["visit"]].to_numpy()
    plain = findings(tables, known)
    tables["visits"]["visit"] = tables["visits"].groupby("person").cumcount()
    tables["measurements"]["visit"] = 0
    same = findings(tables, known)
    assert ("visits.visit", "repeated") not in plain.keys() | same.keys()
    assert ("measurements.visit", "orphans") not in same
    tables["measurements"].loc[:1, "person"] = -1
    assert findings(tables, known)["measurements.visit", "orphans"] == 2
    tables["visits"]["visit"] = 0
    several = (tables["visits"]["person"].value_counts() > 1).sum()
    assert findings(tables, known)["visits.visit", "repeated"] == several


def test_a_column_that_a_table_lacks_is_listed():
    tables = hospital(20, 1)
    tables["visits"] = tables["visits"].drop(columns="score").assign(ward="w", drug="a")
    found = {f.column: f.problem for f in validate(open_records(tables, schema()), schema())}
    assert found["score"] == "absent"
    assert found["visits.ward"] == found["visits.drug"] == "undeclared"
