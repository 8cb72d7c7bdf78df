"""The exception tree, and the validators that raise it.

    SfumatoError
    ├── PrivacyError
    │   ├── BudgetExceededError   a charge would pass the budget; nothing was released
    │   ├── LedgerError           what was charged is not what was planned
    │   └── UnsupportedEventError the accountant cannot account for this event
    ├── ConfigError (ValueError)  an argument is outside its domain
    ├── SchemaError (ValueError)  a schema is malformed, or does not describe the data
    ├── DataError (ValueError)    a source cannot be read
    ├── EngineError (RuntimeError) workers did not finish a pass over the records
    ├── TrainingError (RuntimeError) a network could not be run on the records
    ├── MethodError (RuntimeError) a method of another package failed
    ├── NotAcceptedError (RuntimeError) no fit of a search met its criteria; the budget is spent
    ├── OutputError (OSError)     an output exists already, or cannot be written
    ├── EstimateError (ValueError) a release does not hold what an estimate would rest on
    └── ReleaseError (ValueError) a release is damaged, hostile, or of an unknown format

Messages read "Expected <rule>, got <name>=<value>. <What to do.>". A message may name a column, a file or a
public setting; it never shows a cell, a count or a row of the data. Raise after the `except` block, not inside it:
even `from None` keeps the original exception, and the cell in its text, on `__context__`.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Callable, Iterable
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

__all__ = [  # what a caller catches; the validators below are for this package
    "BudgetExceededError",
    "ConfigError",
    "DataError",
    "EngineError",
    "EstimateError",
    "LedgerError",
    "ModelWarning",
    "NotAcceptedError",
    "OutputError",
    "PrivacyError",
    "PrivacyWarning",
    "ReleaseError",
    "RepeatedFitWarning",
    "SampleWarning",
    "SchemaError",
    "SchemaWarning",
    "SfumatoError",
    "TrainingError",
    "UnsupportedEventError",
]


class SfumatoError(Exception):
    """Base of every error that Sfumato raises on purpose."""


class PrivacyError(SfumatoError):
    """The guarantee would not hold."""


class BudgetExceededError(PrivacyError):
    """A charge would pass the budget; nothing was released."""


class LedgerError(PrivacyError):
    """What was charged is not what was planned."""


class UnsupportedEventError(PrivacyError):
    """The accountant cannot account for this event."""


class ConfigError(SfumatoError, ValueError):
    """An argument is outside its domain."""


class SchemaError(SfumatoError, ValueError):
    """A schema is malformed, or does not describe the data."""


class DataError(SfumatoError, ValueError):
    """A data source cannot be read."""


class EngineError(SfumatoError, RuntimeError):
    """Workers did not finish a pass over the records; nothing was drawn from it."""


class RoundPendingError(SfumatoError):
    """A holder's message of a round is written; the fit goes on when those of the other holders have come.

    Attributes:
        number: of the round, from 1.
        path: of the message.
    """

    def __init__(self, number: int, path: str) -> None:
        super().__init__(f"Round {number}: wrote {path}. Give it to the other holders, and take theirs.")
        self.number, self.path = number, path


class TrainingError(SfumatoError, RuntimeError):
    """A network could not be run on the records."""


class MethodError(SfumatoError, RuntimeError):
    """A method of another package failed on the records."""


class NotAcceptedError(SfumatoError, RuntimeError):
    """No fit of a search met its criteria: the budget is spent, and nothing is released but the verdicts.

    Attributes:
        certificate: what was spent on what, and the noisy verdicts of the fit that came nearest, under `search`.
    """

    def __init__(self, message: str, certificate: object = None) -> None:
        super().__init__(message)
        self.certificate = certificate

    def __reduce__(self) -> tuple[type[NotAcceptedError], tuple[object, ...]]:
        return type(self), (str(self), self.certificate)


class OutputError(SfumatoError, OSError):
    """An output exists already, or cannot be written."""


class EstimateError(SfumatoError, ValueError):
    """A release does not hold what an estimate would rest on; no number is given in its place."""


class UnknownGroupError(ConfigError, KeyError):
    """A group that estimates have no answer for: `get` and `in` of the mapping work as of any other."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows the repr


class ReleaseError(SfumatoError, ValueError):
    """A release is damaged, hostile, or of a format this version does not know."""


class SchemaWarning(UserWarning):
    """A schema that could be read leaves something out."""


class PrivacyWarning(UserWarning):
    """A setting that is allowed but weakens what the guarantee means."""


class RepeatedFitWarning(PrivacyWarning):
    """A fit of an estimator in a process that fitted one before, under no ledger."""


class SampleWarning(UserWarning):
    """A sample of fewer rows than were asked for."""


class ModelWarning(UserWarning):
    """A release whose model says something else than was measured."""


