from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Image, Integer, Ordinal
from sfumato.columns.sets import ItemSet
from sfumato.errors import SchemaError
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit


def test_labels_become_canonical_text():
    kind = Categorical(categories=(1, 2.0, 2.5, True, " a "), other=0)
    assert kind.categories == ("1", "2", "2.5", "true", "a")
    assert kind.other == "0"


def test_numpy_scalars_are_facts_like_others():
    """As `sorted(frame.code.unique())` gives them."""
    codes = np.array([1, 2])
    kind = Categorical(categories=codes, other=np.str_("x"), nullable=np.True_)
    assert kind == Categorical(categories=(1, 2), other="x", nullable=True)
    moments = [np.float32(0.1), np.datetime64("2020-01-02"), np.datetime64("2020-01-03", "ns"), datetime(2020, 1, 4)]
    assert Ordinal(categories=moments).categories == ("0.1", "2020-01-02", "2020-01-03", "2020-01-04")
    assert Categorical(categories=[datetime(2020, 1, 4, 1)]).categories == ("2020-01-04 01:00:00",)
    assert Categorical(categories={"a": 1}.keys()).categories == ("a",)
    for unit in ("D", "s", "ns"):
        kind = DateTime(lower=np.datetime64("2020-01-01", unit), upper="2021-01-01")
        assert kind.lower[:10] == "2020-01-01"
    schema = Schema(columns={"a": kind}, rows=np.int64(5))
    assert (schema, type(schema.rows)) == (Schema(columns={"a": kind}, rows=5), int)
    assert type(Unit(column="a", max_rows=np.int8(3)).max_rows) is int


@pytest.mark.parametrize(
    ("other", "nullable", "labels", "levels"),
    [
        (None, False, ("a", "b"), 3),
        (None, True, ("a", "b"), 3),
        ("b", False, ("a", "b"), 2),
        ("z", True, ("a", "b", "z"), 4),
    ],
)
def test_other_adds_a_label_only_if_new_and_missing_comes_last(other, nullable, labels, levels):
    kind = Ordinal(categories=("a", "b"), other=other, nullable=nullable)
    assert kind.labels == labels
    assert kind.n_levels == levels


