"""Words beside numbers that nobody declared: found where many rows share them, missing where few do."""

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate
from sfumato.columns import Categorical, Continuous, Identifier, Integer
from sfumato.fitting.discovery import label_threshold
from sfumato.io.sources import open_source
from sfumato.schema.open_schema import OpenSchema

N = 4_000


def cells(numbers, **words):
    """Numbers, of which the first so many of a hundred are the words."""
    every = [word for word, share in words.items() for _ in range(share)]
    return [every[i % 100] if i % 100 < len(every) else number for i, number in enumerate(numbers)]


def kinds(columns, epsilon=None, seed=None):
    source = open_source(pd.DataFrame(columns))
    method = MaxEntropy(epsilon=epsilon or NonPrivate())
    return method.fit(source, schema=OpenSchema.of(source, rows=N), seed=seed).schema.columns


AGES = np.random.default_rng(0).integers(18, 90, N).tolist()
SHARES = np.random.default_rng(1).integers(0, 900, N) / 100


@pytest.mark.parametrize("epsilon", [1.0, None])
def test_they_are_found(epsilon):
    columns = {"x": cells(AGES, **{"<5": 30, "unknown": 5}), "f": cells(SHARES.tolist(), refused=8), "n": AGES}
    found = kinds(columns, epsilon, seed=1)  # of twenty noises one makes a column without missing cells one with some
    assert found["x"].atoms == ("<5", "unknown")
    assert found["f"].atoms == ("refused",)
    assert isinstance(found["x"], Integer)
    assert isinstance(found["f"], Continuous)
    assert {found[name].nullable for name in columns} == {False}, "no cell is missing"
    assert not found["n"].atoms


def test_what_few_rows_have_is_missing():
    rare = [f"about {'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10 % 10]} or so" for i in range(N)]
    columns = {"x": [rare[i] if i % 12 == 0 else age for i, age in enumerate(AGES)], "n": AGES}
    columns["one"] = [f"{i} of Elm Street" if i == 7 else age for i, age in enumerate(AGES)]
    for epsilon in (2.0, None):
        found = kinds(columns, epsilon)
        assert isinstance(found["x"], Integer)
        assert found["x"].nullable
        assert not any(kind.atoms for kind in found.values())
    assert "Elm" not in repr(kinds(columns, 50.0)["one"].to_dict())


def test_texts_that_nobody_tells_apart_are_missing_and_no_middle_of_the_numbers():
    """Dates, codes and texts of their own beside numbers, and more words than a schema has room for."""
    other = {
        "dates": lambda i: str(np.datetime64("1990-01-01") + i),
        "texts": lambda i: f"about {''.join('abcdefghij'[int(digit)] for digit in str(i))}",
        "many": lambda i: f"w{'abcdefghijklmnop'[i // 13 % 16]}{'abcdefghij'[i // 208 % 10]}",
    }  # fmt: skip
    for epsilon in (5.0, None):
        columns = {
            name: [text(i) if i % 13 == 0 else age for i, age in enumerate(AGES)] for name, text in other.items()
        }
        found = kinds(columns, epsilon)
        assert all(isinstance(kind, Integer) and kind.nullable for kind in found.values()), found


def test_a_number_that_stands_for_no_value_is_no_word_however_it_is_written():
    values = [str(share) for share in (SHARES * 100).astype(int) % 37 / 8]
    data = pd.DataFrame({"x": ["+99" if i % 20 == 0 else "<5" if i % 20 == 1 else v for i, v in enumerate(values)]})
    source = open_source(data)
    schema = OpenSchema.from_dict(
        {"columns": {"x": {"kind": "unknown", "discover": True}}, "missing": ["99"], "rows": N}
    )
    kind = MaxEntropy(epsilon=NonPrivate()).fit(source, schema=schema).schema.columns["x"]
    assert kind.atoms == ("<5",)
    assert kind.nullable
    assert 99.0 not in (kind.values or ())


