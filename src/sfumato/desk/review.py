"""The questions of a review: at most ten, on the facts of a schema that are most worth checking.

    the unit, what names people, long lists, bounds, columns left open, texts for no value, whether facts are public

They are made of the schema alone: no record is read. Answers change the document that the schema was read from, so that
what it says in short stays short.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.columns.facts import shown
from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, DateTime, Identifier, Integer, ItemSet, Ordinal
from sfumato.columns.open import Open
from sfumato.columns.roles import names_people, role_of
from sfumato.errors import SchemaError
from sfumato.rules.rule_entries import numeric_columns
from sfumato.schema.schema import Schema

MOST_QUESTIONS = 10
KEEP = "keep"
"""The answer that changes nothing, which is also that to a question without an answer."""

_LONG = 30  # labels that nobody reads one by one
_MOST_SHOWN = 12
_TO = " to "

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about a schema.

    Attributes:
        key: what answers call it: `unit`, `missing`, `public`, `table NAME` or `column NAME`.
        text: the question, with the answers it takes.
        now: what the schema says, as an answer would.
        apply: writes an answer into a document; raises SchemaError.
    """

    key: str
    text: str
    now: str
    apply: Callable[[Document, str], None]


def questions(schema: Schema, document: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions about a schema, at most ten, the most important first; of a draft, the last is `public`.

    Privacy: reads no record. What a draft says was read off records: the questions are for the holder's own screen.

    Args:
        schema: the schema, drafted or not, as it is read from the document.
        document: its plain values. Columns that it holds as a part of a range are not asked about.

    Example:
        >>> from sfumato import Schema
        >>> document = {"draft": True, "columns": {"age": {"kind": "integer", "lower": 17, "upper": 90}}}
        >>> [question.key for question in questions(Schema.from_dict(document), document)]
        ['unit', 'column age', 'missing', 'public']
    """
    written = {name: kind for name, kind in schema.columns.items() if name in document["columns"]}
    last = [_missing(schema), *([_public()] if schema.draft else [])]
    others = [*_unit(schema, written), *_tables(document), *_columns(written, schema, document)]
    return (*others[: MOST_QUESTIONS - len(last)], *last)


def with_answers(document: Mapping[str, Any], known: tuple[Question, ...], answers: Mapping[str, str]) -> Document:
    """Return a document with answers written into it; what has no answer stays as it is.

    Raises:
        SchemaError: an answer is to no question, or is none that its question takes.
    """
    by_key = {question.key: question for question in known}
    changed = copy.deepcopy(dict(document))
    for key, answer in answers.items():
        if key not in by_key:
            raise SchemaError(
                f"Expected answers to {', '.join(map(repr, by_key))}, got one to {shown(key)}. Remove it."
            )
        if answer.strip() != KEEP:
            by_key[key].apply(changed, answer.strip())
    if isinstance(rules := changed.get("rules"), list):
        kinds = {name: e.get("kind") if isinstance(e, Mapping) else e for name, e in changed["columns"].items()}
        hidden = {name for name, kind in kinds.items() if kind == Identifier.name}  # left out of releases, so of rules
        changed["rules"] = [rule for rule in rules if not hidden.intersection(numeric_columns(rule))]
    return changed


def _unit(schema: Schema, written: Mapping[str, ColumnKind]) -> Iterator[Question]:
    """Ask whom the guarantee protects; where nothing is an identifier yet, any column that is written may become it."""
    hidden = [name for name, kind in schema.columns.items() if isinstance(kind, Identifier)]
    hidden.sort(key=lambda name: role_of(name) not in ("person", "household"))  # what names a person comes first
    names = hidden or list(written)
    if schema.database or any(kind.id is not None for kind in schema.of_kind(ItemSet).values()):
        return
    now = "row" if schema.unit is None else f"{schema.unit.column}{_TO}{schema.unit.max_rows}"

    def apply(document: Document, answer: str) -> None:
        column, _, rows = answer.rpartition(_TO)
        if answer == "row":
            document.pop("unit", None)
        elif column in names and rows.isdecimal():
            facts = {} if schema.unit is None or schema.unit.column != column else schema.unit.to_dict()
            document["unit"] = {**facts, "column": column, "max_rows": int(rows)}
            if column not in hidden:
                document["columns"][column] = Identifier.name
        else:
            raise _refusal("unit", f"`row`, or a column and its most rows, such as `{names[0]}{_TO}5`", answer)
        forget_source(document, "unit")

    text = (
        f"Whom is the guarantee to protect? `row`: each row is another person. `COLUMN{_TO}N`: all rows with the same "
        f"COLUMN are one person, of whom at most N are used. "
    )
    text += (
        f"COLUMN is one of {', '.join(names[:_MOST_SHOWN])}."
        if hidden
        else "COLUMN is any column, and is then not released."
    )
    yield Question(key="unit", text=text, now=now, apply=apply)


def _tables(document: Mapping[str, Any]) -> Iterator[Question]:
    """Ask for the most rows of each table below another one."""
    for name, entry in document.get("tables", {}).items():
        if "of" in entry:
            yield _most_rows(name, entry)


def _most_rows(name: str, entry: Mapping[str, Any]) -> Question:
    def apply(document: Document, answer: str) -> None:
        if not answer.isdecimal():
            raise _refusal(f"table {name}", "a number, such as `5`", answer)
        document["tables"][name] = {**entry, "max_rows": int(answer)}

    text = (
        f"How many rows of {name!r} may one row of {entry['of']!r} have, whoever is in the data? `N`: rows beyond it "
        "are not used. If the table is of another one, correct `of` in the file."
    )
    return Question(key=f"table {name}", text=text, now=str(entry["max_rows"]), apply=apply)


def _columns(columns: Mapping[str, ColumnKind], schema: Schema, document: Mapping[str, Any]) -> Iterator[Question]:
    """Yield the questions about columns: what names people first, then long lists, then bounds."""
    hidden = None if schema.unit is None else schema.unit.column
    kinds = {name: kind for name, kind in columns.items() if name != hidden and kind.is_released}
    people = [name for name in kinds if names_people(name)]
    yield from (_identifier(name) for name in people)
    for name, kind in kinds.items():
        if name not in people and isinstance(kind, Categorical | Ordinal) and _is_long(document["columns"][name]):
            yield _long_list(name, len(kind.categories))
    for name, kind in kinds.items():
        if name not in people and isinstance(kind, Integer | Continuous | DateTime):
            yield _bounds(name, kind)
    for name, kind in kinds.items():
        if name not in people and isinstance(kind, Open):
            yield from _open(name, kind)


def _is_long(entry: Any) -> bool:  # noqa: ANN401 - as a document has it
    """Whether an entry spells out many labels; those of a file or a named list are no facts of a draft."""
    facts = entry if isinstance(entry, Mapping) else {"categories": entry}
    labels = facts["categories"]
    return isinstance(labels, list) and len(labels) > _LONG and "parents" not in facts


def _identifier(name: str) -> Question:
    def apply(document: Document, answer: str) -> None:
        if answer == "yes":
            document["columns"][name] = Identifier.name
        elif answer != "no":
            raise _refusal(f"column {name}", "`yes` or `no`", answer)

    text = f"Does {name!r} name a person or a record? `yes`: it is not released. `no`: it stays as it is."
    return Question(key=f"column {name}", text=text, now="no", apply=apply)


def _long_list(name: str, size: int) -> Question:
    def apply(document: Document, answer: str) -> None:
        word, _, rest = answer.partition(" ")
        file, _, column = rest.rpartition("#")
        entry = document["columns"][name]
        entry = entry if isinstance(entry, Mapping) else {"kind": Categorical.name}  # a list of labels alone
        facts = {key: value for key, value in entry.items() if key in ("kind", "other", "nullable", "missing")}
        if answer == Identifier.name:
            document["columns"][name] = answer
        elif answer == "discover":
            own = {key: facts[key] for key in ("missing",) if key in facts}
            document["columns"][name] = {"kind": Categorical.name, "discover": True} | own
        elif word == "list" and rest:
            document["columns"][name] = facts | {"categories": {"list": rest}}
        elif word == "file" and file and column:
            document["columns"][name] = facts | {"categories": {"file": file, "column": column}}
        else:
            expected = "`keep`, `list NAME`, `file PATH#COLUMN`, `discover` or `identifier`"
            raise _refusal(f"column {name}", expected, answer)

    text = (
        f"{name!r} lists {size:,} labels. Is there a public list of them? `list NAME`: a named one, such as iso-4217. "
        "`file PATH#COLUMN`: a code book, beside the schema. `discover`: estimate the frequent ones. `identifier`: "
        "do not release the column. `keep`: the labels of the schema are public."
    )
    return Question(key=f"column {name}", text=text, now=KEEP, apply=apply)


def _open(name: str, kind: Open) -> Iterator[Question]:
    """Ask for facts that the fit would estimate: what is declared costs nothing."""
    least = kind.narrowest
    if kind.kind in ("integer", "continuous", "datetime") and isinstance(least, Integer | Continuous | DateTime):
        yield _bounds(name, least, is_open=True)
    elif kind.kind == "categorical":
        yield _labels(name)


def _labels(name: str) -> Question:
    def apply(document: Document, answer: str) -> None:
        labels = [label.strip() for label in answer.split(",") if label.strip()]
        word, _, rest = answer.partition(" ")
        entry = document["columns"][name]
        own = {"missing": entry["missing"]} if "missing" in entry else {}
        closed = {"kind": Categorical.name, "nullable": True} | own
        if answer == Identifier.name:
            document["columns"][name] = answer
        elif word == "list" and rest and len(labels) == 1:
            document["columns"][name] = closed | {"categories": {"list": rest}}
        elif len(labels) > 1:
            document["columns"][name] = closed | {"categories": labels}
        else:
            expected = "`keep`, two or more labels, separated by commas, `list NAME` or `identifier`"
            raise _refusal(f"column {name}", expected, answer)

    text = (
        f"Which labels may {name!r} hold? All, separated by commas; `list NAME`: a named list, such as iso-4217; "
        "`identifier`: do not release the column. `keep`: the fit estimates the frequent ones, others become `other`."
    )
    return Question(key=f"column {name}", text=text, now=KEEP, apply=apply)


def _bounds(name: str, kind: Integer | Continuous | DateTime, *, is_open: bool = False) -> Question:
    def apply(document: Document, answer: str) -> None:
        lower, separator, upper = answer.partition(_TO)
        if not separator:
            raise _refusal(f"column {name}", f"two bounds, such as `0{_TO}120`", answer)
        bounds = {"lower": _bound(lower, kind), "upper": _bound(upper, kind)}
        entry = document["columns"][name]
        # an old source is that of the old bounds
        facts = {key: value for key, value in entry.items() if key not in ("source", "discover")}
        document["columns"][name] = (
            facts | bounds | ({"nullable": True} if is_open else {})
        )  # nothing rules missing cells out

    keep = "the fit estimates them" if is_open else "those of the schema are public"
    text = (
        f"Which bounds of {name!r} are public? `LOWER{_TO}UPPER`: from the law, a questionnaire, common sense; wider "
        f"rather than narrower. `keep`: {keep}."
    )
    now = KEEP if is_open else f"{kind.lower}{_TO}{kind.upper}"
    return Question(key=f"column {name}", text=text, now=now, apply=apply)


def _bound(text: str, kind: Integer | Continuous | DateTime) -> object:
    """Return a bound as a document holds it; what is no number is left for the schema's reader to refuse."""
    if isinstance(kind, DateTime):
        return text.strip()
    for read in (int, float):
        with contextlib.suppress(ValueError):
            return read(text)
    return text.strip()


def _missing(schema: Schema) -> Question:
    def apply(document: Document, answer: str) -> None:
        document["missing"] = list(dict.fromkeys(["", *(token.strip() for token in answer.split(","))]))

    text = (
        "Which texts stand for no value? Separated by commas; empty text is always one. Of an ordinary answer that "
        "looks like one of them, such as None, write the list without it. A column with a list of its own has it under "
        "`missing` in its entry."
    )
    return Question(key="missing", text=text, now=", ".join(filter(None, schema.missing)), apply=apply)


def _public() -> Question:
    def apply(document: Document, answer: str) -> None:
        if answer == "yes":
            document.pop("draft", None)
        elif answer != "no":
            raise _refusal("public", "`yes` or `no`", answer)

    text = (
        "Is every fact of the schema, also those not asked about, known without looking at these records? `yes`: it is "
        "your word, and `draft: true` is taken out. `no`: it stays a draft, which `fit` refuses."
    )
    return Question(key="public", text=text, now="no", apply=apply)


def forget_source(document: Document, fact: str) -> None:
    """Take out where a fact of the table came from."""
    source = document.get("source")
    if isinstance(source, Mapping) and fact in source:
        rest = {key: value for key, value in source.items() if key != fact}
        document.pop("source")
        if rest:
            document["source"] = rest


def _refusal(key: str, expected: str, answer: str) -> SchemaError:
    return SchemaError(f"Expected the answer to {key!r} to be {expected}, got {shown(answer)}.")
