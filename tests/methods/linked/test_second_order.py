"""Histories whose next label depends on two before, and whose end depends on the one before."""

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns.levels import LabelPair
from sfumato.lenses.chain import plain_schema
from sfumato.records.sequences import Sequences, steps_at, unit_records
from sfumato.schema.linked import linked_tables

N, MOST, STATES = 3_000, 8, np.array(list("abcde"))
DOCUMENT = {
    "unit": {"column": "person", "max_rows": MOST, "order": "turn", "units": N, "ends": {"state": ["d", "e"]}},
    "columns": {
        "person": "identifier",
        "turn": {"kind": "integer", "lower": 0, "upper": MOST},
        "state": {"kind": "categorical", "categories": STATES.tolist()},
    },
}


def histories(n: int = N, seed: int = 0) -> pd.DataFrame:
    """The next state is mostly the sum of the last two, modulo 3; a third after a `b` are ends, of these .7 are d."""
    rng = np.random.default_rng(seed)
    two, one = rng.integers(0, 3, (2, n))
    parts, most, on = (
        [(0, np.arange(n), two.copy()), (1, np.arange(n), one.copy())],
        rng.integers(3, MOST + 1, n),
        np.arange(n),
    )
    for turn in range(2, MOST):
        on = on[(one[on] < 3) & (most[on] > turn)]
        state = np.where(rng.random(on.size) < 0.8, (one[on] + two[on]) % 3, rng.integers(0, 3, on.size))
        end = (one[on] == 1) & (rng.random(on.size) < 0.35)
        state = np.where(end, 3 + (rng.random(on.size) < 0.3), state)
        two[on], one[on] = one[on], state
        parts.append((turn, on, state))
    return pd.concat([pd.DataFrame({"person": who, "turn": t, "state": STATES[s]}) for t, who, s in parts])


def triples(rows: pd.DataFrame) -> pd.Series:
    """P(state two before, one before, now)."""
    rows = rows.sort_values(["person", "turn"], kind="stable")
    before = rows.groupby("person")["state"]
    return (before.shift(2) + before.shift(1) + rows["state"]).dropna().value_counts(normalize=True)


def distance(one: pd.DataFrame, other: pd.DataFrame) -> float:
    return float(triples(one).sub(triples(other), fill_value=0).abs().sum() / 2)


@pytest.mark.parametrize("epsilon", [NonPrivate(), 4.0])
def test_two_labels_before_and_ends_are_as_in_the_records(epsilon):
    real = histories()
    release = MaxEntropy(epsilon=epsilon, delta=1e-6).fit(real, schema=Schema.from_dict(DOCUMENT), seed=1)
    sample = release.sample(N, seed=2).sort_values(["person", "turn"], kind="stable")
    assert distance(real, sample) < 0.12, "of a chain of first order .3 off"
    ending = sample["state"].isin(["d", "e"])
    assert (ending.groupby(sample["person"]).cumsum() - ending == 0).all()
    share = real["state"].isin(["d", "e"]).groupby(real["person"]).any().mean()
    assert ending.groupby(sample["person"]).any().mean() == pytest.approx(share, abs=0.03)
    before = sample.groupby("person")["state"].shift(1)[ending]
    assert (before == "b").mean() > 0.9, "which label is before an end is kept"
    assert (sample["state"][ending] == "d").mean() == pytest.approx(0.7, abs=0.08)


def test_units_and_steps_say_what_the_rows_do():
    """Of one row, of three without an end, of three with one, and of none."""
    tables = linked_tables(plain_schema(Schema.from_dict(DOCUMENT)))
    kind = tables.pairs["state"]
    assert isinstance(kind, LabelPair)
    assert kind.n == 5
    state = np.array([3, 0, 1, 2, 2, 1, 4, 0])
    sizes, starts = np.array([1, 3, 3, 0]), np.array([0, 1, 4, 7])
    codes = {"state": state, "turn": np.linspace(0, 1, state.size)}
    sequences = Sequences(sizes, starts, codes, {})
    [units] = unit_records(tables, sequences)
    assert units[tables.ended].tolist() == [1, 0, 1, 0]
    steps = steps_at(tables, sequences, np.array([1, 1, 2, 2]), np.array([2, 3, 2, 3]))
    assert steps[tables.end].tolist() == [0, 2, 1, 3]
    assert steps[tables.before["state"]].tolist() == [0 * 6 + 5, 1 * 6 + 0, 2 * 6 + 5, 1 * 6 + 2]


def test_many_labels_know_one_before():
    labels = {"kind": "categorical", "categories": [f"c{i}" for i in range(12)]}
    few, turn = {"kind": "categorical", "categories": ["x", "y"]}, {"kind": "integer", "lower": 0, "upper": 4}
    columns = {"person": "identifier", "turn": turn, "state": labels, "few": few}
    document = {"unit": {"column": "person", "max_rows": 4, "order": "turn"}, "columns": columns}
    tables = linked_tables(plain_schema(Schema.from_dict(document)))
    assert list(tables.pairs) == ["few"]
    assert tables.steps is not None
    assert tables.steps.columns[tables.before["state"]] == tables.steps.columns["state"]


def test_a_column_of_one_label_is_fitted():
    turn, state = {"kind": "integer", "lower": 0, "upper": 4}, {"kind": "categorical", "categories": ["a"]}
    columns = {"person": "identifier", "turn": turn, "state": state}
    document = {"unit": {"column": "person", "max_rows": 4, "order": "turn", "units": 60}, "columns": columns}
    rows = pd.DataFrame({"person": np.repeat(np.arange(60), 3), "turn": np.tile([0, 1, 3], 60), "state": "a"})
    sample = MaxEntropy(epsilon=1.0, delta=1e-6).fit(rows, schema=Schema.from_dict(document), seed=0).sample(20)
    assert set(sample["state"]) == {"a"}


def test_of_two_columns_that_end_units_one_does():
    """As often as each did, and hardly both in one row; nothing follows."""
    rng, n = np.random.default_rng(3), 1_500
    who, turn = np.repeat(np.arange(n), 5), np.tile(np.arange(5), n)
    rows = pd.DataFrame({"person": who, "turn": turn, "state": rng.choice(list("ab"), who.size), "way": "on"})
    rows.loc[rng.random(who.size) < 0.06, "state"] = "dead"
    rows.loc[(rows["state"] != "dead") & (rng.random(who.size) < 0.03), "way"] = "moved"
    over = (rows["state"] == "dead") | (rows["way"] == "moved")
    rows = rows[over.groupby(who).cumsum() - over == 0]
    labels = {"state": ["a", "b", "dead"], "way": ["on", "moved"]}
    columns = {"person": "identifier", "turn": {"kind": "integer", "lower": 0, "upper": 5}}
    columns |= {name: {"kind": "categorical", "categories": own} for name, own in labels.items()}
    unit = {"column": "person", "max_rows": 5, "order": "turn", "units": n}
    schema = Schema.from_dict({"unit": {**unit, "ends": {"state": ["dead"], "way": ["moved"]}}, "columns": columns})
    sample = MaxEntropy(epsilon=2.0, delta=1e-6).fit(rows, schema=schema, seed=0).sample(n, seed=1)
    dead, moved = sample["state"] == "dead", sample["way"] == "moved"
    assert ((dead | moved).groupby(sample["person"]).cumsum() - (dead | moved) == 0).all()
    assert (dead & moved).sum() <= 0.02 * n
    for name, label in (("state", "dead"), ("way", "moved")):
        real, own = (t[name].eq(label).groupby(t["person"]).any().mean() for t in (rows, sample))
        assert own == pytest.approx(real, abs=0.06), name
