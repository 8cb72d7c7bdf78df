"""Tables of a database as records of units: what becomes of every row, whatever others hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fixtures.database import hospital, ruled_document, ruled_hospital, schema
from sfumato.errors import ConfigError, DataError, PrivacyWarning, SchemaError
from sfumato.io.sources import open_source
from sfumato.records.database_records import DatabaseData
from sfumato.records.sequences import STEPS
from sfumato.records.table_sources import TableSources, open_records
from sfumato.schema.schema import Schema

Tables = dict[str, pd.DataFrame]
BY_UNIT = {"measurements": {"unit": "person"}}


def data(tables: Tables, known: Schema, chunk_rows: int = 65_536) -> DatabaseData:
    opened = {name: open_source(frame, chunk_rows=chunk_rows) for name, frame in tables.items()}
    return DatabaseData(TableSources.of(opened, known), known)


def records(found: DatabaseData) -> dict[int, tuple[Any, ...]]:
    """What each unit adds to the parts of every branch, by its key."""
    persons = found.level("persons")
    keys = found._keys["persons"].numbers._numbers
    names = {number: int(name) for name, number in keys.items()}
    units: dict[int, list[Any]] = {
        names[i]: [(persons.codes["sex"][i], persons.codes["age"][i])] for i in persons.owners
    }
    for name in found.described.database.names[1:]:  # type: ignore[union-attr]
        branch = found.branch(name)
        level, above = found.level(name), found.level(found.described.database.branch(name).of)  # type: ignore[union-attr]
        sequences = branch.sequences()
        context = sequences.constants
        for place, owner in enumerate(above.owners):
            own = level.above == place
            rows = [tuple(np.asarray(level.codes[c])[own].tolist()) for c in level.codes]
            said = tuple(np.float64(context[c][place]).tobytes() for c in context)
            histories = [
                h[0][place].tobytes() + h[1][place].tobytes() for h in map(sequences.history, branch.tables.histories)
            ]
            plain = [tuple(sequences.codes[c][own].tolist()) for c in sequences.codes]
            units[names[owner]].append((name, rows, said, histories, plain))
    return {unit: tuple(map(repr, parts)) for unit, parts in units.items()}


def of_person(tables: Tables, person: int) -> Tables:
    visits = tables["visits"][tables["visits"]["person"] == person]
    return {
        "persons": tables["persons"][tables["persons"]["person"] == person],
        "visits": visits,
        "measurements": tables["measurements"][tables["measurements"]["visit"].isin(visits["visit"])],
        "drugs": tables["drugs"][tables["drugs"]["person"] == person],
    }


@pytest.mark.parametrize("rules", ["none", "of rows", "across tables"])
def test_a_unit_is_the_same_alone_and_in_any_order(rules):
    tables = hospital(25, 3) if rules == "none" else ruled_hospital(25, 3)
    document = ruled_document(drugs={"columns": ["drug", "since"]} if rules == "across tables" else {})
    if rules == "across tables":
        tables["drugs"]["since"] = np.arange(len(tables["drugs"])) * 37 % 1000
        document["columns"] = {**document["columns"], "since": document["columns"]["start"]}
        document["rules"] = [*document["rules"], {"order": ["end", "since"]}]
    known = schema() if rules == "none" else Schema.from_dict(document)
    together = records(data(tables, known, chunk_rows=16))
    assert len(together) == 25
    for person in range(25):
        assert records(data(of_person(tables, person), known)) == {person: together[person]}
    mixed = {name: frame.sample(frac=1, random_state=i) for i, (name, frame) in enumerate(tables.items())}
    assert records(data(mixed, known)) == together


def test_orphans_at_every_level_are_left_out():
    tables, known = hospital(20, 4), schema()
    plain = records(data(tables, known))
    lost = {name: frame.head(3).copy() for name, frame in tables.items()}
    lost["persons"]["person"] = None
    lost["visits"]["person"], lost["visits"]["visit"] = [10**7, None, 10**8], [5, 6, 7]
    lost["measurements"]["visit"] = [5, None, 10**9]  # of a visit whose person nobody is, of none, of one not there
    lost["drugs"]["person"] = [None, 10**7, 10**8]
    more = {
        name: pd.concat([frame.astype(object), lost[name].astype(object)], ignore_index=True).sample(
            frac=1, random_state=1
        )
        for name, frame in tables.items()
    }
    assert records(data(more, known)) == plain


def test_rows_beyond_max_rows_take_what_is_below_them_along():
    tables, known = hospital(40, 5), schema(visits={"max_rows": 2})
    found = data(tables, known)
    visits = found.level("visits")
    assert np.bincount(visits.above).max() == 2
    kept = tables["visits"].sort_values("start").groupby("person").head(2)["visit"]
    below = tables["measurements"]["visit"].isin(kept)
    assert found.level("measurements").size == below.sum()


def test_no_row_counts_after_one_that_ends_a_unit():
    tables = hospital(40, 6)
    tables["visits"].loc[::2, "state"] = "dead"
    visits = data(tables, schema()).level("visits")
    dead = visits.codes["state"] == 2
    after = visits.above[1:][dead[:-1]] == visits.above[:-1][dead[:-1]]
    assert dead.any()
    assert not after.any()


def test_of_rows_at_one_time_the_one_that_ends_a_unit_is_last_and_all_count():
    tables = hospital(40, 6)
    tables["visits"] = tables["visits"].assign(start=500, state="well")
    tables["visits"].loc[tables["visits"].groupby("person").head(1).index, "state"] = "dead"
    visits = data(tables, schema()).level("visits")
    assert visits.size == len(tables["visits"])
    last = np.append(visits.above[1:] != visits.above[:-1], True)
    np.testing.assert_array_equal(visits.codes["state"] == 2, last)


def test_keys_that_others_have_too_move_nothing_where_rows_name_their_unit():
    tables = hospital(25, 7)
    owner = tables["visits"].set_index("visit")["person"]
    tables["measurements"]["person"] = owner[tables["measurements"]["visit"]].to_numpy()
    known = schema(**BY_UNIT)
    apart = records(data(tables, known))
    number = tables["visits"].groupby("person").cumcount()
    same = dict(zip(tables["visits"]["visit"], number, strict=True))  # 0, 1, … of each person
    alike = {**tables, "visits": tables["visits"].assign(visit=number)}
    alike["measurements"] = tables["measurements"].assign(visit=tables["measurements"]["visit"].map(same))
    found = data(alike, known)
    assert found.level("measurements").size == data(tables, known).level("measurements").size
    for person in range(25):
        own = {name: frame[frame["person"] == person] for name, frame in alike.items()}
        assert records(data(own, known)) == {person: records(found)[person]}
    assert len(apart) == 25


def test_a_table_that_names_persons_but_is_not_matched_by_them_is_warned_of(recwarn):
    tables = hospital(25, 7)
    data(tables, schema())
    assert not recwarn.list, "nothing says that keys may be shared"
    tables["measurements"]["person"] = 1
    data(tables, schema(**BY_UNIT))
    assert not recwarn.list
    with pytest.warns(PrivacyWarning, match=r"matched by 'visit' alone.* as `unit` of 'measurements'"):
        data(tables, schema())


def test_of_a_key_that_units_share_one_has_the_rows_below_in_any_order():
    tables = hospital(25, 8)
    tables["visits"]["visit"] = tables["visits"]["visit"] // 4
    tables["measurements"]["visit"] = tables["measurements"]["visit"] // 4
    turned = {name: frame.iloc[::-1] for name, frame in tables.items()}
    assert records(data(tables, schema())) == records(data(turned, schema()))


def test_records_of_a_unit_are_together():
    found = data(hospital(60, 9), schema())
    branch = found.branch("measurements")
    parts = list(branch.coded())
    above = found.level("visits")
    assert sum(int(part[STEPS].sum()) for part in parts) == above.size
    assert sum(part[STEPS].size for part in parts) == np.unique(above.owners).size
    steps = sum(int(part[STEPS].sum()) for part in branch.steps.coded())
    assert steps == np.maximum(np.bincount(found.level("measurements").above) - 1, 0).sum()


def test_what_is_earlier_is_of_earlier_visits_of_the_same_person():
    tables, known = hospital(30, 10), schema()
    found = data(tables, known)
    view = found.branch("measurements").view
    said = found.sequences(view).constants["value earlier"]
    joined = tables["measurements"].merge(tables["visits"], on="visit").sort_values(["person", "start"])
    visits = tables["visits"].sort_values(["person", "start"], kind="stable").reset_index(drop=True)
    for _, visit in visits.iterrows():
        before = joined[(joined["person"] == visit["person"]) & (joined["start"] < visit["start"])]["value"]
        mine = said[_place(found, visit, tables)]
        assert np.isnan(mine) if before.empty else mine == pytest.approx(before.mean() / 10, abs=1e-6)


def _place(found: DatabaseData, visit: pd.Series, tables: Tables) -> int:
    numbers = found._keys["persons"].numbers._numbers
    own = np.flatnonzero(found.level("visits").above == numbers[str(visit["person"])])
    earlier = (tables["visits"]["person"] == visit["person"]) & (tables["visits"]["start"] < visit["start"])
    return int(own[int(earlier.sum())])


def test_tables_that_are_not_the_schemas_are_refused():
    tables = hospital(5, 1)
    with pytest.raises(ConfigError, match=r"the 4 tables .* got no 'drugs'"):
        open_records({name: frame for name, frame in tables.items() if name != "drugs"}, schema())
    without = open_records({**tables, "visits": tables["visits"].drop(columns="state")}, schema())
    with pytest.raises(SchemaError, match=r"\(the table 'visits'\) to have every column .* got no column 'state'"):
        DatabaseData(without, schema())
    with pytest.raises(DataError, match=r"the table 'drugs', to have the column 'person'"):
        open_records({**tables, "drugs": tables["drugs"].drop(columns="person")}, schema())


def test_units_are_counted_that_have_no_columns():
    tables = hospital(12, 2)
    known = schema(persons={"columns": []}, drugs={"columns": ["sex", "age", "drug"]})
    tables["drugs"] = tables["drugs"].assign(sex="f", age=30)
    (rows,) = data({**tables, "persons": tables["persons"][["person"]]}, known).coded()
    assert {len(codes) for codes in rows.values()} == {12}