class PluginWarning(UserWarning):
    """A plugin of another package that cannot be used is left out of a list."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a message: of public names, the one that `word` resembles; empty if it resembles none."""
    names = {name.casefold(): name for name in known}
    similar = difflib.get_close_matches(str(word).casefold(), names, 1)
    return f" Did you mean {names[similar[0]]!r}?" if similar else ""


def named_arguments(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Refuse a call that does not fit a function's arguments by a ConfigError that names them, and no value.

    Example:
        >>> named_arguments(did_you_mean)("age", knwon=["age"])
        Traceback (most recent call last):
        sfumato.errors.ConfigError: Expected did_you_mean(word, known), got knwon=. Did you mean 'known'?
    """

    @wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except TypeError:
            fault = _call_fault(function, args, kwargs)
            if not fault:
                raise
        raise ConfigError(fault)

    return call


def _call_fault(function: Callable[..., object], args: tuple[object, ...], kwargs: Iterable[str]) -> str:
    """What is wrong with a call's arguments, by their names; empty if nothing is."""
    known = inspect.signature(function).parameters
    places = [name for name, one in known.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    by_name = [name for name, one in known.items() if one.kind is one.KEYWORD_ONLY]
    strange = [name for name in kwargs if name not in known]
    present = {*places[: len(args)], *kwargs}
    absent = [
        name for name in (*places, *by_name) if known[name].default is inspect.Parameter.empty and name not in present
    ]
    if strange and not any(one.kind is one.VAR_KEYWORD for one in known.values()):
        got = f"{strange[0]}=.{did_you_mean(strange[0], known)}"
    elif len(args) > len(places):
        got = "more without a name. Write the name of each other one."
    elif absent:
        got = f"no {absent[0]}."
    else:
        return ""
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    form = ", ".join((*(place for place in places if place != "self"), *(f"{one}=..." for one in by_name)))
    return f"Expected {name}({form}), got {got}"


def _one(named: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = named.items()
    return name, value


def _is_real(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def require_instance(kind: type | tuple[type, ...], what: str, **named: object) -> None:
    """Raise ConfigError unless the one keyword argument is of a type; what else it is stays unsaid but for its type."""
    name, value = _one(named)
    if not isinstance(value, kind):
        raise ConfigError(f"Expected {name} to be {what}, got a {type(value).__name__}.")


def require_choice(choices: tuple[str, ...], **named: object) -> None:
    """Raise ConfigError unless the one keyword argument is one of a few words."""
    name, value = _one(named)
    rule = f"Expected {name} to be {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
    if not isinstance(value, str):
        raise ConfigError(f"{rule}, got a {type(value).__name__}.")
    if value not in choices:
        raise ConfigError(f"{rule}, got {name}={value!r}.")


def require_flag(**named: object) -> None:
    """Raise ConfigError unless the one keyword argument is True or False: other values have a truth by accident."""
    require_instance(bool, "True or False", **named)


def require_name(**named: object) -> None:
    """Raise ConfigError unless the one keyword argument is the name of a column, or None."""
    name, value = _one(named)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"Expected {name} to be the name of a column, got a {type(value).__name__}.")


def require_path(**named: object) -> Path:
    """Return the one keyword argument as a path if it is one, else raise ConfigError."""
    name, value = _one(named)
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise ConfigError(f"Expected {name} to be a path, got a {type(value).__name__}.")
    if not text or "\0" in text:
        raise ConfigError(f"Expected {name} to be a path, got {'a name that no file can have' if text else 'no text'}.")
    return Path(text)


def require_positive(hint: str = "", **named: object) -> float:
    """Return the one keyword argument as a float if it is a finite number above 0, else raise ConfigError."""
    name, value = _one(named)
    if not (_is_real(value) and float(value) > 0):  # type: ignore[arg-type]
        raise ConfigError(f"Expected {name} to be a number above 0, got {name}={value!r}. {hint}".rstrip())
    return float(value)  # type: ignore[arg-type]


def require_open_unit(hint: str = "", **named: object) -> float:
    """Return the one keyword argument as a float if it lies strictly between 0 and 1, else raise ConfigError."""
    name, value = _one(named)
    if not (_is_real(value) and 0 < float(value) < 1):  # type: ignore[arg-type]
        raise ConfigError(f"Expected 0 < {name} < 1, got {name}={value!r}. {hint}".rstrip())
    return float(value)  # type: ignore[arg-type]


def require_integer(*, at_least: int, hint: str = "", **named: object) -> int:
    """Return the one keyword argument as an int if it is a whole number of at least `at_least`."""
    name, value = _one(named)
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < at_least:
        rule = f"{name} to be a whole number of at least {at_least}"
        raise ConfigError(f"Expected {rule}, got {name}={value!r}. {hint}".rstrip())
    return int(value)
