"""Drafts of several tables: the tree is asked, and what is written is valid and refused by fits."""

import numpy as np
import pandas as pd
import pytest

from fixtures import folders
from fixtures.command_line import call
from fixtures.database import hospital
from sfumato import MaxEntropy, Schema
from sfumato.desk.database_drafts import draft_tables
from sfumato.errors import DataError
from sfumato.evaluate import evaluate
from sfumato.io.sources import open_source
from sfumato.schema.documents import parse_document
from sfumato.schema.open_schema import OpenSchema

__all__ = ["call"]


def drafted(tables, **options):
    draft = draft_tables({name: open_source(table) for name, table in tables.items()}, **options)
    text = draft.to_yaml()
    read = OpenSchema.from_dict(parse_document(text, "the draft"))
    assert read == draft.schema
    assert read.draft
    return parse_document(text, "the draft"), text


def test_a_hospital_is_a_tree():
    document, text = drafted(dict(reversed(hospital(200, 1).items())))
    assert document["tables"] == {
        "persons": {"key": "person", "columns": ["sex", "age"]},
        "drugs": {"of": "persons", "max_rows": 4, "columns": ["drug"]},
        "visits": {"of": "persons", "key": "visit", "max_rows": 5, "columns": ["start", "end", "score", "state"]},
        "measurements": {"of": "visits", "max_rows": 3, "columns": ["value", "at"]},
    }
    assert document["columns"]["visit"] == {"kind": "identifier"}
    assert "# ASKED, not known" in text
    assert "# measurements is of visits: visit says of which row" in text
    assert "discover" not in text.split("draft: true")[1], "columns of linked rows cannot be discovered"


def test_two_tables_are_two_tables_and_exact_drafts_count_units():
    tables = hospital(200, 1)
    both = {name: tables[name] for name in ("persons", "visits")}
    assert drafted(both)[0]["tables"]["visits"] == {"of": "persons", "max_rows": 5}
    assert drafted(both, exact=True)[0]["tables"]["persons"]["rows"] == 200


def test_a_table_with_several_keys_is_below_the_lowest_and_names_its_unit():
    tables = hospital(200, 1)
    owners = tables["visits"].set_index("visit")["person"]
    tables["measurements"]["person"] = owners[tables["measurements"]["visit"]].to_numpy()
    assert drafted(tables)[0]["tables"]["measurements"] == {
        "of": "visits", "max_rows": 3, "columns": ["value", "at"], "unit": "person",
    }  # fmt: skip


def test_keys_that_point_at_each_other_make_no_circle():
    tables = hospital(200, 1)
    tables["persons"]["visit"] = tables["visits"].drop_duplicates("person").set_index("person")["visit"].reindex(
        tables["persons"]["person"]
    ).to_numpy()  # fmt: skip
    assert drafted(tables)[0]["tables"]["visits"]["of"] == "persons"


def test_a_person_twice_is_still_a_person():
    tables = hospital(200, 1)
    tables["persons"] = pd.concat([tables["persons"], tables["persons"].head(5)])
    assert drafted(tables)[0]["tables"]["persons"]["key"] == "person"


def test_the_tree_of_a_ward():
    """Keys go by other names in each table; wards are a list, values lie within stays, deaths end all."""
    document, text = drafted(folders.ward())
    assert document["tables"] == {
        "patients": {"key": "id", "columns": ["sex", "age"]},
        "deaths": {"of": "patients", "by": "patient_id", "max_rows": 1, "columns": ["died", "cause"]},
        "stays": {
            "of": "patients", "by": "patient_id", "key": "stay_id", "max_rows": 6, "order": "admitted",
            "columns": ["ward", "admitted", "discharged"],
        },
        "values": {
            "of": "stays", "max_rows": 6, "order": "taken", "within": ["admitted", "discharged"],
            "columns": ["taken", "test", "value"],
        },
    }  # fmt: skip
    assert document["columns"]["ward"] == {"kind": "categorical", "categories": [str(i) for i in range(1, 10)]}
    assert document["rules"] == [{"order": ["admitted", "died"]}]
    assert "# wards is taken for a list, not for units: ward of stays is a column of labels" in text


def test_the_tree_of_a_school():
    """Pupils are the units, not their schools; a date of two tables is one of each, in samples under its own name."""
    document, _ = drafted(tables := folders.school())
    assert document["tables"] == {
        "pupils": {"key": "pupil_id", "columns": ["school_id", "sex"]},
        "absences": {
            "of": "pupils", "max_rows": 4, "order": "absences.date", "columns": ["absences.date", "days"],
        },
        "marks": {
            "of": "pupils", "max_rows": 8, "order": "marks.date", "columns": ["marks.date", "mark", "subject"],
        },
    }  # fmt: skip
    del document["draft"]
    document["tables"]["pupils"]["rows"] = 600
    some = {name: table for name, table in tables.items() if name != "schools"}
    release = MaxEntropy(epsilon=10, delta=1e-6).fit(some, schema=Schema.from_dict(document))
    samples = release.sample(200, seed=0)
    assert list(samples["marks"]) == ["pupil_id", "date", "mark", "subject"]
    assert list(samples["absences"]) == ["pupil_id", "date", "days"]
    assert set(evaluate(some, samples, schema=release.schema)["tables"]) == {"absences", "marks"}


