"""How large a YAML document becomes, told from its events alone: before any value of it is made.

A few lines of aliases stand for billions of values, and a few kilobytes of brackets end the process, for the parser
goes into them by recursion. Events come one at a time and need no memory.
"""

from __future__ import annotations

from typing import Any

import yaml

MOST_VALUES = 500_000
"""The most values of a document, aliases written out: about 400 MiB while it is read."""
DEEPEST = 100
"""The most collections within each other."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STR = "tag:yaml.org,2002:str"


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
