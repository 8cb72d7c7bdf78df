"""Whether a release leads to the conclusions of the real rows: coefficients side by side. NOT private.

Reference: Rosenblatt and others 2023, *Epistemic parity*: whether findings of papers hold on synthetic rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from sfumato.evaluate.coded_tables import CodedTable, table_kinds
from sfumato.inference.families import LINEAR, LOGISTIC, Family
from sfumato.inference.formulas import Design, read_formula
from sfumato.inference.linked_rows import questions_of
from sfumato.inference.regression import fit_formula
from sfumato.inference.regression_results import Regression
from sfumato.inference.table_measurements import values
from sfumato.release.model import ReleaseValue
from sfumato.schema.schema import Schema
from sfumato.schema.shapes import CONCLUSIONS, require_able

_SIGNIFICANT = 0.05
_TINY = 1e-300


def parity(formula: str, real: CodedTable, synthetic: CodedTable | ReleaseValue, schema: Schema) -> dict[str, Any]:
    """Return a formula's coefficients on real rows and from a release, or from synthetic rows taken for records.

    NOT private: it reads real records without noise.

    Args:
        formula: logistic where its left side is a column of two labels, else least squares.
        real: the real rows.
        synthetic: a release, whose own estimates are compared; or rows.
        schema: of both.

    Returns:
        `formula`, `kind`, `from` ("release" or "rows"), `terms`: each with `term`, `real`, `real_error`, `synthetic`,
        `synthetic_error`, `difference` in the real standard error, `same_sign`, `same_significance` at 5 %.

    Raises:
        ConfigError: it is no formula of these columns.
        EstimateError: the release does not answer it.
    """
    require_able(schema, CONCLUSIONS)
    frame = _frame(real, schema)
    read = read_formula(formula, list(frame.columns))
    logistic = bool(read.left_column) and isinstance(frame[read.left_column].dtype, pd.CategoricalDtype)
    family = LOGISTIC if logistic else LINEAR
    design = read.design(frame, logistic=logistic)
    if isinstance(synthetic, ReleaseValue):
        fitted = fit_formula(questions_of(synthetic), formula, None, "population", family)
        assert isinstance(fitted, Regression)
        params, error, statistics = fitted.params, fitted.bse, fitted.tvalues
        design = read.design(frame, references=fitted.references, logistic=logistic)
    else:
        rows = read.design(_frame(synthetic, schema), references=design.references, logistic=logistic)
        params, error = _of_rows(rows, family, formula)
        statistics = params / np.maximum(error, _TINY)
    own, own_error = _of_rows(design, family, formula)
    terms = [
        _comparison(
            str(term), own[term], own_error[term], *(of.get(term, np.nan) for of in (params, error, statistics))
        )
        for term in own.index
    ]
    source = "release" if isinstance(synthetic, ReleaseValue) else "rows"
    return {"formula": formula, "kind": family.kind, "from": source, "terms": terms}


def _frame(table: CodedTable, schema: Schema) -> pd.DataFrame:
    return pd.DataFrame({name: values(kind, table.columns[name]) for name, kind in table_kinds(schema).items()})


def _of_rows(design: Design, family: Family, formula: str) -> tuple[pd.Series, pd.Series]:
    """Return coefficients and robust standard errors of rows taken for records."""
    what = f"the regression {formula!r}"
    solution = family.solve(design.left, design.right, design.present, what, design.terms)
    errors = np.sqrt(((solution.influence * design.present[:, None]) ** 2).sum(axis=0))
    return pd.Series(solution.params, index=list(design.terms)), pd.Series(errors, index=list(design.terms))


def _comparison(
    term: str, real: float, real_error: float, synthetic: float, synthetic_error: float, statistic: float
) -> dict[str, Any]:
    own, other = (2 * special.ndtr(-abs(z)) < _SIGNIFICANT for z in (real / max(real_error, _TINY), statistic))
    has_value = bool(np.isfinite(synthetic))
    return {
        "term": term,
        "real": float(real),
        "real_error": float(real_error),
        "synthetic": float(synthetic) if has_value else None,
        "synthetic_error": float(synthetic_error) if has_value else None,
        "difference": float((synthetic - real) / max(real_error, _TINY)) if has_value else None,
        "same_sign": has_value and bool(np.sign(real) == np.sign(synthetic)),
        "same_significance": has_value and bool(own == other),
    }
