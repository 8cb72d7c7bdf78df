"""Units with their rows, features of these, and questions about them at made-up coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.inference.lag_scores import PRODUCTS, SQUARES, aim_pairs, pair_query
from sfumato.inference.score_designs import score_design
from sfumato.lenses.chain import plain_schema
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.score_query import ONE, ScoreQuery
from sfumato.methods.tables.question_sums import QuestionPart, QuestionSums, weights_of
from sfumato.records.linked import feature_records, with_features
from sfumato.records.sequences import Sequences
from sfumato.schema.grid import Grid
from sfumato.schema.linked import linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.unit_features import Lag, UnitFeature, features_in

MOST = 5
UNITS = Schema.from_dict(
    {
        "unit": {"column": "who", "max_rows": MOST, "order": "day", "constant": ["sex"], "units": 100},
        "columns": {
            "who": "identifier",
            "day": {"kind": "integer", "lower": 0, "upper": 99},
            "sex": {"kind": "categorical", "categories": ["f", "m"]},
            "score": {"kind": "continuous", "lower": -10, "upper": 90, "nullable": True},
            "state": {"kind": "categorical", "categories": ["well", "ill"]},
        },
    }
)
LAG, CENTRE, SCALE = Lag("score", 2), ONE // 3, ONE // 4
NAMED = ("mean of score", "last of score", "change of score", "ever of state=ill", "first of state")
FEATURES = features_in([*NAMED, *LAG.moments(CENTRE, SCALE)], UNITS)
TABLES, KINDS = linked_tables(plain_schema(UNITS)), plain_schema(UNITS).of_kind(TabularKind)
COLUMNS = {c.name: c for c in Grid.of(with_features(TABLES, FEATURES), numeric_cells=64, narrow=True).columns}
REGRESSION = "`change of score` ~ `mean of score` + C(sex) * C(`ever of state=ill`)"


def rows_of_units(n: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    """Rows of single units: random ones, each also with a row more; all alike; at the ends of the domain; missing."""
    rng, units = np.random.default_rng(seed), []

    def rows(size: int, score: np.ndarray) -> dict[str, np.ndarray]:
        sex = np.full(size, rng.integers(0, 2), dtype=np.int32)
        state = rng.integers(0, 2, size).astype(np.int32)
        return {"day": np.sort(rng.random(size)), "sex": sex, "score": score[:size], "state": state}

    for i in range(n):
        size, score = 1 + i % MOST, np.where(rng.random(MOST) < 0.1, np.nan, rng.random(MOST))
        units.append(rows(size, score))
        if size < MOST:
            more = rows(1, rng.random(1)) | {"day": np.ones(1), "sex": units[-1]["sex"][:1]}
            units.append({name: np.concatenate([codes, more[name]]) for name, codes in units[-1].items()})
    for size in range(1, MOST + 1):
        for score in (np.zeros(MOST), np.ones(MOST), np.arange(MOST) % 2.0, (np.arange(MOST) // 2) % 2.0):
            units.append(rows(size, score))
        units.append(rows(size, np.full(MOST, np.nan)))
    return units


def records_of(units: list[dict[str, np.ndarray]], features: list[UnitFeature] = FEATURES) -> dict[str, np.ndarray]:
    """The records of some units together."""
    sizes = np.array([unit["day"].size for unit in units])
    codes = {name: np.concatenate([unit[name] for unit in units]) for name in units[0]}
    (records,) = feature_records(TABLES, Sequences.joined(sizes, codes, TABLES.constants), features, KINDS)
    return records


def unit_pool(n: int) -> list[dict[str, np.ndarray]]:
    """Records of single units."""
    return [records_of([unit]) for unit in rows_of_units(n)]


def pair_scores(scale: float, left: int) -> ScoreQuery:
    """Scores of pairs of rows whose form no record has a say in; of a larger scale more are clipped."""
    rng = np.random.default_rng(left)
    form = rng.normal(0, 1, 6) + (np.arange(6) == left)
    values = rng.normal(0, 1 / scale, 500)
    return aim_pairs(pair_query(LAG, UNITS, CENTRE, SCALE, left), form, values, np.ones(500), 500.0, 1.0)


def unit_sums(scale: float) -> QuestionSums:
    """A table of features, a regression on them, and both parts of a correlation of pairs."""
    rng = np.random.default_rng(3)
    equation = score_design("ols: " + REGRESSION, REGRESSION, "identity", COLUMNS)
    k = equation.coefficients.size
    turn = np.rint(scale * rng.normal(0, 1, (k, k)) * ONE).astype(np.int64)
    equation = replace(equation, coefficients=np.rint(rng.normal(0, 0.3, k) * ONE).astype(np.int64))
    query = ScoreQuery((equation,), turn)
    axes = tuple(Cells.of(COLUMNS[name]) for name in ("ever of state=ill", "sex", "first of state"))
    queries = [MarginalQuery((axes,)), query, pair_scores(scale / 15, PRODUCTS), pair_scores(scale / 15, SQUARES)]
    parts = zip(queries, weights_of([1.0, 1.0, 2.0, 1.0]), strict=True)
    return QuestionSums(tuple(QuestionPart(f"part {i}", q, w) for i, (q, w) in enumerate(parts)))
