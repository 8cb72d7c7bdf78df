"""Values that seem to stand for none, and texts for no value that are answers."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.desk.drafting import draft_schema
from sfumato.desk.sentinels import sentinel_numbers
from sfumato.io.sources import open_source

N = 600
FLAGS = ["true", "false"] * (N // 2)
RNG = np.random.default_rng(1)
DAYS = [f"20{i % 20 + 10}-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(N)]


def _some(values, odd, every=10):
    return [odd if i % every == 0 else values[i % len(values)] for i in range(N)]


def _draft(**columns):
    return draft_schema(open_source(pa.table({**columns, "flag": [True, False] * (N // 2)})))


def _draft_of_file(folder, **columns):
    """A draft of a text file, which has no other word for no value."""
    path = folder / "t.csv"
    rows = [[*columns, "flag"], *zip(*columns.values(), FLAGS, strict=True)]
    path.write_text("\n".join(map(",".join, rows)))
    return draft_schema(open_source(path))


@pytest.mark.parametrize(
    ("numbers", "none"),
    [
        ([*range(18, 91), -99], {-99}),
        ([*range(18, 91), -9, -8, -1], {-9, -8, -1}),
        ([*range(18, 91), 999], {999}),
        ([*range(0, 40), 97, 98, 99], {97, 98, 99}),
        ([1, 2, 3, 4, 5, 99], {99}),
        (range(18, 100), set()),  # an age of 99
        ([*range(-30, 30), -99], set()),  # degrees
        ([*range(0, 600), 999], set()),
        ([-99, 5], set()),
        ([-1, 0, 1], set()),
    ],
)
def test_numbers_that_stand_for_no_value(numbers, none):
    assert sentinel_numbers({float(number): 3 for number in numbers}) == none


def test_one_cell_is_no_habit():
    assert sentinel_numbers({float(age): 3 for age in range(18, 91)} | {-99.0: 1}) == set()


def test_they_are_proposed_as_missing_and_bound_nothing():
    ages = _some([str(i) for i in range(18, 91)], "-99")
    found = _draft(age=ages, until=_some(DAYS, "9999-12-31"), born=_some(DAYS, "01.01.1900"))
    assert found.schema.missing == MISSING_TOKENS, "nothing is said of other columns"
    firsts = {name: texts[0] for name, texts in found.schema.missing_of.items()}
    assert firsts == {"age": "-99", "until": "9999-12-31"}
    assert "-99 stands for no value, it seems" in found.to_yaml()
    table = pa.table({"age": ages, "flag": [True] * N})
    exact = draft_schema(open_source(table), exact=True).schema.columns["age"]
    assert (exact.lower, exact.upper, exact.nullable) == (18, 90, True)


def test_a_value_of_another_column_is_not_taken_from_it():
    found = _draft(age=_some([str(i) for i in range(18, 91)], "-9"), degrees=[str(i % 40 - 20) for i in range(N)])
    assert list(found.schema.missing_of) == ["age"]
    assert found.schema.missing_of["age"][0] == "-9"


def test_numbers_that_are_no_text_are_said_alone():
    found = _draft(age=pa.array(_some(list(range(18, 91)), -99)))
    assert not found.schema.missing_of
    assert "make such cells missing in the data" in found.to_yaml()


@pytest.mark.parametrize(
    ("values", "mark", "is_label"),
    [
        (["None", "Mild", "Severe"], "None", True),
        (["NA", "ZA", "DE", "AT"], "NA", True),
        (["NA", "red", "blue", ""], "NA", True),
        (["NA", "red", "blue"], "NA", False),
        (["+", "-"], "-", True),
        (["a", "-", "b"], "-", False),
        (["null", "red"], "null", False),
    ],
)
def test_an_answer_is_a_label(tmp_path, values, mark, is_label):
    found = _draft_of_file(tmp_path, x=[values[i % len(values)] for i in range(N)])
    assert (mark in found.schema.missing_of.get("x", found.schema.missing)) != is_label
    assert ("is taken for an answer" in found.to_yaml()) == is_label


def test_where_numbers_are_missing_so_labels_are_too(tmp_path):
    found = _draft_of_file(
        tmp_path, x=[["NA", "red", "blue", ""][i % 4] for i in range(N)], n=_some(["1.5", "2.5"], "NA")
    )
    assert "NA" in found.schema.missing
    assert not found.schema.missing_of
