"""The front: from a table to a release in four lines.

>>> schema = sfumato.describe(frame)  # doctest: +SKIP
>>> release = sfumato.fit(frame, schema, epsilon=1.0, delta=1e-6)  # doctest: +SKIP
>>> release.certificate  # doctest: +SKIP
>>> release.sample(1_000)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

from sfumato._lazy import later
from sfumato.errors import ConfigError, named_arguments
from sfumato.fitting.arguments import FitKeywords, FitOptions, SearchKeywords
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.io.sources import open_source
from sfumato.methods.registry import find_method
from sfumato.privacy.budget import EstimateCount, NonPrivate
from sfumato.privacy.repetitions import Repetitions
from sfumato.privacy.risk import Risk
from sfumato.release_front import Release
from sfumato.schema.accept import Criterion
from sfumato.schema.code_lists import refuse_lists_of_data
from sfumato.schema.open_schema import OpenSchema, open_schema
from sfumato.schema.references import ColumnFacts
from sfumato.schema.schema import Schema, SchemaLike

if TYPE_CHECKING:
    from sfumato.search import tuning
else:
    tuning = later("sfumato.search.tuning")


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


def tune(
    data: object,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: str | Synthesizer | Sequence[Synthesizer] = "max-entropy",
    settings: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    mean_repetitions: float = 10.0,
    shape: float = 1.0,
    score_share: float = 0.1,
    accept: Sequence[Criterion | Mapping[str, Any]] | None = None,
    accept_share: float = 0.1,
    **options: Unpack[SearchKeywords],
) -> Release:
    """Fit the best of several candidates: a search whose whole cost is (ε, δ). Arguments as of `fit`, and a grid.

    A random number of times, a candidate is drawn uniformly and fitted; the release whose samples are nearest to noisy
    counts of pairs of cells is returned. Nothing else leaves: not how often, not what the others scored. Each fit has
    about the noise of a plain fit of ε/2.5.

    With criteria (`accept`), each fit is judged on the records, with noise of its own; fits that pass more of them go
    before nearer ones, and a release is returned only if it passes all. One candidate and `mean_repetitions=1` are a
    single fit that is judged.

    Privacy: (ε, δ) as the candidates say, add/remove: one `Gaussian` event for the counts, and one `RepeatAndSelect`
        event of a fit's events and those of its verdicts. All of it is charged before a record is counted. Proofs:
        docs/proofs/tune.md, docs/proofs/acceptance.md.
    Reference: Papernot and Steinke, ICLR 2022, arXiv:2110.03620, Theorem 2.

    Args:
        data: a table, as for `fit`.
        schema: public description of the table, as for `fit`, with nothing left open.
        epsilon: ε of the whole search, in nats. Left out where `method` is an object or several.
        delta: δ of the whole search; by default min(1e-5, 0.1 / rows).
        method: a method of tables by name, with its settings, or the candidates themselves: methods with one ε and δ,
            and stages that cost alike: their shares of unsampled stages may differ, their sampling rates, steps and
            shares of sampled ones may not. A candidate that is listed twice is drawn twice as often.
        settings: that all candidates have, of the method that is named.
        grid: settings and the values to try, `{"marginal_share": [0.2, 0.4, 0.6]}`: all combinations are candidates.
        mean_repetitions: mean of the number of fits, 1 to 10,000.
        shape: of its law: 1 geometric, 0 logarithmic (cheaper, but most searches make few fits).
        score_share: part of the squared budget of one fit and its score that is spent on the score, in (0, 1).
        accept: what the release has to satisfy, such as `[{"marginal_error": 0.01}]`; by default the schema's.
        accept_share: part of the squared budget of one fit, its verdicts and the score that is spent on the verdicts.
        options: attributes of `FitOptions` by name: `target`, `n_public` (declared, a number), `seed`, `ledger`,
            `as_source`, `accept_draft`, `rows_are_records`.

    Returns:
        The best release. Its certificate lists the candidates, the one that was chosen, and its noisy verdicts, under
        `search`.

    Raises:
        BudgetExceededError: the ledger cannot pay for the search. Nothing was read or charged.
        NotAcceptedError: no fit passed; its certificate has the verdicts of the fit that came nearest. The budget is
            spent.
        ConfigError: an argument is outside its domain, the candidates do not cost alike, or noise alone would decide a
            criterion.
        SchemaError: the schema does not describe the data, or has facts that were read off the records.
        DataError: the data cannot be read.
    """
    if isinstance(method, str | Synthesizer):
        candidates: Sequence[Synthesizer] = _candidates(method, epsilon, delta, settings or {}, grid or {})
    elif grid or settings or epsilon is not None or delta is not None:
        raise ConfigError("Expected epsilon, delta, settings or a grid beside one method, got one beside candidates.")
    else:
        candidates = method
    return tuning.best_of(
        data, candidates, schema, repetitions=Repetitions(mean_repetitions, shape), score_share=score_share,
        accept=accept, accept_share=accept_share, options=options,
    )  # fmt: skip


def _candidates(
    method: str | Synthesizer,
    epsilon: float | None,
    delta: float | None,
    settings: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
) -> list[Synthesizer]:
    """Return the method at every combination of the values of a grid."""
    if not isinstance(grid, Mapping) or any(isinstance(v, str) or not isinstance(v, Sequence) for v in grid.values()):
        raise ConfigError("Expected grid to map settings to lists of values, such as {'marginal_share': [0.2, 0.4]}.")
    twice = [name for name in grid if name in settings]
    if twice:
        raise ConfigError(f"Expected {twice[0]} in settings or in grid, got it in both.")
    tried = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if isinstance(method, Synthesizer):
        return [replace(_method(method, epsilon, delta, settings), **own) for own in tried]
    return [_method(method, epsilon, delta, {**settings, **own}) for own in tried]


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
        got = f"the class {method.__name__}" if isinstance(method, type) else type(method).__name__
        raise ConfigError(f"Expected method to be a name or a method such as MaxEntropy(epsilon=1.0), got {got}.")
    if epsilon is None:
        raise ConfigError("Expected epsilon, got none. It limits what the release tells of one row. Try epsilon=1.0.")
    if among := [name for name in ("epsilon", "delta") if name in settings]:
        raise ConfigError(f"Expected {among[0]} as an argument of its own, got it among settings.")
    return named_arguments(find_method(method).make)(epsilon=epsilon, delta=delta, **settings)
