"""The schema as a form: the text of its fields from a document, and a document from what was typed.

Fields of the column at place i end in i, such as `lower3`. A column whose fields were not changed keeps its entry.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.columns.kinds import Identifier
from sfumato.desk.review import Document, forget_source, questions, with_answers
from sfumato.errors import SchemaError
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.references import column_entry
from sfumato.schema.schema import Schema

KINDS = {
    "integer": "whole numbers", "continuous": "numbers", "datetime": "dates or times", "boolean": "yes or no",
    "categorical": "labels", "ordinal": "labels in order", "unknown": "estimate the kind",
}  # fmt: skip
"""What the drop-down offers: the kind in a schema, and the same in plain words."""

BOUNDED = ("integer", "continuous", "datetime")
LISTED = ("categorical", "ordinal")
_FIELDS = ("kind", "lower", "upper", "labels", "listed", "hidden", "nullable")
_WRITTEN = {"kind", "lower", "upper", "categories", "nullable", "discover", "source"}
_SOURCED = ("lower", "upper", "resolution", "categories", "nullable")
_OF_OPEN = {"written", "format", "missing"}  # that stay where the rest is estimated
_ON = "on"

Form = Mapping[str, str]


class FieldError(Exception):
    """What is wrong with a field, and which one."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def form_of(document: Mapping[str, Any], schema: Schema) -> dict[str, str]:
    """Return the fields as they stand, field → text; empty ones are left out, ticked ones are `on`.

    Args:
        document: as the schema's file holds it.
        schema: the same, read.
    """
    unit, weight = schema.unit, schema.weight
    form = {
        "unit": "" if unit is None else unit.column,
        "max_rows": "" if unit is None else str(unit.max_rows),
        "rows": str(document.get("rows", "")),
        "weight": "" if weight is None else weight.column,
        "most_weight": "" if weight is None or weight.upper is None else f"{weight.upper:g}",
        "missing": ", ".join(filter(None, schema.missing)),
    }
    form |= {f"table{i}": str(table["max_rows"]) for i, table in enumerate(tables_below(document).values())}
    form |= {f"rule{i}": _ON for i in range(len(document.get("rules", ())))}
    for i, entry in enumerate(document["columns"].values()):
        form |= {f"{key}{i}": text for key, text in _texts(_facts(entry)).items()}
    return {key: text for key, text in form.items() if text}


