"""Faults of a schema, told all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sfumato.columns.cells import valid_text
from sfumato.columns.facts import label_text, shown
from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import ColumnKind, Continuous, Identifier, Image, Integer, ItemSet, is_kind
from sfumato.columns.levels import LevelKind
from sfumato.columns.open import Open
from sfumato.columns.words_beside import no_word
from sfumato.errors import SchemaError, did_you_mean
from sfumato.rules import RulePlan
from sfumato.schema.accept import Criterion
from sfumato.schema.database import count
from sfumato.schema.linked_faults import database_faults, linked_faults
from sfumato.schema.named_questions import FORMULAS, question_faults, read_question
from sfumato.schema.schema_facts import LEAST, MOST, SchemaFacts, Weight
from sfumato.schema.shapes import pair_faults
from sfumato.schema.unit import Unit
from sfumato.schema.word_columns import word_name


def column_faults(columns: Mapping[str, ColumnKind]) -> list[str]:
    """Return the faults of names and kinds."""
    if not isinstance(columns, Mapping):
        return [f"Expected columns to map names to kinds, got {shown(columns)}."]
    faults: list[str] = []
    for name, kind in columns.items():
        if not isinstance(name, str) or not name or name != valid_text(name):
            faults.append(f"Expected column names to be text, got {shown(name)}.")
        if not is_kind(kind):
            faults.append(
                f"Column {name!r}: expected a column kind, got {shown(kind)}. Schema.from_dict takes short facts."
            )
    return faults


def table_faults(schema: SchemaFacts) -> list[str]:
    """Return the faults of the table as a whole."""
    faults = rows_faults(schema.rows)
    if not isinstance(schema.columns, Mapping):
        return faults
    if schema.unit is not None and not isinstance(schema.unit, Unit):
        return [*faults, f"Expected unit to be a Unit, got {shown(schema.unit)}."]
    if schema.unit is not None and schema.unit.column not in schema.columns:
        faults.append(
            f"Expected the unit's column among the columns, got {schema.unit.column!r}. Add it with kind: identifier."
        )
    elif schema.unit is not None and isinstance(schema.columns[schema.unit.column], Open):
        faults.append(
            f"Expected the unit's column declared, got {schema.unit.column!r} open. Declare kind: identifier."
        )
    if not faults and schema.weight is not None:
        faults += weight_faults(schema, schema.weight)
    faults += _long_faults(schema)
    if not faults and schema.unit is not None and schema.unit.linked:
        tree = schema.tree
        faults += linked_faults(schema, schema.unit) if tree is None else database_faults(schema, tree)
    if not faults:
        faults += pair_faults(schema)
    if not faults and not schema.released:
        faults.append("Expected at least one column to release, got none. Declare one.")
    return faults


def _long_faults(schema: SchemaFacts) -> list[str]:
    """Return the faults of sets that lie in a table of one row per item."""
    faults = []
    for name, kind in schema.of_kind(ItemSet).items():
        if kind.id is None:
            continue
        if kind.id not in schema.columns or schema.columns[kind.id].is_released:
            faults.append(f"Column {name!r}: expected id to name a column of kind identifier, got id={kind.id!r}.")
        if schema.unit is not None:
            faults.append(
                f"Column {name!r}: expected no unit beside id, got both. All rows of one id are one record; declare as "
                "id what is to be protected."
            )
        elif schema.released != (name,):
            faults.append(
                f"Column {name!r}: expected no other column to release in a table of one row per item. Leave the "
                "others out, or store the sets as a list column."
            )
    return faults


def rows_faults(rows: object) -> list[str]:
    """Return the faults of the public number of rows."""
    try:
        if rows is not None:
            count(rows, "rows")
    except SchemaError as error:
        return [str(error)]
    return []


def draft_faults(draft: object) -> list[str]:
    """Return the faults of `draft`."""
    if draft is True or draft is False:
        return []
    return [f"Expected draft to be true or false, got {shown(draft)}. Take it out where the facts are public."]


def tokens(missing: object, faults: list[str], column: str | None = None) -> tuple[str, ...]:
    """Return the texts that stand for no value, each once, or note what is wrong with them."""
    if isinstance(missing, str) or not isinstance(missing, (list, tuple)):
        where = "" if column is None else f" of column {column!r}"
        faults.append(f"Expected missing{where} to be a list of texts, got {shown(missing)}.")
        return ()
    return tuple(dict.fromkeys(label_text("missing", token, faults) for token in missing))


def word_faults(columns: Mapping[str, ColumnKind], missing: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the faults of words beside numbers: among texts for no value, or with a column called as theirs."""
    faults = []
    for name, kind in columns.items():
        words: tuple[str, ...] = getattr(kind, "words", ())
        if (word := no_word(words, missing[name])) is not None:
            faults.append(
                f"Column {name!r}: expected words among atoms that stand for a value, got {word!r}, which is among the "
                "texts for no value (`missing`). Take it out of one of the two."
            )
        if words and word_name(name) in columns:
            faults.append(
                f"Expected the words of {name!r} to have the name {word_name(name)!r} as a column, got another column "
                "of that name. Rename it."
            )
    return faults


def unknown_keys(entry: Mapping[Any, Any], known: tuple[str, ...], where: str) -> list[str]:
    """Return a fault for each key that is not known."""
    return [
        f"Expected the keys {', '.join(known)} in {where}, got {shown(key)}. Correct it.{did_you_mean(key, known)}"
        for key in entry
        if key not in known
    ]


def refuse(faults: list[str]) -> None:
    """Raise all faults together.

    Raises:
        SchemaError: there are some.
    """
    if len(faults) == 1:
        raise SchemaError(faults[0])
    if faults:
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise SchemaError(f"Expected a schema without faults, got {len(faults)}:\n{lines}")


