"""Drafts of several tables: the tree is asked, and what is written is valid and refused by fits."""

import pandas as pd
import pytest

from fixtures.command_line import call
from fixtures.database import hospital
from sfumato.desk.database_drafts import draft_tables
from sfumato.errors import DataError
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
        "drugs": {"of": "persons", "max_rows": 5, "columns": ["drug"]},
        "visits": {"of": "persons", "key": "visit", "max_rows": 5, "columns": ["start", "end", "score", "state"]},
        "measurements": {"of": "visits", "max_rows": 5, "columns": ["value", "at"]},
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
        "of": "visits", "max_rows": 5, "columns": ["value", "at"], "unit": "person",
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


def test_what_does_not_fit_is_told():
    tables = hospital(200, 1)
    tables["wards"] = pd.DataFrame({"ward": range(9), "beds": range(9)})
    tables["links"] = tables["visits"][["person"]]
    tables["drugs"]["state"] = "given"
    document, text = drafted(tables)
    assert set(document["tables"]) == {"persons", "drugs", "visits", "measurements"}
    assert "# NOT IN THE TREE: wards, which shares no key" in text
    assert "# NOT IN THE TREE: links, of which nothing would be released" in text
    assert "not released of visits: a column is of one table. Rename it there" in text
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
