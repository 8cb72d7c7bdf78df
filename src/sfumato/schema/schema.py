"""Schemas: what is publicly known about a table before any record is read.

A schema file is YAML or JSON:

    rows: 45000                  # nominal size, publicly known
    unit: {column: person, max_rows: 5}
    columns:
      person: {kind: identifier}
      age: {kind: integer, lower: 0, upper: 120}
      sex: {kind: categorical, categories: [female, male], other: unknown, nullable: true}
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, get_args

from sfumato.columns.facts import label_text, plain_value, shown
from sfumato.columns.kinds import KINDS, ColumnKind, Identifier, Image, ItemSet, is_kind, kind_class, kind_names
from sfumato.columns.open import Open, OpenKind
from sfumato.entry_points import is_package
from sfumato.errors import ConfigError, SchemaError
from sfumato.io.csv_form import CsvOutput
from sfumato.rules import RulePlan
from sfumato.schema.accept import Criterion, criteria_faults, criteria_of
from sfumato.schema.code_lists import has_reference
from sfumato.schema.documents import json_text, read_document, write_text, yaml_text
from sfumato.schema.reader import Reader, csv_output, read_reader
from sfumato.schema.references import with_references
from sfumato.schema.ruled import modelled, plain_rules, rule_plan
from sfumato.schema.sources import FactSource, frozen, pop_source, sources_faults, thawed

MISSING_TOKENS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Text that stands for no value, unless a schema says otherwise."""

K = TypeVar("K", bound=ColumnKind)

