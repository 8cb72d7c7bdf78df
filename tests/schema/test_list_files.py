"""Labels must not be read from the data themselves."""

import os

import pytest

from sfumato import MaxEntropy, create_ledger, fit, read_ledger
from sfumato.errors import SchemaError
from sfumato.schema.code_lists import refuse_lists_of_data


@pytest.fixture
def places(tmp_path):
    data, codes = tmp_path / "data", tmp_path / "codes.csv"
    data.mkdir()
    (data / "people.csv").write_text("town\nRiga\nOslo\n")
    codes.write_text("town\nRiga\nOslo\n")
    return data / "people.csv", codes


def schema(folder, file):
    path = folder / "schema.yaml"
    path.write_text(
        f"rows: 100\ncolumns:\n  town: {{kind: categorical, categories: {{file: '{file}', column: town}}}}\n"
    )
    return path


def test_a_file_of_its_own_is_taken(places, tmp_path):
    refuse_lists_of_data(schema(tmp_path, "codes.csv"), places[0])
    refuse_lists_of_data({"columns": {}}, places[0])


@pytest.mark.parametrize("data", ["data/people.csv", "data", "data/*.csv", ["data/people.csv"], ("data/people.csv",)])
def test_the_data_are_refused(places, tmp_path, data):
    named = {"persons": tmp_path / data[0]} if isinstance(data, tuple) else str(tmp_path / str(data))
    data = [tmp_path / part for part in data] if isinstance(data, list) else named
    with pytest.raises(SchemaError, match="'town' from a file of its own"):
        refuse_lists_of_data(schema(tmp_path, "data/people.csv"), data)


def test_another_name_of_the_data_is_refused(places, tmp_path):
    for name, link in (("hard.csv", os.link), ("soft.csv", os.symlink)):
        link(places[0], tmp_path / name)
        with pytest.raises(SchemaError, match="its own"):
            refuse_lists_of_data(schema(tmp_path, name), places[0])


def test_nothing_is_charged(places, tmp_path):
    create_ledger(tmp_path / "people.ledger", epsilon=3.0, delta=1e-6)
    path = schema(tmp_path, "data/people.csv")
    call = {"schema": path, "ledger": tmp_path / "people.ledger"}
    with pytest.raises(SchemaError, match="its own"):
        MaxEntropy(epsilon=1.0, delta=1e-6).fit(places[0], **call)
    with pytest.raises(SchemaError, match="its own"):
        fit(places[0], epsilon=1.0, delta=1e-6, **call)
    assert not read_ledger(tmp_path / "people.ledger").fits


def test_a_map_of_a_rule_is_refused(places, tmp_path):
    path = tmp_path / "schema.yaml"
    path.write_text("columns: {town: boolean}\nrules:\n  - {derived: a, from: b, map: data/people.csv}\n")
    with pytest.raises(SchemaError, match="the map of rule 1"):
        refuse_lists_of_data(path, places[0])
