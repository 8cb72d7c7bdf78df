"""The first line of a CSV file: names, or a record already."""

import pandas as pd
import pytest

from sfumato.desk.drafting import draft_schema
from sfumato.errors import DataError
from sfumato.io.sources import open_source, require_names
from sfumato.schema.open_schema import OpenSchema

RECORDS = ["42", "-1", "3.5", "1,5", "1e-3", ".5", "12%", "2020-01-31", "31.1.2020", "1/2/1999", "2020-01-31 10:00",
           "10:00", "10:00:05", "+49", "2019", "1'234", "1’234.50", "CHF 3.50", "3€", "$3", "3 %", "\u22123",
           "anna.meier@example.org", "123e4567-e89b-12d3-a456-426614174000"]  # fmt: skip
NAMES = ["age", "x0", "q1", "year 2019", "2019 income", "1st", "income (EUR)", "a-b", "ü", "id_1", "e5", "USD", "CHF",
         "price CHF", "a@b", "0-17"]  # fmt: skip


def file(tmp_path, *names, body="1\n"):
    path = tmp_path / "t.csv"
    path.write_text(";".join(names) + "\n" + body, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", RECORDS)
def test_hardening_7_a_headerless_file_is_refused(tmp_path, name):
    path = file(tmp_path, "age", name, "sex")
    for use in (draft_schema, require_names, OpenSchema.of):
        with pytest.raises(DataError, match=r"for column 2\. If that line is a record") as error:
            use(open_source(path))
        assert name not in str(error.value).replace("column 2", "").replace("names_are_public", "")
    found = OpenSchema.of(open_source(path), names_are_public=True)
    assert tuple(found.columns) == ("age", name, "sex")


@pytest.mark.parametrize("name", NAMES)
def test_names_are_names(tmp_path, name):
    require_names(open_source(file(tmp_path, "sex", name)))


@pytest.mark.parametrize("body", ["", "2020-01-31;7\n", "x;y\n" * 9])
def test_the_records_do_not_matter(tmp_path, body):
    require_names(open_source(file(tmp_path, "a", "b", body=body)))
    with pytest.raises(DataError) as error:
        require_names(open_source(file(tmp_path, "a", "7", body=body)))
    assert str(error.value).startswith("Expected the first line of t.csv to name its columns, got a number")


def test_names_of_a_frame_are_the_callers_own():
    require_names(open_source(pd.DataFrame({"2019": [1], "2020": [2]})))