def tables_below(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the tables that are of another one, by name."""
    return {name: table for name, table in document.get("tables", {}).items() if "of" in table}


def with_form(
    document: Mapping[str, Any], form: Form, rules: Sequence[Mapping[str, Any]], base: Path
) -> tuple[Document, dict[str, str]]:
    """Return a document with what was typed, and what is wrong: field → message, `form` for the whole.

    Args:
        document: as it stands.
        form: field → text, as `form_of` returns it.
        rules: that fields `rule0` and so on tick.
        base: the folder of the schema's file.
    """
    changed, faults = copy.deepcopy(dict(document)), {}
    form = {key: _tidy(text) for key, text in form.items()}
    before = {key: _tidy(text) for key, text in form_of(document, OpenSchema.from_dict(document, base=base)).items()}
    for i, (name, entry) in enumerate(document["columns"].items()):
        typed = {key: form.get(f"{key}{i}", "") for key in _FIELDS}
        if any(name == form.get(role) != before.get(role) for role in ("unit", "weight")):
            typed["hidden"] = _ON  # neither is released
        if all(text == before.get(f"{key}{i}", "") for key, text in typed.items()):
            continue
        try:
            changed["columns"][name] = _entry(typed, _facts(entry), name, base)
        except FieldError as error:
            faults[f"{error.field}{i}"] = str(error)
    ticked = {i for i in range(len(rules)) if form.get(f"rule{i}")}
    if ticked != {i for i in range(len(rules)) if before.get(f"rule{i}")}:
        changed["rules"] = [rules[i] for i in sorted(ticked)]
    of_table = _with_table(changed, form, before, base)
    if faults:
        of_table.pop("form", None)  # with the columns corrected it may be well
    return changed, {**of_table, **faults}


def _with_table(changed: Document, form: Form, before: Form, base: Path) -> dict[str, str]:
    """Write what is of the whole table into a document, and return what is wrong."""

    def differs(*fields: str) -> bool:
        return any(form.get(field, "") != before.get(field, "") for field in fields)

    fields = {"missing": "missing"} | {f"table {name}": f"table{i}" for i, name in enumerate(tables_below(changed))}
    answers = {key: form.get(field, "") for key, field in fields.items() if differs(field)}
    fields |= {"unit": "max_rows", "public": "public"}
    try:
        if differs("unit", "max_rows"):
            answers["unit"] = _unit(form)
        if form.get("public"):
            answers["public"] = "yes"
        if differs("rows"):
            _set_rows(changed, form.get("rows", ""))
        if differs("weight", "most_weight"):
            _set_weight(changed, form)
        return _with_answers(changed, answers, fields, base)
    except FieldError as error:
        return {error.field: str(error)}
    except SchemaError as error:
        return {"form": str(error)}


def _with_answers(changed: Document, answers: Form, fields: Form, base: Path) -> dict[str, str]:
    """Write answers to questions of a review into a document, and return which are none.

    Raises:
        SchemaError: the document is no schema, before or after.
    """
    faults: dict[str, str] = {}
    known = questions(OpenSchema.from_dict(changed, base=base), changed)
    for key, answer in answers.items():
        try:
            answered = with_answers(changed, known, {key: answer})
        except SchemaError as error:
            faults[fields[key]] = str(error)
            continue
        changed.clear()  # an answer may take a key out
        changed.update(answered)
    OpenSchema.from_dict(changed, base=base)
    return faults


def _unit(form: Form) -> str:
    if form.get("unit") and not form.get("max_rows", "").isdecimal():
        raise FieldError("max_rows", "Expected the most rows that one of them may have, such as 5.")
    return f"{form['unit']} to {form['max_rows']}" if form.get("unit") else "row"


def _set_rows(document: Document, text: str) -> None:
    document.pop("rows", None)
    forget_source(document, "rows")
    if text:
        if not text.isdecimal() or not int(text):
            raise FieldError("rows", "Expected a whole number, such as 5000, or nothing.")
        document["rows"] = int(text)


def _set_weight(document: Document, form: Form) -> None:
    old = document.pop("weight", None)
    facts = old if isinstance(old, Mapping) and old.get("column") == form.get("weight") else {}
    forget_source(document, "weight")
    if form.get("weight"):
        upper = _bound("most_weight", form.get("most_weight", ""), "continuous")
        document["weight"] = {**facts, "column": form["weight"], "upper": upper}


def _facts(entry: object) -> dict[str, Any]:
    """Return the entry of a column as a mapping."""
    entry = column_entry(entry)
    return dict(entry) if isinstance(entry, Mapping) else {"kind": entry}


def _texts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a column's fields."""
    if facts["kind"] == Identifier.name:
        return {"kind": "unknown", "hidden": _ON, "nullable": _ON}
    labels, listed = facts.get("categories", []), ""
    if isinstance(labels, Mapping):
        listed = labels["list"] if "list" in labels else f"{labels.get('file', '')}#{labels.get('column', '')}"
        labels = []
    return {
        "kind": facts["kind"],
        "lower": str(facts.get("lower", "")),
        "upper": str(facts.get("upper", "")),
        "labels": "\n".join(map(str, labels)),
        "listed": listed,
        # nothing rules missing cells out, where no fact is declared
        "nullable": _ON if facts.get("nullable") or facts.get("discover") else "",
    }


def _entry(typed: Form, facts: Mapping[str, Any], name: str, base: Path) -> object:
    """Return the entry of a column whose fields were changed.

    Raises:
        FieldError: a field does not go with the kind.
    """
    kind, field = typed["kind"], "kind"
    if typed["hidden"]:
        return Identifier.name
    stays = kind == facts["kind"]
    rest = {key: fact for key, fact in facts.items() if (stays and key not in _WRITTEN) or key == "missing"}
    declared: dict[str, Any] = {}
    if kind in BOUNDED:
        field = "lower"
        declared = {end: _bound(end, typed[end], kind) for end in ("lower", "upper") if typed["lower"] + typed["upper"]}
    elif kind in LISTED:
        field = "labels"
        declared = _categories(typed, facts.get("categories", []))
    if declared or kind not in (*BOUNDED, "categorical", "unknown"):
        entry = {"kind": kind, **rest, **declared, **({"nullable": True} if typed["nullable"] else {})}
        entry |= _source_of_unchanged(facts, entry)
    else:
        of_dates = {"resolution"} if kind == "datetime" else set()
        rest = {key: fact for key, fact in rest.items() if key in _OF_OPEN | of_dates}
        entry = {"kind": kind, "discover": True, **rest}
    try:
        OpenSchema.from_dict({"columns": {name: entry}}, base=base)
    except SchemaError as error:
        raise FieldError(field, str(error)) from None
    return entry


def _source_of_unchanged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of the facts that stay as they were: what was read off the records is so beside a new tick."""
    source = before.get("source", {})
    words = source if isinstance(source, Mapping) else dict.fromkeys(_SOURCED, source)
    same = {fact: word for fact, word in words.items() if fact in after and str(after[fact]) == str(before.get(fact))}
    return {"source": same} if same else {}


def _categories(typed: Form, before: object) -> dict[str, Any]:
    lines, listed = list(filter(None, typed["labels"].split("\n"))), typed["listed"]
    if lines and listed:
        raise FieldError("listed", "Expected labels or a public list, got both. Empty one of them.")
    if listed:
        file, _, column = listed.rpartition("#")
        return {"categories": {"file": file, "column": column} if file else {"list": listed}}
    if not lines and typed["kind"] == "ordinal":
        raise FieldError("labels", "Expected the labels in their order, one a line, got none.")
    as_written = {str(label): label for label in before} if isinstance(before, list) else {}
    return {"categories": [as_written.get(line, line) for line in lines]} if lines else {}


def _bound(field: str, text: str, kind: str) -> object:
    if not text:
        raise FieldError(field, "Expected a bound here, too. Leave both empty to have them estimated.")
    if kind == "datetime":
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise FieldError(field, "Expected a number, such as 12.5, without marks between its digits.")


def _tidy(text: str) -> str:
    """Return text without blank lines and blanks at its lines' ends."""
    return "\n".join(filter(None, (line.strip() for line in text.splitlines())))