_KEYS = ("draft", "rows", "unit", "missing", "reader", "source", "columns", "rules", "accept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Whom the guarantee protects, where that is not the row.

    Attributes:
        column: the column that says whose a row is; it is never released.
        max_rows: the most rows of one unit that are used.

    Example:
        >>> from sfumato.columns import Identifier, Integer
        >>> columns = {"patient": Identifier(), "days": Integer(lower=0, upper=365)}
        >>> Schema(columns=columns, unit=Unit(column="patient", max_rows=3)).protects
        {'name': 'patient', 'max_rows': 3}
    """

    column: str
    max_rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(f"Expected unit to name a column, got column={shown(self.column)}.")
        object.__setattr__(self, "max_rows", _count(self.max_rows, "max_rows of unit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The public description of a table: its columns in order, and its nominal size.

    Attributes:
        columns: the kind of each column, in the order in which columns are written.
        rows: the size that may be assumed publicly, or None if it is stated elsewhere.
        unit: whom the guarantee protects; None means the row.
        missing: text that stands for no value, in columns stored as text.
        draft: whether the facts were read off the records, as `sfumato schema draft` does: fits refuse it.
        sources: of some columns, where their facts come from: law, codebook, standard, discovered or data, or one of
            these per fact. `data` is refused as a draft is.
        table_source: the same of `rows` and `unit`.
        reader: how numbers are written as text, and the form of a CSV file.
        rules: what every row keeps, as a schema file has them: see `docs/rules.md`. Public, and kept in every sampled
            row.
        accept: what a release has to satisfy, judged on the records by `tune`.

    Example:
        >>> from sfumato.columns import Boolean, Integer
        >>> schema = Schema(columns={"age": Integer(lower=0, upper=120), "member": Boolean()}, rows=10_000)
        >>> schema.released
        ('age', 'member')
        >>> schema.to_dict()["columns"]["age"]
        {'kind': 'integer', 'lower': 0, 'upper': 120}
    """

    columns: Mapping[str, ColumnKind]
    rows: int | None = None
    unit: Unit | None = None
    missing: tuple[str, ...] = field(default=MISSING_TOKENS)
    draft: bool = False
    sources: Mapping[str, FactSource] = field(default_factory=dict)
    table_source: Mapping[str, str] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)
    rules: tuple[Mapping[str, Any], ...] = ()
    accept: tuple[Criterion, ...] = ()

    def __post_init__(self) -> None:
        faults = _column_faults(self.columns)
        missing = _tokens(self.missing, faults)
        faults += _draft_faults(self.draft)
        faults += _table_faults(self)
        faults += [] if faults else sources_faults(self)
        if not isinstance(self.reader, Reader):
            faults.append(f"Expected reader to be a Reader, got {shown(self.reader)}.")
        accept = criteria_of(self.accept, faults)
        faults += [] if faults else criteria_faults(accept, self)
        _refuse(faults)
        object.__setattr__(self, "accept", accept)
        columns = {name: self.reader.resolved(kind, name) for name, kind in self.columns.items()}
        object.__setattr__(self, "sources", frozen(self.sources))
        object.__setattr__(self, "table_source", MappingProxyType(dict(self.table_source)))
        object.__setattr__(self, "columns", MappingProxyType(columns))
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "rows", plain_value(self.rows))
        object.__setattr__(self, "rules", plain_rules(self.rules))
        _ = self.rule_plan  # faults of rules are told here

    def __reduce__(self) -> tuple[Any, ...]:
        rest = (self.draft, thawed(self.sources), dict(self.table_source), self.reader, self.rules, self.accept)
        return _rebuilt, (dict(self.columns), self.rows, self.unit, self.missing, *rest)

    @property
    def released(self) -> tuple[str, ...]:
        """The columns a release holds: all but identifiers and the column of the unit."""
        hidden = self.unit.column if self.unit else None
        return tuple(name for name, kind in self.columns.items() if name != hidden and kind.is_released)

    def of_kind(self, kind: type[K]) -> dict[str, K]:
        """The released columns of a kind, or of a family of kinds, in order."""
        released = {name: self.columns[name] for name in self.released}
        return {name: column for name, column in released.items() if isinstance(column, kind)}

    @property
    def images(self) -> tuple[str, ...]:
        """The released columns that hold images."""
        return tuple(self.of_kind(Image))

    @property
    def open(self) -> dict[str, OpenKind]:
        """The released columns whose facts a fit buys, and what is declared of their kinds."""
        return {name: kind.kind for name, kind in self.of_kind(Open).items()}

    @property
    def rule_plan(self) -> RulePlan | None:
        """The rules, read against the columns; None without any."""
        return rule_plan(self)

    @property
    def modelled(self) -> Schema:
        """The schema of what is measured and modelled: what rules leave free; this one without rules."""
        return modelled(self)

    @property
    def csv_output(self) -> CsvOutput:
        """How samples are written as CSV."""
        return csv_output(self.columns, self.reader)

    def narrowest(self) -> Schema:
        """Return the schema with the least that can be found for its open columns."""
        found = {name: kind.narrowest for name, kind in self.of_kind(Open).items()}
        return dataclasses.replace(self, columns={**self.columns, **found})

    @property
    def nominal(self) -> Schema:
        """This schema, as `OpenSchema` had it beside its open columns.

        Deprecated: a schema holds its open columns itself.
        """
        warnings.warn("Schema.nominal is the schema itself, and will go with a later version.", DeprecationWarning, 2)
        return self

    @property
    def written(self) -> tuple[str, ...]:
        """The columns of samples: the released ones, and before a set of a long table the column `id`."""
        return (*self._ids, *self.released)

    @property
    def _ids(self) -> list[str]:
        """The columns of long tables that say whose set a row belongs to."""
        return [kind.id for kind in self.of_kind(ItemSet).values() if kind.id is not None]

    @property
    def protects(self) -> dict[str, Any]:
        """Whom the guarantee protects, as certificates and ledgers name it: a row, a unit, or an id of a long table."""
        if self.unit is not None:
            return {"name": self.unit.column, "max_rows": self.unit.max_rows}
        return {"name": next(iter(self._ids), "row"), "max_rows": 1}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: str | Path | None = None) -> Schema:
        """Build a schema from plain values, as a schema file holds them.

        Args:
            document: the values.
            base: the folder that files of categories are relative to.

        Raises:
            SchemaError: names every fault that was found, with the column it is in.

        Example:
            >>> Schema.from_dict({"rows": 500, "columns": {"age": {"kind": "integer", "lower": 0, "upper": 120}}}).rows
            500
        """
        schema = read_open(with_references(document, base))
        require_closed(schema)
        return schema

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values; what has its default is left out."""
        document: dict[str, Any] = {"draft": True} if self.draft else {}
        if self.rows is not None:
            document["rows"] = self.rows
        if self.unit is not None:
            document["unit"] = dataclasses.asdict(self.unit)
        if self.missing != MISSING_TOKENS:
            document["missing"] = list(self.missing)
        if reader := self.reader.to_dict():
            document["reader"] = reader
        if self.table_source:
            document["source"] = dict(self.table_source)
        document["columns"] = {name: self.reader.entry_of(kind) for name, kind in self.columns.items()}
        for name, source in thawed(self.sources).items():
            document["columns"][name]["source"] = source
        if self.rules:
            document["rules"] = [dict(rule) for rule in self.rules]
        if self.accept:
            document["accept"] = [criterion.to_dict() for criterion in self.accept]
        return document

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a YAML or JSON file.

        Raises:
            SchemaError: the file cannot be read, or holds faults; every one is named.
        """
        return cls.from_dict(read_document(path), base=Path(path).parent)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the schema to a file: JSON if its name ends in `.json`, else YAML.

        Raises:
            OutputError: the file exists and may not be replaced, or cannot be written.
        """
        form = json_text if Path(path).suffix.lower() == ".json" else yaml_text
        write_text(path, form(self.to_dict()), overwrite=overwrite)


def read_open(document: Mapping[str, Any]) -> Schema:
    """Build a schema from plain values, in which columns may be left open.

    Raises:
        SchemaError: names every fault that was found, with the column it is in.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("columns"), Mapping):
        raise SchemaError(
            "Expected a schema: a mapping with `columns`, from column names to their kinds. "
            "`sfumato schema draft` writes a first one."
        )
    faults = _unknown_keys(document, _KEYS, "the schema")
    reader, document = read_reader(document, faults)
    columns: dict[str, ColumnKind] = {}
    sources: dict[str, Any] = {}
    for key, entry in document["columns"].items():
        name = label_text("a column name", key, faults) if not isinstance(key, str) else key
        kind = _read_kind(name, entry, faults, sources)
        if name in columns:
            faults.append(f"Expected each column once, got {name!r} twice.")
        if kind is not None:
            columns[name] = kind
    unit = _read_unit(document.get("unit"), faults)
    if unit is not None and getattr(columns.get(unit.column), "name", None) == Open.name:
        columns[unit.column] = Identifier()  # nothing of it is released, hence nothing is bought
    rest = {"rows": document.get("rows"), "missing": document.get("missing", MISSING_TOKENS)}
    rest |= {"draft": document.get("draft", False), "table_source": document.get("source", {})}
    rest |= {"rules": document.get("rules", ())}
    rest["accept"] = criteria_of(document.get("accept", ()), faults)
    if faults:  # faults of the table as a whole are worth telling in the same breath
        rest["missing"] = _tokens(rest["missing"], faults)
        faults += [*_rows_faults(rest["rows"]), *_draft_faults(rest["draft"])]
    _refuse(faults)
    return Schema(columns=columns, unit=unit, sources=sources, reader=reader, **rest)


