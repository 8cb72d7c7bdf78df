"""Settings of a method by name, read off its class: what there is, and values from text, YAML or JSON.

latent_dim           a field: a number, a text, a list
prior                a field whose values are types, each by a word: `by-class`, `mixture`
prior.n_components   a field of the chosen type
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from sfumato.errors import ConfigError, did_you_mean

Flat: TypeAlias = Mapping[str, Any]  # dotted names → values as they were written

_NOTHING = ("none", "null")
_TRUTHS = {"true": True, "false": False}
_OF_EVERY_METHOD = ("epsilon", "delta")  # flags of their own
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", np.ndarray: "a list of lists"}


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of a method, or of a type that one of its settings can be.

    Attributes:
        name: of the field.
        kinds: plain types that its values can have; of a list, `tuple[...]`.
        words: texts that it can be.
        types: types that it can be, by their words.
        optional: whether it can be left open, as none.
        default: None where it is left open, or where there is none.
        required: whether there is no default.
        about: what it is.
    """

    name: str
    kinds: tuple[Any, ...]
    words: tuple[str, ...]
    types: Mapping[str, type]
    optional: bool
    default: Any
    required: bool
    about: str

    @property
    def form(self) -> str:
        """Its values' form, in words."""
        forms = [*self.types, *self.words]
        for kind in self.kinds:
            of = get_args(kind)
            forms.append(f"a list, each {_KINDS[of[0]]}" if of else _KINDS[kind])
        return " or ".join([*forms, *(["none"] if self.optional else [])])

    @property
    def plain_default(self) -> Any:  # noqa: ANN401 - a value of JSON
        """The default as it is written: a type by its word, a list as a list."""
        words = [word for word, type_ in self.types.items() if isinstance(self.default, type_)]
        return words[0] if words else list(self.default) if isinstance(self.default, tuple) else self.default


def settings_of(owner: Any) -> dict[str, Setting]:  # noqa: ANN401 - a dataclass
    """Return the settings of a method's class, or of a type that a setting can be."""
    hints, about = get_type_hints(owner), _attributes(owner)
    return {
        field.name: _setting(field, hints[field.name], about.get(field.name, ""))
        for field in fields(owner)
        if field.name not in _OF_EVERY_METHOD
    }


def read_settings(owner: Any, flat: Flat, what: str, before: str = "") -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """Return the arguments that values by name stand for.

    Args:
        owner: the class of a method, or a type that a setting can be.
        flat: dotted names → values, of their types or as text.
        what: how messages call the owner, such as "the method p3gm".
        before: what names are written with before them, such as "prior.".

    Raises:
        ConfigError: a name that there is not, or a value that it cannot have.
    """
    known = settings_of(owner)
    plain: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for name, value in flat.items():
        first, dot, rest = name.partition(".")
        if first not in known or (dot and not known[first].types):
            listed = ", ".join(_names(known)) or "which has none"
            hint = did_you_mean(name, _names(known))
            raise ConfigError(f"Expected settings of {what}, {listed}, got {before + name!r}.{hint}")
        if dot:
            inner.setdefault(first, {})[rest] = value
        else:
            plain[first] = value
    arguments = {name: read_value(known[name], plain[name], before + name) for name in plain}
    for name in [*plain, *(name for name in inner if name not in plain)]:
        if name not in plain or isinstance(arguments[name], type):
            chosen = arguments[name] if name in plain else _default_type(known[name])
            arguments[name] = _instance(chosen, known[name], inner.get(name, {}))
        elif name in inner:
            raise ConfigError(
                f"Expected {name} to be {' or '.join(known[name].types)} beside {name}.{next(iter(inner[name]))}, got "
                f"{plain[name]!r}."
            )
    return arguments


def _names(known: Mapping[str, Setting]) -> list[str]:
    """Names of settings, those of types that settings can be after theirs."""
    names: dict[str, None] = {}
    for name, setting in known.items():
        names[name] = None
        names |= {f"{name}.{inner}": None for type_ in setting.types.values() for inner in settings_of(type_)}
    return list(names)


