"""The folder to publish of linked rows and of two tables."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

import sfumato
from fixtures import database, linked, two_tables
from sfumato import MaxEntropy

N = 300


def fitted(data, schema):
    return MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=200).fit(data, schema=schema)


@pytest.fixture(scope="module")
def visits():
    return fitted(linked.visits(N, 1), linked.schema(units=N))


@pytest.fixture(scope="module")
def both():
    return fitted(two_tables.tables(N, 1), two_tables.schema(N))


def names(place):
    return {item.relative_to(place).as_posix() for item in place.rglob("*") if item.is_file()}


@pytest.mark.slow
def test_linked_rows(visits, tmp_path):
    place = tmp_path / "out"
    sfumato.pack(visits, place, n=40, seed=2)
    rows = pd.read_csv(place / "rows.csv")
    pd.testing.assert_frame_equal(rows, visits.sample(40, seed=2), check_dtype=False)
    with (place / "counts.csv").open(encoding="utf-8", newline="") as stream:
        counts = [row for row in csv.DictReader(stream) if row["column"] == "number of rows of patient"]
    assert [row["lower"] for row in counts] == [str(k) for k in range(1, 7)]
    assert sum(float(row["count"]) for row in counts) == pytest.approx(N, abs=120)
    card = (place / "README.md").read_text(encoding="utf-8").replace("\\", "")
    assert "Rows of the same patient belong together: at most 6. They come in the order of day." in card
    assert "Counts are of units" in card


@pytest.mark.slow
def test_two_tables_are_files_of_a_folder(both, tmp_path):
    place = tmp_path / "out"
    sfumato.pack(both, place, n=40, seed=2, formats=("csv", "parquet"))
    files = names(place)
    rows = {"rows/persons.csv", "rows/visits.csv", "rows_parquet/persons.parquet", "rows_parquet/visits.parquet"}
    assert {name for name in files if name.startswith("rows")} == rows
    sums = [line.split("  ")[1] for line in (place / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    assert set(sums) == files - {"SHA256SUMS"}
    drawn = both.sample(40, seed=2)
    for table, frame in drawn.items():
        pd.testing.assert_frame_equal(pd.read_csv(place / f"rows/{table}.csv"), frame, check_dtype=False)
        assert pq.read_table(place / f"rows_parquet/{table}.parquet").num_rows == len(frame)
    front = yaml.safe_load((place / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert [config["config_name"] for config in front["configs"]] == ["persons", "visits"]
    assert front["configs"][1]["data_files"][0]["path"] == "rows_parquet/visits.parquet"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib.*")  # of what the validator imports
def test_croissant_says_which_column_is_the_key(both, tmp_path):
    place = tmp_path / "out"
    sfumato.pack(both, place, n=40, seed=2)
    persons, visits = json.loads((place / "croissant.json").read_text(encoding="utf-8"))["recordSet"]
    assert persons["key"] == {"@id": "persons/column-1"}
    assert visits["field"][0]["references"] == {"field": {"@id": "persons/column-1"}}
    found = [entry["source"]["extract"]["column"] for entry in visits["field"]]
    assert found == ["patient", "day", "score", "state"]
    croissant = pytest.importorskip("mlcroissant", reason="needs mlcroissant")
    dataset = croissant.Dataset(jsonld=str(place / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert len(list(dataset.records("persons"))) == 40


@pytest.mark.slow
def test_a_table_of_any_name_stays_in_its_place(tmp_path):
    document = {**two_tables.DOCUMENT}
    document["tables"] = {
        "release`s": document["tables"]["persons"] | {"rows": N},
        "codebook": document["tables"]["visits"] | {"of": "release`s"},
    }
    found = two_tables.tables(N, 1)
    data = {"release`s": found["persons"], "codebook": found["visits"]}
    sfumato.pack(fitted(data, sfumato.Schema.from_dict(document)), tmp_path / "out", n=5, seed=1)
    assert {"rows/release`s.csv", "rows/codebook.csv", "codebook.csv"} <= names(tmp_path / "out")
    assert "`` rows/release`s.csv ``" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def hospital():
    known = database.schema(N, measurements={"unit": "person"})
    tables = database.hospital(N, 1)
    owner = tables["visits"].set_index("visit")["person"]
    tables["measurements"]["person"] = tables["measurements"]["visit"].map(owner)
    return tables, fitted(tables, known)


@pytest.mark.slow
def test_a_database_is_published_table_by_table(hospital, tmp_path):
    tables, release = hospital
    place = tmp_path / "out"
    sfumato.pack(release, place, n=40, seed=2, formats=("parquet",))
    assert {name for name in names(place) if name.startswith("rows")} == {f"rows/{name}.parquet" for name in tables}
    for table, frame in release.sample(40, seed=2).items():
        assert pq.read_table(place / f"rows/{table}.parquet").num_rows == len(frame)
    card = (place / "README.md").read_text(encoding="utf-8")
    assert "Tables: persons, visits of persons, measurements of visits, drugs of persons, by the key person." in card
    assert "Counts of 'at': Expected a column that was measured itself" in card
    counts = pd.read_csv(place / "counts.csv").query("table == 'measurements'")
    assert (
        {"number of measurements", "value"} <= set(counts["column"]) <= set(release.table("measurements").units.columns)
    )
    assert counts["std_error"].min() > 0
    codebook = pd.read_csv(place / "codebook.csv").set_index("column")["table"]
    assert codebook[["sex", "end", "value", "drug"]].tolist() == list(tables)
    sets = {one["name"]: one for one in json.loads((place / "croissant.json").read_text())["recordSet"]}
    references = [
        field["references"]["field"]["@id"] for field in sets["measurements"]["field"] if "references" in field
    ]
    assert references == ["visits/column-1", "persons/column-1"]
    assert sets["visits"]["key"] == {"@id": "visits/column-1"}
    assert "key" not in sets["drugs"]


@pytest.mark.slow
def test_noisy_counts_of_a_database_are_those_of_its_units(hospital, tmp_path):
    tables, release = hospital
    sfumato.pack(release, tmp_path / "out", n=5, seed=2)
    counts = pd.read_csv(tmp_path / "out" / "counts.csv")
    first = tables["visits"].sort_values("start").groupby("person").first()["state"].value_counts()
    states = counts[(counts["table"] == "visits") & (counts["column"] == "state")].set_index("value")
    for state, true in first.items():
        assert abs(states.loc[state, "count"] - true) < 4.5 * states.loc[state, "std_error"]
    for table in ("visits", "drugs"):
        numbers = counts[(counts["table"] == table) & (counts["column"] == f"number of {table}")]
        true = tables[table].groupby("person").size().reindex(range(N), fill_value=0).value_counts().sort_index()
        assert (np.abs(numbers["count"].to_numpy() - true.to_numpy()) < 4.5 * numbers["std_error"].to_numpy()).all()
    assert not counts["column"].str.startswith(("mean of ", "ever of ")).any(), "what tables before say is theirs"
    assert counts[counts["column"] == "sex"]["table"].tolist() == ["visits", "visits"]
