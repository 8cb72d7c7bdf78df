"""Lines of a draft on records that are more than a row."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.desk.drafting import draft_schema
from sfumato.desk.survey import joined_items
from sfumato.io.sources import open_source

RNG = np.random.default_rng(5)
ITEMS = ["bread", "milk", "eggs", "tea", "rice"]


def question(**columns):
    return draft_schema(open_source(pa.table(columns))).protection.question


def long(name, start=0):
    baskets = np.repeat(np.arange(800) + start, RNG.integers(1, 8, 800))
    return {name: baskets, "item": RNG.choice(ITEMS, len(baskets))}


@pytest.mark.parametrize("name", ["basket", "visit_id"])
@pytest.mark.parametrize("start", [0, 10**6])
def test_a_long_table_says_that_its_numbers_repeat(name, start):
    asked = question(**long(name, start))
    assert f"{name} repeats, as in a long table" in asked
    assert f"unit: {{column: {name}," in asked
    assert f"{{kind: set, id: {name}}}" in asked


@pytest.mark.parametrize(
    "numbers",
    [np.arange(2000), RNG.integers(0, 90, 2000), RNG.integers(0, 10**6, 2000), RNG.integers(0, 150, 20_000)],
)
def test_numbers_of_other_kinds_say_nothing(numbers):
    assert "repeat" not in question(n=numbers, item=RNG.choice(ITEMS, len(numbers)))


@pytest.mark.parametrize("separator", [";", "|", ", "])
def test_items_joined_in_a_text_are_offered_as_sets(separator):
    codes = ["E11", "I10", "J45", "K20"]
    cells = [separator.join(RNG.permutation(codes)[: RNG.integers(0, 4)]) for _ in range(500)]
    notes = draft_schema(open_source(pa.table({"age": RNG.integers(0, 90, 500), "dx": cells}))).notes
    assert f"4 items joined by {separator!r}: {{kind: set, separator: {separator!r}" in notes["dx"]
    assert "set" not in notes["age"]


def test_single_labels_and_sentences_are_none():
    assert joined_items(ITEMS) is None
    assert joined_items([]) is None
    assert joined_items([f"Street {i}; Town {i}" for i in range(100)]) is None
    assert joined_items([f"{'a' * 70};{i % 3}" for i in range(100)]) is None
