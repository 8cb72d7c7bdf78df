"""Two tables with a key as records of units: what becomes of every key, whatever either table holds of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.desk.validation import validate
from sfumato.errors import ConfigError, DataError, SchemaError
from sfumato.io.sources import open_source
from sfumato.records.linked import LinkedData
from sfumato.records.table_sources import TableSources, open_records
from sfumato.schema.schema import Schema

DOCUMENT = {
    "tables": {
        "persons": {"key": "who", "rows": 50, "columns": ["home"]},
        "visits": {"of": "persons", "max_rows": 3, "order": "day"},
    },
    "columns": {
        "who": {"kind": "identifier"},
        "day": {"kind": "integer", "lower": 0, "upper": 10},
        "home": {"kind": "categorical", "categories": ["n", "s", "w"]},
        "what": {"kind": "categorical", "categories": ["a", "b", "c"]},
    },
}
SCHEMA = Schema.from_dict(DOCUMENT)
HOMES, WHATS = list("nsw"), list("abc")


def pair(persons: list[tuple], visits: list[tuple]) -> dict[str, pd.DataFrame]:
    """Tables of (who, home) and of (who, day, what)."""
    return {
        "persons": pd.DataFrame(persons, columns=["who", "home"]).astype(object),
        "visits": pd.DataFrame(visits, columns=["who", "day", "what"]).astype({"who": object, "what": object}),
    }


def units(tables: dict, schema: Schema = SCHEMA, chunk_rows: int = 65_536) -> list[tuple]:
    """What a fit reads: home, and the rows (day, what), of each unit, in an order of their own."""
    opened = {name: open_source(table, chunk_rows=chunk_rows) for name, table in tables.items()}
    found = LinkedData(open_records(opened, schema), schema).sequences()
    made = []
    for start, size in zip(found.starts, found.sizes, strict=True):
        rows = [(round(10 * found.codes["day"][i]), WHATS[found.codes["what"][i]]) for i in range(start, start + size)]
        made.append((HOMES[found.codes["home"][start]], tuple(rows)))
    return sorted(made)


def test_every_key_becomes_what_the_page_says():
    tables = pair(
        [("p", "n"), ("q", "s"), (None, "w"), ("r", "w"), ("", "w")],
        [("q", 2, "b"), ("q", 1, "a"), ("r", 5, "c"), (None, 1, "a"), ("nobody", 2, "a"), ("NA", 3, "a")],
    )
    assert units(tables) == [("n", ()), ("s", ((1, "a"), (2, "b"))), ("w", ((5, "c"),))]


def test_a_repeated_key_is_one_unit_whatever_the_order_of_the_file():
    persons = [("p", "n"), ("p", "s"), ("p", "w"), ("q", "s"), ("p", "s"), ("r", "w")]
    visits = [("p", 1, "a"), ("p", 2, "b"), ("q", 1, "c")]
    found = units(pair(persons, visits))
    assert len(found) == 3
    assert sorted(len(rows) for _, rows in found) == [0, 1, 2]
    for seed in range(8):
        tables = {name: table.sample(frac=1, random_state=seed) for name, table in pair(persons, visits).items()}
        assert units(tables, chunk_rows=2) == found


def test_which_of_repeated_rows_counts_favours_none():
    n = 3_000
    persons = [(f"p{i}", home) for i in range(n) for home in "nsw"]
    homes = [home for home, _ in units(pair(persons, []))]
    assert len(homes) == n
    assert np.unique(homes, return_counts=True)[1] / n == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.slow
@pytest.mark.audit
@settings(deadline=None, max_examples=60)
@given(
    persons=st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(HOMES)), max_size=6),
    visits=st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.integers(0, 3), st.sampled_from(WHATS)), max_size=14
    ),
    chunk_rows=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_keys_do_not_meet(persons, visits, chunk_rows, seed):
    """All units together are each key's alone: no record of one moves what another becomes."""
    whole = units(pair(persons, visits))
    shuffled = {name: t.sample(frac=1, random_state=seed) for name, t in pair(persons, visits).items()}
    assert units(shuffled, chunk_rows=chunk_rows) == whole
    alone = [
        unit
        for key in "abcd"
        for unit in units(pair([p for p in persons if p[0] == key], [v for v in visits if v[0] == key]))
    ]
    assert sorted(alone) == whole


