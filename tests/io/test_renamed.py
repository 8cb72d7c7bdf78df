"""A table under other names of columns is cell by cell what it is."""

import pandas as pd
import pyarrow as pa

from sfumato.columns.kinds import Integer
from sfumato.io.csv_form import CsvForm
from sfumato.io.renamed import RenamedSource
from sfumato.io.sources import open_source


def rows(source, names):
    return [pa.table(dict(chunk.columns)).to_pydict() for chunk in source.chunks(names)]


def test_a_file_and_a_frame(tmp_path):
    frame = pd.DataFrame({"date": [1, 2, 2**60], "kind": ["a", "b", None]})
    frame.to_csv(path := tmp_path / "visits.csv", index=False)
    for data in (frame, path):
        table = open_source(data)
        named = RenamedSource.of(table, {"date": "visits.date"})
        assert named.names == ("visits.date", "kind")
        assert (named.label, named.in_files, named.size()) == (table.label, table.in_files, table.size())
        (own,), (seen,) = rows(table, ["kind", "date"]), rows(named, ["kind", "visits.date"])
        assert list(seen.items()) == [("kind", own["kind"]), ("visits.date", own["date"])]
        assert rows(named.with_dictionaries(), ["visits.date"]) == rows(named, ["visits.date"])
        assert [rows(piece, ["visits.date"]) for piece in named.pieces()] == [
            rows(piece, ["visits.date"])
            for piece in (RenamedSource.of(p, {"date": "visits.date"}) for p in table.pieces())
        ]
        assert named.under({"visits.date": Integer(lower=0, upper=9)}).names == named.names
        assert list(named.notes("skipped")) == []
        assert list(named.computing()) == []


def test_what_follows_from_all_cells_is_known_by_the_new_name():
    """Whole numbers of a frame are floats beside a missing one, and so are read as these."""
    named = RenamedSource.of(open_source(pd.DataFrame({"date": [1, 2**60 + 1]})), {"date": "visits.date"})
    assert named.inferred == {"visits.date"}
    assert rows(named, None) == [{"visits.date": [1.0, float(2**60)]}]


def test_a_form_of_text(tmp_path):
    (path := tmp_path / "visits.csv").write_text("date;kind\n1;a\n", "utf-8")
    named = RenamedSource.of(open_source(path, csv=CsvForm(delimiter=";")), {"date": "d"})
    assert named.read_as(CsvForm(delimiter=";")).names == ("d", "kind")


def test_without_new_names_it_is_itself():
    table = open_source(pd.DataFrame({"date": [1]}))
    assert RenamedSource.of(table, {}) is table