def require_closed(schema: Schema) -> None:
    """Refuse a schema that leaves a column open.

    Raises:
        SchemaError: names the column.
    """
    if schema.open:
        raise SchemaError(
            f"Expected a schema that declares every column, got `discover` for {shown(next(iter(schema.open)))}. Fits "
            "buy what is left open; here it has to be declared."
        )


def release_schema(document: Mapping[str, Any]) -> Schema:
    """Build a schema from a release, which names the package of every kind that is not ours: no other is imported.

    Raises:
        SchemaError: names every fault that was found, with the column it is in.
    """
    columns = document.get("columns") if isinstance(document, Mapping) else None
    for name, entry in columns.items() if isinstance(columns, Mapping) else ():
        if has_reference(entry):  # to one of our own files
            raise SchemaError(f"Column {name!r}: expected the labels themselves in a release, got a reference.")
        label = entry.get("kind") if isinstance(entry, Mapping) else entry
        if label not in KINDS and not (isinstance(entry, Mapping) and isinstance(entry.get("package"), str)):
            raise SchemaError(
                f"Column {name!r}: expected one of the kinds {', '.join(KINDS)}, or the package of another, got "
                f"kind={shown(label)}. The release may be of a newer version: upgrade Sfumato."
            )
    schema = read_open(document)
    require_closed(schema)
    return schema