def test_a_unit_without_rows_has_no_first_row():
    tables = pair([("p", "n"), ("q", "s")], [("q", 2, "b")])
    data = LinkedData(open_records(tables, SCHEMA), SCHEMA)
    [rows] = data.coded()
    by_home = {HOMES[home]: i for i, home in enumerate(rows["home"])}
    without, one = by_home["n"], by_home["s"]
    assert rows["number of visits"][[without, one]] == pytest.approx([0, 1 / 3])
    assert np.isnan(rows["day"][without])
    assert rows["what"][without] == 3, "the level of a missing label"
    assert (rows["day"][one], rows["what"][one]) == (0.2, 1)
    assert list(data.steps.coded()) == []


@pytest.mark.parametrize("rows", [[], [("p", 1, "a")]], ids=["no row", "a row"])
@pytest.mark.parametrize("persons", [[], [("p", "n")]], ids=["no person", "a person"])
def test_empty_tables_are_read(persons, rows):
    assert len(units(pair(persons, rows))) == len(persons)


@pytest.mark.parametrize(
    ("of_persons", "of_visits"),
    [
        (np.array([5, 7]), np.array(["5", "5", "7"], dtype=object)),
        (np.array([5.0, 7.0]), np.array([5, 5, 7])),
        (np.array(["5", "7"], dtype=object), np.array([5.0, 5.0, 7.0])),
    ],
    ids=["number and text", "float and number", "text and float"],
)
def test_keys_are_compared_as_text_whatever_type_they_are_stored_in(of_persons, of_visits):
    persons = pd.DataFrame({"who": of_persons, "home": ["n", "s"]})
    visits = pd.DataFrame({"who": of_visits, "day": [1, 2, 3], "what": list("abc")})
    found = [("n", ((1, "a"), (2, "b"))), ("s", ((3, "c"),))]
    assert units({"persons": persons, "visits": visits}) == found


KEYS = {
    "binary": pa.array([b"a", b"\xff\x00", None], pa.binary()),
    "text that is no text": pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string()),
    "booleans": pa.array([True, False, None]),
    "decimals": pa.array([1, 2, None], pa.decimal128(9, 2)),
    "dates": pa.array([1, 2, None], pa.date32()),
    "times": pa.array([1, 2, None], pa.time32("s")),
    "moments": pa.array([1, 2, None], pa.timestamp("ns", tz="UTC")),
    "durations": pa.array([1, 2, None], pa.duration("s")),
    "floats": pa.array([float("inf"), -0.0, float("nan")]),
    "large numbers": pa.array([2**64 - 1, 2**53 + 1, None], pa.uint64()),
    "dictionaries": pa.array(["a", "b", None]).dictionary_encode(),
    "nothing": pa.nulls(3),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_type_are_read(kind):
    """Two keys and none: of whatever type, each is one unit with its own row."""
    persons = pa.table({"who": KEYS[kind], "home": ["n", "s", "w"]})
    visits = pa.table({"who": KEYS[kind], "day": [1, 2, 3], "what": ["a", "b", "c"]})
    found = [] if kind in ("nothing", "large numbers") else [("n", ((1, "a"),)), ("s", ((2, "b"),))]
    assert units({"persons": persons, "visits": visits}) == found
    for other in KEYS.values():  # keys that the other table stores in another type: read, whether they meet or not
        visits = pa.table({"who": other, "day": [1, 2, 3], "what": ["a", "b", "c"]})
        assert len(units({"persons": persons, "visits": visits})) == len(found)


def test_containers_give_the_same(tmp_path):
    rng = np.random.default_rng(0)
    tables = pair(
        [(f"p{i}", HOMES[i % 3]) for i in range(40)],
        [(f"p{rng.integers(50)}", int(rng.integers(9)), WHATS[i % 3]) for i in range(90)],
    )
    found = units(tables)
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        table.to_parquet(tmp_path / f"{name}.parquet", index=False)
        table.to_json(tmp_path / f"{name}.jsonl", orient="records", lines=True)
    for suffix in ("csv", "parquet", "jsonl"):
        assert units({name: tmp_path / f"{name}.{suffix}" for name in tables}) == found
    assert units({name: pa.Table.from_pandas(table) for name, table in tables.items()}, chunk_rows=7) == found
    mixed = {"persons": tmp_path / "persons.csv", "visits": tables["visits"]}
    assert units(mixed) == found


