"""Documents of strangers as typed values: every entry has a reader, which takes a plain value or refuses it.

    @document
    class Point:
        epsilon: float = entry(number(0, 1_000))
        delta: float = entry(number(0, 1, inside=True))

A document is a frozen dataclass whose fields are the keys of a mapping, in the order in which they are written. An
entry with a default may be missing, and is not written when it has it. Keys that a document does not know are passed
over. A refusal names the place by keys of ours only, never by what the stranger wrote.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, dataclass_transform

from sfumato.errors import ReleaseError

T = TypeVar("T")

_LARGEST_COUNT = 2**53
_READ, _WRITE = "read", "write"


class Place(NamedTuple):
    """Where a value stands: in which document, under which keys."""

    document: str
    path: str = ""

    def at(self, key: str) -> Place:
        """Return the place of an entry."""
        return self._replace(path=f"{self.path}.{key}" if self.path else key)

    def refuse(self, problem: str) -> NoReturn:
        """Raise ReleaseError."""
        what = f"its {self.path!r}" if self.path else "it"
        raise ReleaseError(f"Expected a well-formed {self.document} in the release, but {what} {problem}.")


Reader: TypeAlias = Callable[[object, Place], T]
Form: TypeAlias = type[T] | Reader[T]
"""A reader, or in place of one `str`, `bool` or a document."""


def entry(
    form: Form[T],
    *,
    write: Callable[[T], object] | None = None,
    default: Any = dataclasses.MISSING,  # noqa: ANN401 - of a type of its own
    factory: Any = dataclasses.MISSING,  # noqa: ANN401
    compare: bool = True,
) -> T:
    """Return a field of a document: how its value is read, and how written, if it is not plain."""
    return dataclasses.field(
        default=default,
        default_factory=factory,
        compare=compare,
        metadata={_READ: reader(form), _WRITE: write or plain},
    )


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(entry,))
def document(cls: type[T]) -> type[T]:
    """Make a class of entries a frozen dataclass."""
    return dataclasses.dataclass(frozen=True, kw_only=True, slots=True)(cls)


def plain(value: object) -> Any:  # noqa: ANN401 - what JSON holds
    """Return a value as JSON holds it: a document as a mapping of its entries, in order."""
    if dataclasses.is_dataclass(value):
        entries = [(f, getattr(value, f.name)) for f in dataclasses.fields(value) if _READ in f.metadata]
        return {f.name: f.metadata[_WRITE](content) for f, content in entries if content != f.default}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, Enum):
        return value.value
    return dict(value) if isinstance(value, Mapping) else value


def reader(form: Form[T]) -> Reader[T]:
    """Return the reader of a form."""
    if form is str:
        return _checked(str, "text")
    if form is bool:
        return _checked(bool, "true or false")
    if isinstance(form, type):
        return lambda value, place: _read(form, value, place)  # type: ignore[return-value]
    return form


def _read(kind: type[T], value: object, place: Place) -> T:
    entries = value if isinstance(value, Mapping) else place.refuse("is not a mapping")
    values = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if _READ in field.metadata and field.name in entries:
            values[field.name] = field.metadata[_READ](entries[field.name], place.at(field.name))
        elif _READ in field.metadata and field.default is dataclasses.MISSING:
            place.at(field.name).refuse("is missing")
    return kind(**values)


def _checked(kind: Any, expected: str, fits: Callable[[Any], bool] = lambda _: True) -> Reader[Any]:  # noqa: ANN401
    """Read a value of a type; true and false are no numbers."""

    def check(value: object, place: Place) -> object:
        typed = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        return value if typed and fits(value) else place.refuse(f"is not {expected}")

    return check


def number(lowest: float, highest: float, *, inside: bool = False) -> Reader[float]:
    """Read a finite number from `lowest` to `highest`; with `inside`, strictly between."""
    expected = f"a number {'inside' if inside else 'from'} {lowest:g} to {highest:g}"
    return _checked(int | float, expected, lambda x: lowest <= x <= highest and not (inside and x in (lowest, highest)))


def whole(lowest: int, highest: int = _LARGEST_COUNT) -> Reader[int]:
    """Read a whole number from `lowest` to `highest`."""
    return _checked(int, f"a whole number from {lowest} to {highest}", lambda x: lowest <= x <= highest)


def one_of(*known: T) -> Reader[T]:
    """Read one of some values of one type; members of an enumeration by their values."""
    by_value = {member.value if isinstance(member, Enum) else member: member for member in known}
    read = _checked(type(next(iter(by_value))), f"one of {', '.join(map(repr, by_value))}", by_value.__contains__)
    return lambda value, place: by_value[read(value, place)]


def optional(form: Form[T]) -> Reader[T | None]:
    """Read null as None, and what else there is in another form."""
    inner = reader(form)
    return lambda value, place: None if value is None else inner(value, place)


def many(form: Form[T], most: int = _LARGEST_COUNT) -> Reader[tuple[T, ...]]:
    """Read a list of at most `most` values."""
    inner = reader(form)
    expected = "a list" if most == _LARGEST_COUNT else f"a list of at most {most} values"
    parts: Reader[list[object]] = _checked(list, expected, lambda values: len(values) <= most)
    return lambda value, place: tuple(
        inner(part, place._replace(path=f"{place.path}[{i}]")) for i, part in enumerate(parts(value, place))
    )


def mapping(form: Form[T] = lambda value, _: value) -> Reader[Mapping[str, T]]:
    """Read a mapping of any names to values of one form; of any form, where they are read elsewhere."""
    inner = reader(form)
    named: Reader[Mapping[str, object]] = _checked(Mapping, "a mapping")
    return lambda value, place: {name: inner(part, place) for name, part in named(value, place).items()}