SchemaLike: TypeAlias = Schema | str | os.PathLike[str]
"""A schema, or the path of its file."""


def read_schema(schema: SchemaLike) -> Schema:
    """Return a schema itself, or read it from its file.

    Raises:
        ConfigError: it is neither.
        SchemaError: the file cannot be read, or holds faults.
    """
    if isinstance(schema, Schema):
        require_closed(schema)
        return schema
    if not isinstance(schema, str | os.PathLike):
        raise ConfigError(
            f"Expected schema to be a Schema or the path of a schema file, got {type(schema).__name__}. "
            "Schema.from_dict makes one of a mapping."
        )
    return Schema.load(Path(schema))


def _rebuilt(
    columns: dict[str, ColumnKind],
    rows: int | None,
    unit: Unit | None,
    missing: tuple[str, ...],
    draft: bool = False,
    sources: Mapping[str, FactSource] = MappingProxyType({}),
    table_source: Mapping[str, str] = MappingProxyType({}),
    reader: Reader | None = None,
    rules: tuple[Mapping[str, Any], ...] = (),
    accept: tuple[Criterion, ...] = (),
) -> Schema:
    rest = {"draft": draft, "sources": sources, "table_source": table_source, "reader": reader or Reader()}
    rest |= {"rules": rules, "accept": accept}
    return Schema(columns=columns, rows=rows, unit=unit, missing=missing, **rest)  # type: ignore[arg-type]


def _read_kind(name: str, entry: object, faults: list[str], sources: dict[str, Any]) -> ColumnKind | None:
    """Return the kind of one entry under `columns`, or note every fault in it; its `source` joins `sources`."""
    if isinstance(entry, str):
        entry = {"kind": entry}
    if isinstance(entry, Mapping) and "discover" in entry:
        return _read_open_kind(name, pop_source(entry, sources, name), faults)
    label = entry.get("kind") if isinstance(entry, Mapping) else None
    try:
        kind: Any = kind_class(label, entry.get("package")) if isinstance(entry, Mapping) else None
    except (ConfigError, SchemaError) as error:  # of a package that is not ours
        faults.append(f"Column {name!r}: {error}")
        return None
    if kind is None or not isinstance(entry, Mapping):
        if isinstance(entry, Mapping) and is_package(entry.get("package")):
            package = entry["package"]
            faults.append(
                f"Column {name!r}: expected the kind {shown(label)} of the package {package}, got no such kind. If you "
                f"trust it, install it (pip install {package}): it can run any code."
            )
            return None
        got = f"kind={shown(label)}" if isinstance(entry, Mapping) else shown(entry)
        faults.append(f"Column {name!r}: expected kind to be one of {', '.join(kind_names())}, got {got}.")
        return None
    known = dataclasses.fields(kind)
    entry = pop_source(entry, sources, name, [fact.name for fact in known])
    package = () if label in KINDS else ("package",)
    found = _unknown_keys(entry, ("kind", *package, *(fact.name for fact in known)), f"kind {label}")
    found += [
        f"Expected {fact.name} for kind {label}, got none. Add it."
        for fact in known
        if fact.default is dataclasses.MISSING and fact.name not in entry
    ]
    if not found:
        try:
            return kind(**{key: value for key, value in entry.items() if key not in ("kind", *package)})
        except SchemaError as error:
            found = [str(error)]
    faults += [f"Column {name!r}: {fault}" for fault in found]
    return None