def test_boolean_levels():
    assert Boolean().labels == ("false", "true")
    assert Boolean(nullable=True).n_levels == 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Categorical(categories=()), "at least one category"),
        (lambda: Categorical(categories=("a", "a")), "'a' twice"),
        (lambda: Categorical(categories=(1, "1")), "'1' twice"),
        (lambda: Categorical(categories="abc"), "a list, got 'abc'"),
        (lambda: Categorical(categories=(None,)), "text, got None"),
        (lambda: Categorical(categories=("a", float("nan"))), "declare `nullable: true`"),
        (lambda: Categorical(categories=np.array([1, np.nan])), "declare `nullable: true`"),
        (lambda: Categorical(categories=("a", pd.NaT)), "declare `nullable: true`"),
        (lambda: Ordinal(categories={"low", "high"}), "a set, which has no order"),
        (lambda: Categorical(categories=frozenset("ab")), "a set, which has no order"),
        (lambda: Categorical(categories=(np.complex64(1),)), "to be text, got a complex"),
        (lambda: Boolean(nullable=np.int8(1)), "nullable to be true or false, got 1"),
        (lambda: ItemSet(items={"a"}, max_length=1), "a set, which has no order"),
        (lambda: ItemSet(items=["a", "a"], max_length=1), "each item once, got 'a' twice"),
        (lambda: Categorical(categories=("\ud800",)), "valid Unicode"),
        (lambda: Ordinal(categories=("a",), other=["b"]), "other to be text, got a list"),
        (lambda: Boolean(text=("no",)), "text to be the word for false and the word for true"),
        (lambda: Boolean(text=("Yes", "No")), "text to be the word for false and the word for true"),
        (lambda: Boolean(text=("x", "X ")), "text to be the word for false and the word for true"),
        (lambda: Boolean(text="no"), "Expected text"),
        (lambda: Boolean(nullable=1), "nullable to be true or false, got 1"),
        (lambda: Integer(lower=5, upper=2), "lower=5, upper=2"),
        (lambda: Integer(lower=0.5, upper=2), "whole number, got lower=0.5"),
        (lambda: Integer(lower=0, upper=2**63), "64 bits"),
        (lambda: Integer(lower=-(2**62), upper=2**62), "at most 2^62"),
        (lambda: Continuous(lower=float("nan"), upper=1), "lower=nan"),
        (lambda: Continuous(lower=-1e308, upper=1e308), "finite upper - lower"),
        (lambda: Continuous(lower=0, upper=1, resolution=0), "resolution above 0"),
        (lambda: Continuous(lower=0, upper=1, resolution=1e-20), "2^53 steps"),
        (lambda: Continuous(lower=0, upper=0, resolution=1e-300), "2^53 steps"),
        (lambda: Continuous(lower=0.2, upper=0.4, resolution=0.5), "multiple of resolution"),
        (lambda: Continuous(lower=0, upper=1, values="0"), "list of numbers"),
        (lambda: Continuous(lower=0, upper=1, values=(0, "x", 1)), "each of values"),
        (lambda: Continuous(lower=0, upper=1, values=(0, 0.5)), "from lower=0.0 to upper=1.0"),
        (lambda: Continuous(lower=0, upper=1, values=(0, 0.5, 0.5, 1)), "ascending"),
        (lambda: Continuous(lower=0, upper=1, values=()), "ascending"),
        (lambda: Continuous(lower=0, upper=1, values=(0, 1), resolution=0.5), "Leave one out"),
        (lambda: Continuous(lower=0, upper=1024, values=range(1025)), "at most 1024"),
        (lambda: DateTime(lower="2020-02-30", upper="2021-01-01"), "'2020-02-30'"),
        (lambda: DateTime(lower="2020-01-01", upper="2019-01-01"), "lower <= upper"),
        (lambda: DateTime(lower="2020-01-01T00:00Z", upper="2021-01-01"), "without offset"),
        (lambda: DateTime(lower="2020-01-01", upper="2021-01-01", resolution="fortnight"), "'fortnight'"),
        (lambda: DateTime(lower="2020-01-01", upper="2021-01-01", format="%Y"), "format='%Y'"),
        (
            lambda: DateTime(lower="2020-01-01", upper="2020-01-02", resolution="second", format="%Y-%m-%d"),
            "keeps every step",
        ),
        (lambda: DateTime(lower="1950-01-01", upper="2020-01-02", format="%d/%m/%y"), "format"),
        (lambda: Image(shape=(28, 0)), "at least 1"),
        (lambda: Image(shape=(2**14, 2**14)), "2^26 pixels"),
        (lambda: Image(shape=28), "list of sizes"),
        (lambda: Image(shape=(3, 32, 48)), "transpose(0, 2, 3, 1)`, and declare [32, 48, 3]"),
        (lambda: Image(shape=(1, 28, 28)), "channels come first"),
        (lambda: Image(shape=(28, 28), dtype="object"), "'object'"),
        (lambda: Image(shape=(28, 28), lower=1, upper=1), "lower < upper"),
    ],
)
def test_a_wrong_fact_is_refused_with_its_value(make, words):
    with pytest.raises(SchemaError) as caught:
        make()
    assert words in str(caught.value)


def test_every_fault_of_a_kind_is_told_at_once():
    with pytest.raises(SchemaError, match=r"(?s)lower.*upper.*nullable"):
        Integer(lower="x", upper=None, nullable="no")


def test_kinds_are_values():
    assert Integer(lower=0, upper=9.0) == Integer(lower=0, upper=9)
    assert len({Categorical(categories=("a",)), Categorical(categories=("a",))}) == 1


def test_a_bare_upper_date_means_the_whole_day():
    kind = DateTime(lower="1970-01-01", upper="1970-01-02", resolution="hour")
    assert kind.bounds == (0, 47)
    kind = DateTime(lower="1970-01-01", upper="1970-01-02 00:00", resolution="hour")
    assert kind.bounds == (0, 24)


def test_ticks_before_1970_are_floored():
    kind = DateTime(lower="1969-12-31T23:59:59.5", upper="1970-01-01", resolution="second")
    assert kind.bounds[0] == -1
