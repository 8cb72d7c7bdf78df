"""XML from strangers: read without document types, hence without entities, files or addresses that they could name."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from sfumato.errors import SchemaError
from sfumato.schema.documents import read_text

_DEEPEST = 100
_MOST_PARTS = 4_000_000  # elements and attributes: about 750 MiB while they are read


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