def _default_type(setting: Setting) -> type:
    """The type whose settings are meant where the type itself is not given: the default's, or the only one."""
    default = [type_ for type_ in setting.types.values() if isinstance(setting.default, type_)]
    chosen = default or list(setting.types.values())
    if len(chosen) > 1:
        raise ConfigError(f"Expected {setting.name} beside its own settings: {' or '.join(setting.types)}.")
    return chosen[0]


def _instance(chosen: type, setting: Setting, inner: Flat) -> Any:  # noqa: ANN401 - of the chosen type
    word = next(word for word, type_ in setting.types.items() if type_ is chosen)
    arguments = read_settings(chosen, inner, f"{setting.name}={word}", f"{setting.name}.") if inner else {}
    missing = [name for name, entry in settings_of(chosen).items() if entry.required and name not in arguments]
    if missing:
        needed = ", ".join(f"{setting.name}.{name}" for name in missing)
        raise ConfigError(f"Expected {needed} beside {setting.name}={word}, got none.")
    return chosen(**arguments)


def read_value(setting: Setting, given: Any, name: str) -> Any:  # noqa: ANN401 - a value, or a type to make
    """Read one value, of its type or as text; `name` is how messages call it.

    Raises:
        ConfigError: the setting cannot have it.
    """
    if setting.optional and (given is None or given in _NOTHING):
        return None
    if isinstance(given, str) and given in setting.words:
        return given
    if isinstance(given, str) and given.replace("_", "-") in setting.types:
        return setting.types[given.replace("_", "-")]
    for kind in setting.kinds:
        value = _plain(kind, given)
        if value is not None:
            return value
    raise ConfigError(f"Expected {name} to be {setting.form}, got {given!r}.")


def _plain(kind: Any, given: Any) -> Any:  # noqa: ANN401 - a type, or a list of one; a value of it
    """Return a value of this type; None if it is not one."""
    if kind is np.ndarray:
        return _matrix(given)
    if get_args(kind):
        parts = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
        if not isinstance(parts, list) or not parts:
            return None
        read = [_plain(get_args(kind)[0], part) for part in parts]
        return None if any(part is None for part in read) else tuple(read)
    if kind is bool:
        return given if isinstance(given, bool) else _TRUTHS.get(given) if isinstance(given, str) else None
    if kind is str:
        return given if isinstance(given, str) else None
    if isinstance(given, bool) or not isinstance(given, int | str | (float if kind is float else int)):
        return None
    try:
        return kind(given)
    except (ValueError, OverflowError):
        return None


def _matrix(given: Any) -> np.ndarray | None:  # noqa: ANN401 - of a file
    if not isinstance(given, list):
        return None
    try:
        return np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None


def _setting(field: Field[Any], hint: Any, about: str) -> Setting:  # noqa: ANN401 - a type
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    choices = [part for part in parts if is_dataclass(part) and isinstance(part, type)]
    required = field.default is MISSING and field.default_factory is MISSING
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return Setting(
        name=field.name,
        kinds=tuple(part for part in parts if part in _KINDS or get_origin(part) is tuple),
        words=tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part)),
        types={_word(part, field.name): part for part in choices},
        optional=type(None) in parts,
        default=None if required else default,
        required=required,
        about=about,
    )


def _word(type_: type, name: str) -> str:
    """The word for a type: its name in small letters, without the word that the setting ends in."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*", type_.__name__)]
    last = name.rpartition("_")[2]
    return "-".join(words[:-1] if len(words) > 1 and words[-1] == last else words)


def _attributes(owner: Any) -> dict[str, str]:  # noqa: ANN401 - a dataclass
    """Attribute → its description in a class's docstring."""
    text = inspect.cleandoc(owner.__doc__ or "")
    section = re.search(r"^Attributes:\n((?:    .*\n?|\n)*)", text, re.M)
    entries = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section[1] if section else "", re.M)
    return {name: " ".join(meaning.split()) for name, meaning in entries}
