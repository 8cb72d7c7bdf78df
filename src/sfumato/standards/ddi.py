"""Schemas from DDI Codebook 2.5, the XML of data archives.

XML of strangers is read without document types, hence without entities, files or addresses that they could name.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from sfumato.errors import SchemaError
from sfumato.schema.documents import read_text
from sfumato.schema.schema import Schema
from sfumato.standards.variable_lists import CODEBOOK
from sfumato.standards.variables import Variable, number_of, schema_of

_DEEPEST = 100
_MOST_PARTS = 4_000_000  # elements and attributes: about 750 MiB while they are read
_DATES = {"date", "dateTime", "time"}


def read_xml(path: str | Path) -> Element:
    """Return the root of an XML file; names of elements come without their namespaces.

    Raises:
        SchemaError: the file cannot be read, is not well formed, nests too deep, is too large, or declares a document
            type.
    """
    text = read_text(Path(path))
    reason = ""
    try:
        return _parsed(text)
    except _RefusedError as refused:
        reason = str(refused)
    except expat.ExpatError as error:
        reason = f"a mistake at line {error.lineno}, column {error.offset + 1}"
    except (ParseError, ValueError):
        reason = "a value that cannot be read"
    raise SchemaError(
        f"Expected {path} to be well-formed XML without a document type, got: {reason}. Correct the file."
    )


class _RefusedError(Exception):
    """A document has something that no description of a table needs."""


def _parsed(text: str) -> Element:
    if text.count("<") + text.count("=") > _MOST_PARTS:
        raise _RefusedError(f"more than {_MOST_PARTS:,} elements and attributes")
    builder, depth = TreeBuilder(), 0
    parser = expat.ParserCreate(namespace_separator="\n")
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise _RefusedError("nesting too deep")
        builder.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_local(name))

    def refuse(*_: object) -> None:
        raise _RefusedError("a document type (DOCTYPE), which could name entities")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.Parse(text.encode(), True)  # the declaration may name another encoding; ours is UTF-8
    return builder.close()


def _local(name: str) -> str:
    return name.rsplit("\n", 1)[-1]


def from_ddi(path: str | Path, *, table: str | None = None) -> Schema:
    """Read the variables of a DDI codebook: valid ranges and categories; frequencies and statistics are not read.

    `catgry` gives labels, those with `missing="Y"` and `invalrng` missing tokens, `valrng` bounds. Categories of a
    continuous variable that are not missing do not make it one of labels.

    Args:
        path: the XML file.
        table: the ID of a file of the study (`fileDscr`), where it has several.

    Raises:
        SchemaError: the file cannot be read, declares a document type, or describes no variable.
    """
    root = read_xml(path)
    variables = list(root.iter("var"))
    if root.tag != "codeBook" or not variables:
        raise SchemaError(f"Expected {path} to be a DDI codebook with variables, got {root.tag!r} of none.")
    files = list(dict.fromkeys(name for variable in variables for name in variable.get("files", "").split()))
    if len(files) > 1 or table is not None:
        if table not in files:
            raise SchemaError(f"Expected table (--table) to be one of {', '.join(map(repr, files))}, got {table!r}.")
        variables = [variable for variable in variables if table in variable.get("files", "").split()]
    return schema_of([_variable(variable, path) for variable in variables], CODEBOOK, path)


def _variable(variable: Element, path: object) -> Variable:
    name = variable.get("name", "")
    if not name:
        raise SchemaError(f"Expected every variable of {path} to have a name, got one without.")
    values = (item.get("VALUE") or item.get("value") or "" for item in variable.findall("invalrng/item"))
    labels, missing = [], [value.strip() for value in values]
    for category in variable.findall("catgry"):
        value = (category.findtext("catValu") or "").strip()
        if category.get("missing") == "Y" or value in missing:
            missing.append(value)
        elif value:
            labels.append(value)
    bounds = variable.find("valrng/range")
    lower, upper = (None, None) if bounds is None else (bounds.get("min"), bounds.get("max"))
    form_element = variable.find("varFormat")
    form = _form(form_element, lower, upper)
    continuous = variable.get("intrvl") == "contin" and lower is not None and upper is not None
    tokens = [token for token in missing if token]
    return Variable(name, form, lower, upper, [] if continuous else labels, nullable=True, missing=tokens)


def _form(form_element: Element | None, lower: str | None, upper: str | None) -> str:
    category = "" if form_element is None else form_element.get("category", "")
    if category in _DATES:
        return "datetime"
    if form_element is not None and form_element.get("type") == "character":
        return "text"
    if lower is None or upper is None:
        return "text" if form_element is None else "number"
    bounds = map(number_of, (lower, upper))  # the second is read where the first is whole
    return "integer" if all(bound == bound.to_integral_value() for bound in bounds) else "number"