def test_texts_for_no_value_are_missing():
    found = kinds({"x": cells(AGES, **{"k.A.": 4, "?": 4, "<5": 10}), "x (word)": ["a", "b"] * (N // 2)})
    assert not found["x"].atoms, "a column has the name of the words"
    assert found["x"].nullable
    found = kinds({"x": cells(AGES, **{"k.A.": 4, "?": 4, "<5": 10})})
    assert (found["x"].atoms, found["x"].nullable) == (("<5",), True)


def test_dates_beside_numbers_are_missing():
    """Other types than text hold them: one cell more may turn all of them into text."""
    found = kinds({"x": cells(AGES, **{"2021-01-01": 4, "<5": 4}), "n": AGES})
    assert (found["x"].atoms, found["x"].nullable) == (("<5",), True)


def test_codes_and_more_words_than_numbers_stay_labels():
    few = [i % 9 for i in range(N)]
    some = [f"{i % 9}.5" if i % 10 == 0 else i % 9 for i in range(N)]  # few decimals make no numbers of codes
    found = kinds({
        "codes": cells(few, V57=20), "words": cells(few, few=10, many=10), "some": cells(some, few=20), "n": AGES,
    })  # fmt: skip
    assert isinstance(found["some"], Categorical | Identifier)
    assert isinstance(found["codes"], Categorical)
    assert isinstance(found["words"], Categorical)


def test_many_words_beside_decimals_leave_them_numbers():
    prices = {"f": cells(SHARES.tolist(), refused=15), "g": cells(SHARES.tolist(), refused=25, unknown=15), "n": AGES}
    for seed in range(5):
        found = kinds(prices, 1.0, seed)
        assert isinstance(found["f"], Continuous), seed
        assert isinstance(found["g"], Continuous), seed
        assert (found["f"].atoms, found["g"].atoms) == (("refused",), ("refused", "unknown"))


def test_declared_words_of_open_columns_are_values():
    source = open_source(pd.DataFrame({"x": cells(AGES, **{"<5": 30}), "n": AGES}))
    entry = {"kind": "integer", "discover": True}
    schema = OpenSchema.from_dict({"rows": N, "columns": {"x": entry | {"atoms": ["<5"]}, "n": entry}})
    plan = MaxEntropy(epsilon=1).plan(schema)
    assert label_threshold(plan, schema) is None, "nothing is published that nobody listed"
    release = MaxEntropy(epsilon=3.0).fit(source, schema=schema)
    assert release.schema.columns["x"].atoms == ("<5",)
    rows = release.sample(seed=1)
    assert abs((rows["x"] == "<5").mean() - 0.3) < 0.03


def test_means_of_found_numbers_are_of_the_numbers():
    source = open_source(pd.DataFrame({"x": cells(AGES, **{"<5": 30}), "n": AGES}))
    release = MaxEntropy(epsilon=3.0).fit(source, schema=OpenSchema.of(source, rows=N))
    numbers = [age for i, age in enumerate(AGES) if i % 100 >= 30]
    answer = release.mean("x")
    assert abs(answer.value - np.mean(numbers)) < 5 * answer.std_error
    assert abs(release.count({"x": "<5"}).value - 0.3 * N) < 150


@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "arrow"])
def test_they_are_found_however_they_are_stored(form, tmp_path):
    texts = pd.DataFrame({"x": [str(cell) for cell in cells(AGES, **{"<5": 30})], "n": AGES})
    if form == "csv":
        texts.to_csv(tmp_path / "t.csv", index=False)
    if form == "parquet":
        texts.to_parquet(tmp_path / "t.parquet")
    data = {"frame": texts, "csv": tmp_path / "t.csv", "parquet": tmp_path / "t.parquet"}
    if form == "arrow":
        texts["x"] = texts["x"].astype("category")
    source = open_source(data.get(form, texts))
    release = MaxEntropy(epsilon=NonPrivate()).fit(source, schema=OpenSchema.of(source, rows=N))
    assert release.schema.columns["x"].atoms == ("<5",)
