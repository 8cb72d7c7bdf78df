"""The harness's table, and named questions about it at made-up coefficients, many of whose scores are clipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.columns.kinds import Boolean, Categorical, Integer
from sfumato.inference.score_designs import score_design
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.score_query import ONE, ScoreQuery
from sfumato.methods.tables.question_sums import QuestionPart, QuestionSums, weights_of
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

TABLE = Schema(
    columns={
        "age": Integer(lower=0, upper=99, nullable=True),
        "city": Categorical(categories=("a", "b", "c"), other="z"),
        "paid": Integer(lower=-5, upper=2 * 10**6),
        "member": Boolean(),
    },
    rows=100,
)
"""The plain table of the harness."""
COLUMNS = {column.name: column for column in Grid.of(TABLE, numeric_cells=64).columns}
REGRESSIONS = {
    "ols: age ~ C(city) * paid": "identity",
    "ols: paid ~ age": "identity",
    "logit: member ~ paid + C(city)": "logit",
    "poisson: age ~ paid": "log",
}


def aimed_scores(*questions: str, scale: float = 3.0, weight: str = "") -> ScoreQuery:
    """Scores at coefficients and in a turn that no record has a say in; of a larger scale more are clipped."""
    rng = np.random.default_rng(sum(map(len, questions)))
    equations = []
    for question in questions:
        equation = score_design(question, question.partition(": ")[2], REGRESSIONS[question], COLUMNS)
        coefficients = np.rint(rng.normal(0, 0.3, equation.coefficients.size) * ONE).astype(np.int64)
        equations.append(replace(equation, coefficients=coefficients))
    k = sum(equation.coefficients.size for equation in equations)
    turn = np.rint(scale * rng.normal(0, 1, (k, k)) * ONE).astype(np.int64)
    return ScoreQuery(tuple(equations), turn, weight)


def question_sums(shares=(1.0, 3.0), *, scale: float = 3.0, column: str = "") -> QuestionSums:
    """A table, and two regressions as one vector."""
    first, _, second, *_ = REGRESSIONS  # whose left sides move alone, so that two records may point opposite ways
    axes = (Cells.of(COLUMNS["city"]), Cells.of(COLUMNS["member"]))
    queries = [MarginalQuery((axes,), weight=column), aimed_scores(first, second, scale=scale, weight=column)]
    parts = zip(queries, weights_of(shares), strict=True)
    return QuestionSums(tuple(QuestionPart(f"part {i}", q, w) for i, (q, w) in enumerate(parts)), column)
