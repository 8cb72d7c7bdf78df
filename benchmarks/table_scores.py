"""Scores of rows made from a table, for `dependence_tables.py`. All read real records without noise: NOT private.

Total variation is against the *fitted* rows, as `benchmarks/adult.py` reports it (`tvd_2way`): 20 equal-width bins of a
numeric column between the schema's bounds, the mean over all pairs of columns. `tvd_2way_test` is the same against
rows kept out, which real rows themselves do not bring to 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from suite import Case

from sfumato.columns.kinds import LevelKind
from sfumato.evaluate import correlation_differences, total_variation
from sfumato.evaluate.coded_tables import CodedTable, FeatureMap, read_codes, table_kinds
from sfumato.evaluate.fidelity import MOST_COLUMNS, read_bins
from sfumato.evaluate.utility import classifier_scores
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema

QUERIES = 200
PREDICATES = (3, 5)
LEAST_BREAKS = 20.0
"""A rule counts if independent columns would be expected to break it as often among the fitted rows."""
SLACK = 0.005
"""Of a column's range: an interval reaches as much beyond its two values, for none asks for one exact number."""
TAIL = 0.999


def all_scores(case: Case, fitted: Any, rows: Any, test: Any, *, utility: bool = True) -> dict[str, Any]:
    """Return every score of `rows` that stand for `fitted`, as one level of names and figures."""
    schema = case.table.schema
    found: dict[str, Any] = {}
    if utility:
        found |= regression(case, rows, test) if case.regression else classification(case, rows, test)
    found |= {f"tvd_{k}way": total_variation(fitted, rows, schema=schema, k=k) for k in (1, 2, 3)}
    found["tvd_2way_test"] = total_variation(test, rows, schema=schema, k=2)
    if case.k_marginal_without is not None:
        kept = {name: kind for name, kind in schema.columns.items() if name not in case.k_marginal_without}
        distance = total_variation(fitted, rows, schema=replace(schema, columns=kept), k=2)
        found["k_marginal"] = 1000 * (1 - distance)
    found |= correlations(case, fitted, rows)
    real, made = (read_codes(open_source(frame), schema) for frame in (fitted, rows))
    found["query_error"] = query_error(real, made, schema)
    found |= tails(real, made, schema)
    return found | contradictions(*(read_bins(open_source(frame), schema) for frame in (fitted, rows)), schema)


def classification(case: Case, rows: Any, test: Any) -> dict[str, float]:
    """AUROC and AUPRC: means of the four classifiers, trained on `rows`."""
    table = case.table
    scores = classifier_scores(rows, test, schema=table.schema, target=table.target, positive=table.positive)
    return {key: scores[key] for key in ("auroc", "auprc")}


def regression(case: Case, rows: Any, test: Any) -> dict[str, float]:
    """R² on `test`, of least squares and of XGBoost (its defaults) trained on `rows`, and their mean."""
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import r2_score
    from xgboost import XGBRegressor

    schema, target = case.table.schema, case.table.target
    tables = [read_codes(open_source(frame), schema) for frame in (rows, test)]
    tables = [table.keep(~np.isnan(table.columns[target])) for table in tables]
    features = FeatureMap.of(tables[0], {name: kind for name, kind in table_kinds(schema).items() if name != target})
    x, x_test = (features.matrix(table).toarray() for table in tables)
    y, y_test = (table.columns[target] for table in tables)
    models = {"r2_linear": LinearRegression(), "r2_boosting": XGBRegressor(random_state=0)}
    found = {name: float(r2_score(y_test, model.fit(x, y).predict(x_test))) for name, model in models.items()}
    return {"r2": float(np.mean(list(found.values()))), **found}


def correlations(case: Case, fitted: Any, rows: Any) -> dict[str, Any]:
    """Mean absolute differences of correlations, and the named ones of `rows`."""
    differences = correlation_differences(fitted, rows, schema=case.table.schema)
    names = {"pearson": "correlation_error", "cramers_v": "cramers_v_error"}
    found: dict[str, Any] = {label: differences[kind]["mean"] for kind, label in names.items() if differences[kind]}
    codes = read_codes(open_source(rows), case.table.schema).columns
    for pair in case.pairs:
        x, y = (codes[name] for name in pair)
        both = ~(np.isnan(x) | np.isnan(y))
        found[f"r {pair[0]}, {pair[1]}"] = float(np.corrcoef(x[both], y[both])[0, 1])
    return found


