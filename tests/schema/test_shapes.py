"""The table of limits: every one is refused by name and with its reason, and what is not in it is not."""

from pathlib import Path

import pytest

from sfumato import Schema, Weight
from sfumato.columns import Boolean, Continuous, Identifier, Integer, ItemSet
from sfumato.errors import ConfigError, SchemaError
from sfumato.schema.database import Branch, Database
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.shapes import LIMITS, SHAPES, require_able, require_taken
from sfumato.schema.unit import Unit

COLUMNS = {"t": Integer(lower=0, upper=9), "u": Integer(lower=0, upper=9), "p": Identifier()}
OF = {
    "rules": {"rules": ({"order": ["t", "u"]},)},
    "unit": {"unit": Unit(column="p", max_rows=2)},
    "questions": {"questions": ("mean: t",)},
    "areas": {"columns": {**COLUMNS, "a": Boolean()}, "areas": ("a",)},
    "linked": {"unit": Unit(column="p", max_rows=2, order="t")},
    "tree": {
        "unit": Unit(
            column="p",
            tables=Database(
                units="a",
                branches=tuple(Branch(name=c, of="a", max_rows=2, columns=(c,), by="p") for c in ("t", "u")),
            ),
        )
    },
    "words": {"columns": {**COLUMNS, "n": Integer(lower=0, upper=9, atoms=("none",))}},
    "sets": {"columns": {**COLUMNS, "s": ItemSet(items=("a", "b"), max_length=2)}},
    "weighted units": {
        "columns": {**COLUMNS, "w": Continuous(lower=0, upper=2)},
        "unit": Unit(column="p", max_rows=2, order="t", constant=("w",)),
        "weight": Weight(column="w"),
    },
    "weight": {"columns": {**COLUMNS, "w": Continuous(lower=0, upper=2)}, "weight": Weight(column="w")},
}


def schema(*shapes: str) -> Schema:
    if "open" in shapes:
        unit = {"unit": {"column": "p", "max_rows": 2, "order": "t"}} if "linked" in shapes else {}
        entry = {"kind": "integer", "lower": 0, "upper": 9}
        columns = {"t": entry, "p": "identifier", "x": {"kind": "integer", "discover": True}}
        return OpenSchema.from_dict({"columns": columns, **unit})
    columns = {name: kind for shape in shapes for name, kind in OF[shape].get("columns", COLUMNS).items()}
    rest = {key: value for shape in shapes for key, value in OF[shape].items() if key != "columns"}
    return Schema(columns=columns or COLUMNS, **rest)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.shape}, {limit.beside}")
def test_each_limit_is_refused_with_its_reason(limit):
    if limit.beside in SHAPES:
        with pytest.raises(SchemaError, match=limit.reason):
            schema(limit.shape, limit.beside)
        return
    with pytest.raises(ConfigError, match=f"without {SHAPES[limit.shape].words} for {limit.beside}.*{limit.reason}"):
        require_able(schema(limit.shape), limit.beside)


def test_a_plain_table_is_refused_nothing():
    for limit in LIMITS:
        require_able(Schema(columns=COLUMNS), limit.beside)
    require_taken(Schema(columns=COLUMNS), (), "any")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_method_takes_what_it_says(shape):
    found = schema(shape)
    require_taken(found, set(SHAPES), "any")
    with pytest.raises(ConfigError, match=f"without {SHAPES[shape].words} for the method any"):
        require_taken(found, set(SHAPES) - {shape}, "any")


def test_the_documentation_has_the_same_table():
    page = (Path(__file__).parents[2] / "docs" / "shapes.md").read_text()
    head = "| shape | beside | why not |\n|---|---|---|\n"
    words = {name: shape.words for name, shape in SHAPES.items()}
    rows = [
        f"| {words[limit.shape]} | {words.get(limit.beside, limit.beside)} | {limit.reason} |\n" for limit in LIMITS
    ]
    assert head + "".join(rows) + "\n" in page
