"""Reading and writing the YAML and JSON files that describe data.

Plain values, no objects; a key may not appear twice; and YAML without its traps: `no` stays the
text "no", an unquoted date stays text, and so does `010`; merge keys and tags are refused. How large a document becomes
is known before it is read: a file may come from a stranger.

A few lines of aliases stand for billions of values, and a few kilobytes of brackets end the process, for the parser
goes into them by recursion. Events come one at a time and need no memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from sfumato.errors import SchemaError
from sfumato.io.atomic import atomic_path, write_or_refuse
from sfumato.io.strict_json import RepeatedKeyError, TooLargeError, check_values, no_constant, unique_pairs
from sfumato.io.untrusted import UnreadableFileError, read_bounded

MOST_VALUES = 500_000
"""The most values of a document, aliases written out: about 400 MiB while it is read."""
DEEPEST = 100
"""The most collections within each other."""

_STR = "tag:yaml.org,2002:str"
MAX_BYTES = 64 * 2**20

_REPEATED = "a key given twice"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class RefusedYamlError(yaml.MarkedYAMLError):
    """A document holds what no description of data needs; `problem` says what, `problem_mark` where."""


def check_events(text: str) -> None:
    """Refuse documents that are too large or too deep, merge keys, and tags other than `!!str`.

    Raises:
        RefusedYamlError: it is one of these.
        yaml.YAMLError: it is no YAML.
    """
    size = _Size()
    for event in yaml.parse(text, Loader=_Loader):
        problem = _fault(event) or size.after(event)
        if problem:
            raise RefusedYamlError(problem=problem, problem_mark=event.start_mark)  # pyright: ignore[reportArgumentType]


def _fault(event: yaml.Event) -> str:
    tag = getattr(event, "tag", None)
    if tag not in (None, "!", _STR):
        return "a tag (!)"
    if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
        return "a merge key (<<), which is not read: write its keys out"
    return ""


class _Size:
    """The number of values so far, and of those that an anchor names."""

    def __init__(self) -> None:
        self._total = 0
        self._open: list[tuple[str | None, int]] = []  # an anchor, and the total before its collection
        self._named: dict[str, int] = {}

    def after(self, event: yaml.Event) -> str:
        """Return the fault after one more event, empty if all is well."""
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self._open.pop()
            self._name(anchor, self._total - before)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, self._total))
            self._total += 1
        elif isinstance(event, yaml.ScalarEvent):
            self._total += 1
            self._name(event.anchor, 1)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._named:
                return "an alias of nothing, or of what it stands in"
            self._total += self._named[event.anchor]
        if len(self._open) > DEEPEST:
            return "nesting too deep"
        return f"more than {MOST_VALUES:,} values, aliases written out" if self._total > MOST_VALUES else ""

    def _name(self, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._named[anchor] = size


def read_document(path: str | Path) -> Any:  # noqa: ANN401  a file holds any value
    """Return the plain values of a `.json` file, or of a YAML file of any other name.

    Raises:
        SchemaError: the file is missing, too large, not text, or not well formed.
    """
    path = Path(path)
    return parse_document(read_text(path), str(path), is_json=path.suffix.lower() == ".json")


def parse_document(text: str, label: str, *, is_json: bool = False) -> Any:  # noqa: ANN401
    """Return the plain values of YAML, of which JSON is a part, or strictly of JSON.

    Raises:
        SchemaError: the text is not well formed; `label` says where it stands.
    """
    # The parser's own words are not shown: given a data file by mistake, they would quote it.
    fault = "nesting too deep"
    try:
        if is_json:
            check_values(text)
            return json.loads(text, object_pairs_hook=unique_pairs, parse_constant=no_constant)
        check_events(text)
        return yaml.load(text, Loader=_PlainLoader)
    except json.JSONDecodeError as error:
        fault = f"a mistake at line {error.lineno}, column {error.colno}"
    except TooLargeError as error:
        fault = str(error)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        known = isinstance(error, RefusedYamlError) or error.problem == _REPEATED
        fault = f"{error.problem if known else 'a mistake'}{place}"
    except RepeatedKeyError:
        fault = _REPEATED
    except (yaml.YAMLError, ValueError, OverflowError):
        fault = "a value that cannot be read"
    except RecursionError:
        pass
    form = "JSON" if is_json else "YAML"
    raise SchemaError(f"Expected {label} to be well-formed {form}, got: {fault}. Correct the file.")


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without its byte-order mark.

    Raises:
        SchemaError: the file is missing, too large, or not text.
    """
    try:
        return read_bounded(path, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        reason = "text that is not UTF-8"
    except UnreadableFileError as error:
        reason = str(error)
    raise SchemaError(f"Expected {path} to be a readable text file, got: {reason}. Check the path.")


def yaml_text(document: Any) -> str:  # noqa: ANN401
    """Return plain values as YAML, keys in their own order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None)


def with_comments(text: str, before: str) -> str:
    r"""Return YAML with the comments that an earlier text had above what is still as it was.

    What stood above all columns is about what the top lacks: it goes where the top says more or less than before.

    Example:
        >>> before = ["columns:", "  # whole numbers", "  age: {kind: integer}"]
        >>> print(with_comments("rows: 90\ncolumns:\n  age: {kind: integer}\n", "\n".join(before)), end="")
        rows: 90
        columns:
          # whole numbers
          age: {kind: integer}
    """
    old, new = _entries(before), _entries(text)
    top = [{words.partition(":")[0] for words, _, lines in part if lines[0][0] != " "} for part in (old, new)]
    notes = {words: comments for words, comments, _ in old if words != "columns:" or top[0] == top[1]}
    return "".join(f"{line}\n" for words, _, lines in new for line in (*notes.get(words, ()), *lines))


def _entries(text: str) -> list[tuple[str, list[str], list[str]]]:
    """Each key of the top and of one level below: its words, the comments above it, and its lines."""
    entries: list[tuple[str, list[str], list[str]]] = []
    comments: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            comments.append(line)
        elif line.startswith("   ") and entries:
            entries[-1][2].append(line)
        else:
            entries.append(("", comments, [line]))
            comments = []
    return [(" ".join(" ".join(lines).split()), above, lines) for _, above, lines in entries]


def json_text(document: Any) -> str:  # noqa: ANN401
    """Return plain values as JSON, keys in their own order."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(path: str | Path, text: str, *, overwrite: bool = False, secret: bool = False) -> None:
    """Write a text file, whole or not at all; a secret one for its owner alone.

    Raises:
        OutputError: the file exists and may not be replaced, or cannot be written.
    """
    path = Path(path)
    with atomic_path(path, overwrite=overwrite, secret=secret) as partial:
        write_or_refuse(path, lambda: partial.write_text(text, encoding="utf-8"))


class _PlainLoader(_Loader):
    """A safe loader that resolves only what JSON could have meant, and refuses repeated keys."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in keys:
                raise yaml.constructor.ConstructorError(None, None, _REPEATED, key.start_mark)
            keys.add((key.tag, key.value))
        return super().construct_mapping(node, deep=deep)


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF|nan|NaN|NAN))$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    _PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