def test_columns_that_the_other_table_has_too_are_left_alone():
    """Each declared column comes from its own table; a namesake in the other is not read."""
    tables = pair([("p", "n")], [("p", 1, "a")])
    tables["persons"]["what"], tables["visits"]["home"] = "c", "w"
    assert units(tables) == [("n", ((1, "a"),))]


def test_a_key_of_another_name():
    document = {**DOCUMENT["tables"], "visits": {**DOCUMENT["tables"]["visits"], "by": "id"}}
    schema = Schema.from_dict({**DOCUMENT, "tables": document})
    tables = pair([("p", "n")], [("p", 1, "a")])
    tables["visits"] = tables["visits"].rename(columns={"who": "id"})
    assert units(tables, schema) == [("n", ((1, "a"),))]
    with pytest.raises(DataError, match="the table 'visits', to have the column 'id'"):
        open_records(pair([], []), schema)


def test_what_is_not_the_two_tables_is_refused():
    tables = pair([("p", "n")], [("p", 1, "a")])
    with pytest.raises(ConfigError, match=r"the two tables \{'persons': ..., 'visits': ...\}.*got a DataFrame"):
        open_records(tables["visits"], SCHEMA)
    with pytest.raises(ConfigError, match="got no 'persons'"):
        open_records({"visits": tables["visits"]}, SCHEMA)
    with pytest.raises(ConfigError, match="got 'drugs', which the schema does not name"):
        open_records({**tables, "drugs": tables["visits"]}, SCHEMA)
    with pytest.raises(SchemaError, match="got no column 'home'"):
        LinkedData(open_records({**tables, "persons": tables["persons"][["who"]]}, SCHEMA), SCHEMA)
    elsewhere = {"persons": tables["persons"].assign(what="a"), "visits": tables["visits"].drop(columns="what")}
    with pytest.raises(SchemaError, match="got no column 'what'"):
        LinkedData(open_records(elsewhere, SCHEMA), SCHEMA)
    nested = pa.table({"who": [["p"]], "day": [1], "what": ["a"]})
    with pytest.raises(SchemaError, match=r"the key 'who' of .* to hold names or numbers"):
        open_records({**tables, "visits": nested}, SCHEMA)


def test_nothing_of_a_record_is_in_what_is_raised(tmp_path):
    tables = pair([("secret", "n")], [("secret", 1, "a")])
    source = open_records(tables, SCHEMA)
    assert "secret" not in repr(source)
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet", index=False)
    files = open_records({name: tmp_path / f"{name}.parquet" for name in tables}, SCHEMA)
    (tmp_path / "visits.parquet").write_bytes(b"secret")
    with pytest.raises(DataError) as raised:
        LinkedData(files, SCHEMA).sequences()
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None


def test_validate_counts_keys_and_looks_at_each_table_by_itself():
    tables = pair(
        [("p", "n"), ("p", "n"), ("q", "x"), (None, "s"), ("r", "s")],
        [("q", 2, "b")] * 5 + [(None, 1, "a"), ("z", 99, "a"), ("z", 1, "a")],
    )
    found = {(f.column, f.problem): f.count for f in validate(open_records(tables, SCHEMA), SCHEMA)}
    assert found == {
        ("persons.who", "no_key"): 1,
        ("persons.who", "repeated"): 1,
        ("visits.who", "no_rows"): 2,
        ("visits.who", "no_key"): 1,
        ("visits.who", "orphans"): 2,
        ("visits.who", "too_many"): 2,
        ("home", "unknown"): 1,
        ("day", "clamped"): 1,
    }
    clean = pair([("p", "n")], [("p", 1, "a")])
    assert validate(open_records(clean, SCHEMA), SCHEMA) == []


def test_the_rows_of_a_pair_are_joined():
    source = open_records(pair([("p", "n"), ("q", "s")], [("q", 2, "b"), ("z", 1, "a")]), SCHEMA)
    assert isinstance(source, TableSources)
    [chunk] = source.chunks(["home", "what"])
    assert {name: column.to_pylist() for name, column in chunk.columns.items()} == {"home": ["s"], "what": ["b"]}
    assert list(source.storage) == ["who", "home", "day", "what"]