def criteria_faults(criteria: Iterable[Criterion], schema: SchemaFacts) -> list[str]:
    """Return the faults of criteria that ask for more than a schema, sound by itself, has."""
    criteria, faults = tuple(criteria), []
    if not all(isinstance(criterion, Criterion) for criterion in criteria):
        return ["Expected accept to hold criteria, got something else. `read_criteria` makes them of plain values."]
    if len(set(criteria)) < len(criteria):
        faults.append("Expected each criterion of accept once, got one twice.")
    released = {*schema.of_kind(TabularKind), *schema.open} if criteria else set()
    for criterion in criteria:
        what = f"accept, {criterion.words}"
        unknown = next((name for name in criterion.columns if name not in released), None)
        if unknown is not None:
            faults.append(f"Expected columns of {what}, to be released columns of a table, got {unknown!r}.")
        if criterion.target is not None and criterion.target not in schema.open:
            faults += _target_faults(criterion, schema, what)
        if criterion.kind == "rules_broken" and not getattr(schema, "rules", ()):
            faults.append(f"Expected rules in the schema for {what}, got none. State rules, or take it out.")
        if criterion.finding is not None:
            faults += _finding_faults(criterion.finding, schema, what)
    return faults


def _finding_faults(finding: str, schema: SchemaFacts, what: str) -> list[str]:
    try:
        question = read_question(finding)
    except SchemaError as error:
        return [f"In {what}: {error}"]
    if question.form not in FORMULAS:
        return [f"Expected one of {', '.join(FORMULAS)} in {what}, got {question.form}."]
    return question_faults(schema, [question])


def _target_faults(criterion: Criterion, schema: SchemaFacts, what: str) -> list[str]:
    kind = schema.of_kind(LevelKind).get(str(criterion.target))
    if kind is None:
        return [f"Expected the target of {what}, to be a categorical, ordinal or boolean column that is released."]
    if criterion.positive is None and kind.n_categories != 2:
        return [f"Expected positive in {what}, whose target has other than two classes: the class to tell apart."]
    if criterion.positive is not None and criterion.positive not in kind.labels:
        return [f"Expected positive of {what}, to be a label of the target."]
    if len(schema.released) < 2:
        return [f"Expected another column than the target of {what}, to predict it from, got none."]
    return []


def weight_faults(schema: SchemaFacts, weight: Weight) -> list[str]:
    """Return the faults of a schema's weight."""
    name = weight.column
    if name not in schema.columns:
        return [f"Expected the weight's column among the columns, got {name!r}. Add it."]
    kind = schema.columns[name]
    if not isinstance(kind, Integer | Continuous | Identifier):
        return [f"Expected the weight's column {name!r} to be a declared column of numbers, got {kind.name}."]
    faults = []
    if not isinstance(kind, Identifier) and kind.words:
        faults.append(f"Expected numbers alone in the weight's column {name!r}, got words. Take them out of its atoms.")
    if isinstance(kind, Identifier) and weight.upper is None:
        faults.append(f"Expected a public bound for the weight {name!r}, got none. Say {{column: {name}, upper: 20}}.")
    elif weight.upper is None and not kind.upper > 0:  # type: ignore[union-attr]
        faults.append(f"Expected an upper bound above 0 for the weight {name!r}, got {kind.upper}.")  # type: ignore[union-attr]
    elif weight.upper is None and not LEAST <= kind.upper <= MOST:  # type: ignore[union-attr]
        faults.append(
            f"Expected an upper bound between {LEAST:g} and {MOST:g} for the weight {name!r}, got {kind.upper}."  # type: ignore[union-attr]
        )
    if schema.unit is not None and schema.unit.column == name:
        faults.append(f"Expected the weight and the unit in two columns, got {name!r} for both.")
    rest = [kind for column, kind in schema.columns.items() if column != name and kind.is_released]
    if any(isinstance(kind, Image) for kind in rest) or (rest and all(isinstance(kind, ItemSet) for kind in rest)):
        faults.append("Expected a weight beside columns of labels, numbers or dates, got images, or sets alone.")
    return faults


def require_free(schema: SchemaFacts, plan: RulePlan) -> None:
    """Refuse rules that compute what links rows, or put it behind another column; in a tree, rules of no one row.

    Raises:
        SchemaError: names the column or the rule.
    """
    unit, tree = schema.unit, schema.tree
    if unit is None or not unit.linked:
        return
    branches = {} if tree is None else {branch.name: branch for branch in tree.branches}
    for place, names in enumerate(plan.columns, 1) if tree is not None else ():
        assert tree is not None
        crossing = tree.crossing(schema.rules[place - 1], schema.table_columns)
        home = tree.home(names, schema.table_columns) if crossing is None else crossing.branch
        within = branches[home].order if home in branches and branches[home].within is not None else None
        total = next((name for name in names if name in tree.totals), None)
        if total is not None:
            raise SchemaError(f"Expected rule {place} without totals of rows below, got {total!r}. Take it out.")
        if not home or within in names:
            lone = "of one table and those above it, or an order of two columns"
            what = lone if not home else f"other than {within!r}, as `within` says it"
            raise SchemaError(f"Expected rule {place} to be over columns {what}, got others. Take it out.")
    sources = {later: {later, earlier} for later, earlier in plan.gaps.items()}
    for name, columns in (sources | {name: {*rule.columns} for name, rule in plan.follows.items()}).items():
        branch = None if tree is None else branches.get(tree.home(columns, schema.table_columns))
        varies = name not in unit.constant if branch is None else name in branch.columns
        if not varies or name == (unit.order if branch is None else branch.order):
            raise SchemaError(
                f"Expected rules that leave the constants and the order of linked rows as they are, got one by which "
                f"{name!r} follows from another column. Turn it round, or take it out."
            )
