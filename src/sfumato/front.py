"""The front: from a table to a release in four lines.

>>> schema = sfumato.describe(frame)  # doctest: +SKIP
>>> release = sfumato.fit(frame, schema, epsilon=1.0, delta=1e-6)  # doctest: +SKIP
>>> release.certificate  # doctest: +SKIP
>>> release.sample(1_000)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Unpack

from sfumato.errors import ConfigError, did_you_mean
from sfumato.fitting.fit_options import FitKeywords, FitOptions
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.io.sources import open_source
from sfumato.methods.registry import find_method
from sfumato.privacy.budget import EstimateCount, NonPrivate
from sfumato.privacy.risk import Risk
from sfumato.release_front import Release
from sfumato.schema.list_files import refuse_lists_of_data
from sfumato.schema.open_schema import OpenSchema, open_schema
from sfumato.schema.schema import Schema, SchemaLike
from sfumato.schema.short_facts import ColumnFacts


def describe(
    data: object,
    columns: Mapping[str, ColumnFacts] | None = None,
    *,
    rows: int | None = None,
    unit: str | Mapping[str, Any] | None = None,
    target: str | None = None,
    names_are_public: bool = False,
) -> Schema:
    """Return a first schema of a table, which can be fitted as it is: the fit estimates what only the data know.

    Privacy: reads the names of the columns, and what `columns` says; no record, and no type of a column but that it
        holds lists. `print(schema)` shows it as a schema file.

    Args:
        data: the table, as for `fit`. Its column names are taken as public.
        columns: what is public of some columns: bounds `{"age": (0, 120)}`, labels `{"country": ["AT", "DE"]}`,
            `"boolean"`, or all that a schema file can say: `{"age": {"kind": "integer", "lower": 0, "upper": 120}}`;
            or a kind alone, to be completed by the fit: `{"age": "integer"}`. All may be declared.
        rows: the public number of rows, if there is one.
        unit: whose privacy: `{"column": "patient", "max_rows": 4}`; `"patient"` where one row of each is to count; by
            default each row's.
        target: a column whose classes are modelled apart is categorical unless `columns` says otherwise.
        names_are_public: take the first line of a CSV as names even where one is a number or a date.

    Raises:
        ConfigError: an argument is of another type.
        DataError: the data cannot be opened, or the first line of a CSV may be a record.
        SchemaError: `columns` or `unit` names a column that is not there, or is malformed.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [31, 46], "town": ["Riga", "Oslo"]})
        >>> print(describe(frame, {"age": (0, 120)}, rows=1_000))
        rows: 1000
        columns:
          age: {kind: integer, lower: 0, upper: 120}
          town: {kind: unknown, discover: true}
        <BLANKLINE>
    """
    return OpenSchema.of(data, columns, rows=rows, unit=unit, target=target, names_are_public=names_are_public)


def fit(
    data: object,
    schema: SchemaLike | None = None,
    *,
    epsilon: float | NonPrivate | None = None,
    risk: Risk | None = None,
    delta: float | None = None,
    method: str | Synthesizer = "max-entropy",
    settings: Mapping[str, Any] | None = None,
    **options: Unpack[FitKeywords],
) -> Release:
    """Fit a release; without a schema, part of the budget estimates bounds, categories and the number of rows.

    Privacy: (ε, δ) as the release's certificate says. All checks come before the first charge.

    Args:
        data: a data frame, a table, a path, anything that `Synthesizer.fit` takes.
        schema: public description of the data: a `Schema`, a path, or a mapping such as `{"columns": {"age": (0, 120),
            "country": ["AT", "DE"], "returned": "boolean"}, "rows": 10_000}`; by default `describe(data)`.
        epsilon: ε in nats. Left out where `method` is an object, which has its own.
        risk: in place of epsilon, what the best attacker may reach: `Advantage(0.1)`, or
            `TruePositiveRate(0.1, fpr=0.05)`.
        delta: δ; by default min(1e-5, 0.1 / rows). It has to be given where the number of rows is estimated.
        method: a method's name, or a method with its settings, such as `MaxEntropy(epsilon=1.0)`.
        settings: of the method that is named, such as `{"marginal_share": 0.6}`.
        options: attributes of `FitOptions` by name, such as `target="income"`, `n_public=10_000`,
            `ledger="people.ledger"`. Where nothing says the number of rows, it is estimated.

    Returns:
        The release: `release.sample(n)` gives frames of the kind that was fitted.

    Raises:
        ConfigError: an argument is outside its domain, or no setting of the method.
        SchemaError, DataError, BudgetExceededError: as `Synthesizer.fit`.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [30, 40, 50, 60] * 250, "member": [True, False] * 500})
        >>> release = fit(frame, epsilon=1.0, delta=1e-6)
        >>> type(release.sample(3)).__name__, release.schema.sources["age"]
        ('DataFrame', 'discovered')
    """
    if risk is not None and (epsilon is not None or isinstance(method, Synthesizer)):
        raise ConfigError("Expected either risk or epsilon, got both. Leave one out; a method object has an epsilon.")
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise ConfigError(
            f"Expected settings to be a mapping of a method's settings by name, got a {type(settings).__name__}."
        )
    fit_options = FitOptions.from_keywords(options)
    synthesizer = _method(method, epsilon if risk is None else 1.0, delta, settings)
    source = None
    if schema is None:
        source = open_source(data)
        if not source.names:
            raise ConfigError(f"Expected a schema for {source.label}, which names no columns for all. Declare them.")
    refuse_lists_of_data(schema, data)
    known = OpenSchema.of(source, target=fit_options.target) if schema is None else open_schema(schema)
    if fit_options.n_public is None and known.n_records is None:
        fit_options = replace(fit_options, n_public=EstimateCount())
    if risk is not None:
        synthesizer = synthesizer.at_risk(risk, known, target=fit_options.target, n_public=fit_options.n_public)
    return synthesizer.fit_with(fit_options, data if source is None else source, known)


def _method(
    method: str | Synthesizer, epsilon: float | NonPrivate | None, delta: float | None, settings: Mapping[str, Any]
) -> Synthesizer:
    if isinstance(method, Synthesizer):
        given = [name for name, value in (("epsilon", epsilon), ("delta", delta)) if value is not None]
        if given or settings:
            raise ConfigError(
                f"Expected {[*given, *settings][0]} in the method itself, got it beside one. Leave it out, or name the "
                f"method: method={method.method!r}."
            )
        return method
    if not isinstance(method, str):
        raise ConfigError(f"Expected method to be a name or a method with its settings, got {type(method).__name__}.")
    if epsilon is None:
        raise ConfigError("Expected epsilon, got none. It limits what the release tells of one row. Try epsilon=1.0.")
    make = find_method(method).make
    known = [entry.name for entry in fields(make) if entry.init]  # type: ignore[arg-type] - a dataclass
    for name in settings:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ConfigError(f"Expected settings of the method {method}, {', '.join(known[2:])}, got {name!r}.{hint}")
    return make(epsilon=epsilon, delta=delta, **settings)