def query_error(real: CodedTable, made: CodedTable, schema: Schema) -> float:
    """Mean absolute error of the shares of rows that 200 random conjunctions of 3 to 5 predicates hold for."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(QUERIES):
        predicates = random_conjunction(real, schema, rng)
        shares = [np.mean(np.all([held(table, *p) for p in predicates], axis=0)) for table in (real, made)]
        errors.append(abs(shares[0] - shares[1]))
    return float(np.mean(errors))


def random_conjunction(real: CodedTable, schema: Schema, rng: np.random.Generator) -> list[tuple[str, Any, Any]]:
    """Draw columns; of labels some of the levels, of numbers what lies between two real rows' values."""
    names = list(real.columns)
    count = min(int(rng.integers(PREDICATES[0], PREDICATES[1] + 1)), len(names))
    predicates: list[tuple[str, Any, Any]] = []
    for name in rng.choice(names, count, replace=False):
        kind = schema.columns[name]
        if isinstance(kind, LevelKind):
            levels = kind.n_levels
            chosen = rng.choice(levels, int(rng.integers(1, max(2, levels))), replace=False)
            predicates.append((name, chosen, None))
        else:
            known = real.columns[name][~np.isnan(real.columns[name])]
            low, high = np.sort(rng.choice(known, 2))
            predicates.append((name, low - SLACK, high + SLACK))
    return predicates


def held(table: CodedTable, name: str, low: Any, high: Any) -> np.ndarray:
    """Whether each row meets a predicate; a missing number meets none."""
    codes = table.columns[name]
    return np.isin(codes, low) if high is None else (codes >= low) & (codes <= high)


def tails(real: CodedTable, made: CodedTable, schema: Schema) -> dict[str, float]:
    """Mass of `made` above the real 99.9 % quantile of each numeric column ÷ the real mass there, about .001.

    A column with no real mass above it (its largest value is common) is left out. The worst is the one farthest from 1
    by its logarithm, no mass at all counting as a tenth.
    """
    ratios = []
    for name, kind in table_kinds(schema).items():
        if not isinstance(kind, LevelKind):
            known, other = (table.columns[name][~np.isnan(table.columns[name])] for table in (real, made))
            edge = np.quantile(known, TAIL)
            if len(other) and np.mean(known > edge) > 0:
                ratios.append(float(np.mean(other > edge) / np.mean(known > edge)))
    if not ratios:
        return {}
    worst = max(ratios, key=lambda ratio: abs(np.log(max(ratio, 0.1))))
    return {"tail_mean": float(np.mean(ratios)), "tail_worst": worst}


def contradictions(real: CodedTable, made: CodedTable, schema: Schema) -> dict[str, float]:
    """Share of rows that break a rule of the fitted rows.

    A rule: where column a has one value, or lies in one bin, the labels of column b have one value, without exception.
    It counts where independent columns would break it 20 times among the fitted rows, so that none is luck.
    """
    broken = np.zeros(made.n_rows, dtype=bool)
    count = 0
    for a, value, b, label in rules(real, schema):
        count += 1
        broken |= (made.columns[a] == value) & (made.columns[b] != label)
    return {"contradictions": float(np.mean(broken)), "rules": float(count)} if count else {}


def rules(real: CodedTable, schema: Schema) -> Iterator[tuple[str, int, str, int]]:
    """Yield (a, its value, b, its label); of very many columns none are looked for among numbers."""
    labels = [name for name, kind in table_kinds(schema).items() if isinstance(kind, LevelKind)]
    names = list(real.columns)
    for a, b in itertools.product(names if len(names) <= MOST_COLUMNS else labels, labels):
        if a == b:
            continue
        x, y = (real.columns[name].astype(np.int64) for name in (a, b))
        counts = np.zeros((int(x.max()) + 1, int(y.max()) + 1), dtype=np.int64)
        np.add.at(counts, (x, y), 1)
        shares = counts.sum(axis=0) / real.n_rows
        support, most = counts.sum(axis=1), counts.argmax(axis=1)
        sure = (counts.max(axis=1) == support) & (support * (1 - shares[most]) >= LEAST_BREAKS)
        for value in np.flatnonzero(sure):
            yield a, int(value), b, int(most[value])