def _read_open_kind(name: str, entry: Mapping[Any, Any], faults: list[str]) -> Open | None:
    kinds = get_args(OpenKind)
    also = {"written", "format", "resolution"}
    if entry["discover"] is True and set(entry) - also == {"kind", "discover"} and entry["kind"] in kinds:
        try:
            return Open(**{key: value for key, value in entry.items() if key != "discover"})
        except SchemaError as error:
            faults.append(f"Column {name!r}: {error}")
            return None
    faults.append(
        f"Column {name!r}: expected `discover: true` beside a kind of {', '.join(kinds)}, and nothing else but, of "
        "numbers, written, and of dates, format and resolution. What is known of the column is declared without "
        "discovery."
    )
    return None


def _read_unit(entry: object, faults: list[str]) -> Unit | None:
    if entry is None:
        return None
    if not isinstance(entry, Mapping) or set(entry) != {"column", "max_rows"}:
        faults.append("Expected unit to hold column and max_rows, such as {column: person, max_rows: 5}.")
        return None
    try:
        return Unit(column=entry["column"], max_rows=entry["max_rows"])
    except SchemaError as error:
        faults.append(str(error))
    return None


def _column_faults(columns: Mapping[str, ColumnKind]) -> list[str]:
    if not isinstance(columns, Mapping):
        return [f"Expected columns to map names to kinds, got {shown(columns)}."]
    faults: list[str] = []
    for name, kind in columns.items():
        if not isinstance(name, str) or not name or not _is_unicode(name):
            faults.append(f"Expected column names to be text, got {shown(name)}.")
        if not is_kind(kind):
            faults.append(f"Column {name!r}: expected a column kind, got {shown(kind)}.")
    return faults


def _table_faults(schema: Schema) -> list[str]:
    faults = _rows_faults(schema.rows)
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
    faults += _long_faults(schema)
    if not faults and not schema.released:
        faults.append("Expected at least one column to release, got none. Declare one.")
    return faults


def _long_faults(schema: Schema) -> list[str]:
    """Return what is wrong with sets that lie in a table of one row per item."""
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


def _rows_faults(rows: object) -> list[str]:
    try:
        if rows is not None:
            _count(rows, "rows")
    except SchemaError as error:
        return [str(error)]
    return []


def _draft_faults(draft: object) -> list[str]:
    if draft is True or draft is False:
        return []
    return [f"Expected draft to be true or false, got {shown(draft)}. Take it out where the facts are public."]


def _tokens(missing: object, faults: list[str]) -> tuple[str, ...]:
    if isinstance(missing, str) or not isinstance(missing, (list, tuple)):
        faults.append(f"Expected missing to be a list of texts, got {shown(missing)}.")
        return ()
    return tuple(dict.fromkeys(label_text("missing", token, faults) for token in missing))


def _unknown_keys(entry: Mapping[Any, Any], known: tuple[str, ...], where: str) -> list[str]:
    return [
        f"Expected the keys {', '.join(known)} in {where}, got {shown(key)}. Remove or correct it."
        for key in entry
        if key not in known
    ]


def _count(value: object, name: str) -> int:
    value = plain_value(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SchemaError(f"Expected {name} to be a whole number of at least 1, got {shown(value)}.")
    return value


def _is_unicode(text: str) -> bool:
    return text.isascii() or text == text.encode("utf-8", "replace").decode()


def _refuse(faults: list[str]) -> None:
    if len(faults) == 1:
        raise SchemaError(faults[0])
    if faults:
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise SchemaError(f"Expected a schema without faults, got {len(faults)}:\n{lines}")