def test_the_tree_of_orders():
    """Every table has an `id` of its own; products are a list."""
    document, _ = drafted(folders.orders())
    assert document["tables"] == {
        "customers": {"key": "id", "columns": ["country"]},
        "orders": {
            "of": "customers", "by": "customer_id", "key": "id", "max_rows": 8, "order": "placed",
            "columns": ["order_no", "placed", "paid"],
        },
        "lines": {"of": "orders", "by": "order_id", "max_rows": 6, "columns": ["product_id", "pieces"]},
    }  # fmt: skip


def test_the_tree_of_accounts():
    document, _ = drafted(folders.accounts())
    tables = document["tables"]
    assert {name: table.get("of") for name, table in tables.items()} == {
        "clients": None, "accounts": "clients", "loans": "accounts", "moves": "accounts",
    }  # fmt: skip
    assert (tables["moves"]["order"], tables["moves"]["ends"]) == ("date", {"kind": "closed"})
    assert tables["moves"]["max_rows"] == 30
    assert document["columns"]["district"]["kind"] == "categorical"


def test_the_tree_of_households():
    """Persons are numbered within a household: a key of two columns."""
    assert drafted(folders.households())[0]["tables"] == {
        "households": {"key": "hh_id", "columns": ["rooms", "area"]},
        "persons": {"of": "households", "key": "person_no", "max_rows": 5, "columns": ["age", "sex"]},
        "trips": {"of": "persons", "unit": "hh_id", "max_rows": 6, "columns": ["mode", "km"]},
    }


def test_names_that_say_nothing():
    """A school of few rows is a list by these alone; a household of many is the unit."""
    school, homes = folders.school(), folders.households()
    told = {"school_id": "a", "pupil_id": "b", "hh_id": "a", "person_no": "b"}
    by_rows = {"t1": school["schools"], "t2": school["pupils"], "t3": school["marks"]}
    document, _ = drafted({name: table.rename(columns=told) for name, table in by_rows.items()})
    assert list(document["tables"]) == ["t2", "t3"]
    by_rows = {"t1": homes["households"], "t2": homes["persons"], "t3": homes["trips"]}
    document, _ = drafted({name: table.rename(columns=told) for name, table in by_rows.items()})
    assert [table.get("of") for table in document["tables"].values()] == [None, "t1", "t2"]


def test_a_row_a_person_in_two_tables_is_below_one_of_them():
    """`id` is one key in all: most rows name those of persons, and no row is below a baseline."""
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(300), rng.integers(2, 7, 300))
    wave = 1 + np.arange(owner.size) - np.searchsorted(owner, owner)
    document, _ = drafted(
        {
            "participants": pd.DataFrame({"id": np.arange(300), "sex": rng.choice(["f", "m"], 300)}),
            "followup": pd.DataFrame({"id": owner, "wave": wave, "score": rng.integers(0, 30, owner.size)}),
            "baseline": pd.DataFrame({"id": np.arange(300), "bmi": rng.normal(25, 3, 300).round(1)}),
        }
    )
    assert [table.get("of") for table in document["tables"].values()] == [None, "participants", "participants"]
    assert document["tables"]["followup"]["order"] == "wave"
    assert document["columns"]["wave"] == {"kind": "integer", "lower": 1, "upper": 6}


def test_what_does_not_fit_is_told():
    tables = hospital(200, 1)
    tables["wards"] = pd.DataFrame({"ward": range(9), "beds": range(9)})
    tables["links"] = tables["visits"][["person"]]
    document, text = drafted(tables)
    assert set(document["tables"]) == {"persons", "drugs", "visits", "measurements"}
    assert "# NOT IN THE TREE: wards, which shares no key" in text
    assert "# NOT IN THE TREE: links, of which nothing would be released" in text
    with pytest.raises(DataError, match="of the tables persons, wards to have a key that another has"):
        drafted({name: tables[name] for name in ("persons", "wards")})


def test_names_of_people_are_left_out():
    tables = hospital(200, 1)
    tables["persons"]["first_name"] = [f"N{i % 90}a" for i in range(200)]
    assert drafted(tables)[0]["columns"]["first_name"] == {"kind": "identifier"}


def test_a_text_for_no_value_is_that_of_its_column():
    tables = hospital(200, 1)
    tables["persons"]["age"] = tables["persons"]["age"].astype(str).where(tables["persons"].index > 20, "unknown")
    drugs = tables["drugs"].assign(drug=(["unknown", "a", "b"] * len(tables["drugs"]))[: len(tables["drugs"])])
    schema = drafted({**tables, "drugs": drugs})[0]
    assert "missing" not in schema
    assert {name: entry["missing"][0] for name, entry in schema["columns"].items() if "missing" in entry} == {
        "age": "unknown"
    }


def test_validate_takes_what_a_draft_of_a_folder_wrote(call, tmp_path):
    """Columns that are left out are in no table's list, and are not missed."""
    folder = tmp_path / "clinic"
    folder.mkdir()
    tables = hospital(200, 1)
    tables["persons"]["remark"] = [f"seen by doctor number {i} on a day" for i in range(200)]
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    assert call("schema", "draft", folder, "--out", tmp_path / "s.yaml").code == 0
    schema = OpenSchema.load(tmp_path / "s.yaml")
    assert not schema.columns["remark"].is_released
    done = call("schema", "validate", folder, "--schema", tmp_path / "s.yaml")
    assert done.code == 0
    assert "absent" not in done.out
