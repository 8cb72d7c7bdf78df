"""Schemas of databases: what may be declared, what follows from it, and what is refused by name."""

import pickle

import pytest

from fixtures.database import COLUMNS, TABLES, document, schema
from sfumato.errors import ConfigError, SchemaError
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.schema.branch_schemas import branch_views
from sfumato.schema.schema import Schema


def test_a_document_comes_back():
    found = schema()
    assert found.to_dict()["tables"] == TABLES
    assert Schema.from_dict(found.to_dict()) == found == pickle.loads(pickle.dumps(found))
    assert found.database is not None
    assert found.tree == found.database
    assert found.database.names == ("persons", "visits", "measurements", "drugs")
    assert found.protects == {"name": "person", "max_rows": 5 + 5 * 3 + 4}


def test_tables_may_come_in_any_order():
    turned = dict(reversed(TABLES.items()))
    found = Schema.from_dict({"tables": turned, "columns": COLUMNS})
    assert found.database is not None
    assert found.database.names == ("persons", "drugs", "visits", "measurements")


def test_a_branch_knows_the_rows_above_and_the_branches_before():
    views = branch_views(schema())
    assert views["visits"].schema.unit.constant == ("sex", "age")
    above = ("sex", "age", "start", "end", "score", "state")
    assert views["measurements"].schema.unit.constant == (*above, "number of visits", "value earlier")
    ever = tuple(f"ever of state={label}" for label in ("well", "ill", "dead"))
    told = ("number of visits", "mean of end", "mean of score", *ever, "number of measurements", "mean of value")
    assert views["drugs"].schema.unit.constant == ("sex", "age", *told)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"visits": {"columns": ["start", "end", "score"]}}, "every released column in one table, got 'state' in none"),
        ({"drugs": {"columns": ["drug", "score"]}}, "each column in one table, got 'score'"),
        ({"visits": {"key": "score"}}, "'score' of the table 'visits', which names rows, to be no released column"),
        ({"drugs": {"of": "purchases"}}, "to be of another table, got of='purchases'"),
        ({"drugs": {"max_rows": 0}}, "max_rows of the table 'drugs' to be a whole number of at least 1"),
        (
            {"measurements": {"max_rows": 500}},
            "max_rows of the table 'measurements' that leave a unit 1000 of its rows",
        ),
        ({"measurements": {"within": ["start", "age"], "order": "value"}}, "of the kind of 'value', got 'start'"),
        ({"measurements": {"within": ["start", "value"]}}, "to name columns of rows above, got 'value'"),
        ({"measurements": {"within": ["start"]}}, "to name two columns of rows above"),
        ({"visits": {"ends": {"state": "gone"}}}, "to be labels of 'state', got 'gone'"),
        ({"visits": {"ends": {"score": "dead"}}}, "to name columns of labels that vary from row to row, got 'score'"),
        ({"visits": {"ends": {"state": ["well", "ill", "dead"]}}}, "labels of 'state' that are none, got all"),
        ({"visits": {"order": "value"}}, "order of the table 'visits' to be one of its columns, got 'value'"),
        ({"drugs": {"weight": -1}}, "weight of the table 'drugs' to be a positive number"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(SchemaError, match=message):
        schema(**change)


def test_an_order_within_others_has_room_for_them():
    narrow = document()
    narrow["columns"] = {**narrow["columns"], "at": {"kind": "integer", "lower": 100, "upper": 200}}
    with pytest.raises(SchemaError, match="'at' to have bounds that hold those of 'start'"):
        Schema.from_dict(narrow)


def test_no_column_has_the_name_of_what_tables_say():
    """A column's kind and its codes are its own, whatever it is called."""
    names = {"score": "mean of end", "value": "value earlier", "age": "number of visits", "drug": "last of drug"}
    described = document()
    for entry in described["tables"].values():
        entry["columns"] = [names.get(name, name) for name in entry["columns"]]
    described["columns"] = {names.get(name, name): entry for name, entry in described["columns"].items()}
    found = Schema.from_dict(described)
    for view in branch_views(found).values():
        features = {feature.name for feature in view.features}
        assert not features & set(found.columns)
        assert len(features) == len(view.features)
        assert set(view.branch.columns) <= set(view.schema.released)


def test_a_table_below_needs_the_key_of_the_one_above():
    tables = {name: dict(entry) for name, entry in TABLES.items()}
    del tables["visits"]["key"]
    with pytest.raises(SchemaError, match="key in the table 'visits', by which the tables below it name its rows"):
        Schema.from_dict({"tables": tables, "columns": COLUMNS})
    circle = {
        **TABLES,
        "visits": {**TABLES["visits"], "of": "drugs"},
        "drugs": {**TABLES["drugs"], "of": "visits", "key": "d"},
    }
    with pytest.raises(SchemaError, match="none is of itself"):
        Schema.from_dict({"tables": circle, "columns": COLUMNS})


def test_there_is_one_root_and_every_table_below_has_a_bound():
    roots = {**TABLES, "others": TABLES["persons"]}
    with pytest.raises(SchemaError, match="one table of units and others with `of`, got 2 without `of` of 5"):
        Schema.from_dict({"tables": roots, "columns": COLUMNS})
    round_about = {"visits": {**TABLES["visits"], "of": "drugs"}, "drugs": {**TABLES["drugs"], "of": "visits"}}
    with pytest.raises(SchemaError, match="got 0 without `of` of 2"):
        Schema.from_dict({"tables": round_about, "columns": COLUMNS})
    free = {name: {key: value for key, value in entry.items() if key != "max_rows"} for name, entry in TABLES.items()}
    with pytest.raises(SchemaError, match="max_rows in the table 'measurements', got none"):
        Schema.from_dict({"tables": free, "columns": COLUMNS})


def test_what_does_not_go_beside_a_database_is_refused():
    method = MaxEntropy(epsilon=1.0)
    with pytest.raises(ConfigError, match="for a target that varies from row to row"):
        method.plan(schema(), target="score")
    assert method.plan(schema(), target="sex").stages[0].name == "visits, first rows: marginals"


def test_a_plan_shares_the_budget_by_weight():
    plain, heavy = (MaxEntropy(epsilon=1.0, delta=1e-6).plan(schema(drugs={"weight": w})) for w in (1, 4))
    names = [stage.name for stage in plain.stages]
    assert names[:2] == ["visits, first rows: marginals", "visits, first rows: second moments"]
    assert len(names) == 12
    stage = "drugs, steps: second moments"
    assert heavy[stage].noise_multiplier < plain[stage].noise_multiplier / 1.3
    assert heavy[names[0]].noise_multiplier > plain[names[0]].noise_multiplier


@pytest.mark.parametrize("column", ["visits.score", "visits.visit"])
def test_columns_of_a_table_have_names_of_their_own_in_its_file(column):
    """`visits.score` is the column `score` of visits: beside that, or as its key, it would be there twice."""
    known = document(visits={"columns": [*TABLES["visits"]["columns"], column]})
    with pytest.raises(SchemaError, match="different names in its file"):
        Schema.from_dict(
            {**known, "columns": {**known["columns"], column: {"kind": "integer", "lower": 0, "upper": 9}}}
        )
