"""Scores of several regressions as one vector: what is measured once costs less than what is measured apart."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import ConfigError
from sfumato.inference.score_designs import aim_equation, joint_scores, outlined, score_design
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.score_query import ONE
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

N = 20_000
SCHEMA = Schema(
    columns={
        "x": Continuous(lower=0, upper=1),
        "year": Integer(lower=2000, upper=2020),
        "y": Continuous(lower=0, upper=1),
        "z": Continuous(lower=0, upper=1),
        "sex": Categorical(categories=("f", "m")),
    },
    rows=N,
)
COLUMNS = {column.name: column for column in Grid.of(SCHEMA, numeric_cells=512, narrow=True).columns}
RNG = np.random.default_rng(0)
CODES = {name: RNG.random(N) for name in ("x", "year")} | {"sex": RNG.integers(0, 2, N).astype(np.float64)}
CODES["y"] = np.clip(0.3 + 0.3 * CODES["year"] + RNG.normal(0, 0.1, N), 0, 1)
CODES["z"] = np.clip(0.5 + 0.1 * CODES["x"] + RNG.normal(0, 0.1, N), 0, 1)
MEASURED: Any = SimpleNamespace(base=BaseCells(CODES), size=float(N))
WEIGHTS = np.ones(N)


def aimed(*formulas: str):
    equations = [score_design(f"ols: {formula}", formula, "identity", COLUMNS) for formula in formulas]
    return [aim_equation(equation, MEASURED, WEIGHTS) for equation in equations]


def noise_of(query, noise: float) -> list[np.ndarray]:
    """Standard deviations of what the noise of a sum does to each regression's coefficients ÷ their sampling errors."""
    turn, found, start = np.linalg.inv(query.turn / ONE), [], 0
    for equation in query.equations:
        left, terms = equation.sides(MEASURED.base)
        right = np.stack(terms, axis=1)
        inverse = np.linalg.inv(right.T @ right)
        scores = right * equation.residual(left, terms)[:, None]
        own = slice(start, start + right.shape[1])
        covariance = inverse @ (turn @ turn.T)[own, own] @ inverse
        sampling = inverse @ (scores.T @ scores) @ inverse
        found.append(noise * np.sqrt(np.diagonal(covariance) / np.diagonal(sampling)))
        start = own.stop
    return found


def test_together_is_narrower_than_apart():
    formulas = ("y ~ x + C(sex)", "z ~ x + year", "x ~ year + C(sex)")
    shares = np.full(3, 1 / 3)
    together = joint_scores(aimed(*formulas), MEASURED, [WEIGHTS] * 3, shares, 5.0)
    for formula, joint in zip(formulas, noise_of(together, 5.0), strict=True):
        noise = 5.0 * np.sqrt(3)
        [alone] = noise_of(joint_scores(aimed(formula), MEASURED, [WEIGHTS], np.ones(1), noise), noise)
        assert 0.4 < np.median(joint / alone) < 0.9, formula
    clipped = np.linalg.norm(together.scores(MEASURED.base), axis=1) > 0.999 * ONE
    assert clipped.mean() < 0.05


def test_two_regressions_of_one_left_side_share_what_they_have_in_common():
    """Nearly the same scores twice cost little more than once: apart they would cost √2 times as much."""
    formulas = ("y ~ x", "y ~ x + C(sex)")
    first, _ = noise_of(joint_scores(aimed(*formulas), MEASURED, [WEIGHTS] * 2, np.full(2, 0.5), 5.0), 5.0)
    [alone] = noise_of(joint_scores(aimed(formulas[0]), MEASURED, [WEIGHTS], np.ones(1), 5.0), 5.0)
    assert np.median(first / alone) < 1.25


def test_a_larger_share_has_less_noise():
    formulas = ("y ~ x + C(sex)", "z ~ x + year")
    much, little = (
        noise_of(joint_scores(aimed(*formulas), MEASURED, [WEIGHTS] * 2, np.array([share, 1 - share]), 5.0), 5.0)[0]
        for share in (0.8, 0.2)
    )
    assert (1.3 * much < little).all()


def test_terms_far_from_zero_are_not_drawn_to_it():
    """Of years from 2000 to 2020 the constant nearly is a sum: a ridge in the term's own unit ruled the slope."""
    [equation] = aimed("y ~ year")
    left, terms = equation.sides(MEASURED.base)
    right = np.stack(terms, axis=1)
    expected = np.linalg.lstsq(right, left, rcond=None)[0]
    np.testing.assert_allclose(equation.coefficients / ONE, expected, rtol=0.01)


FORMULAS = {
    "y ~ x + C(sex)": "identity", "z ~ x + year": "identity", "y ~ poly(x, 3)": "identity",
    "x ~ y * C(sex)": "identity", "I(sex == 'f') ~ x + y": "logit", "y ~ x + C(sex) + z": "log",
}  # fmt: skip


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.filterwarnings("error")
def test_rows_that_say_nothing_are_turned_all_the_same(seed):
    """What is measured is charged by then: equal rows, twins and no weight at all end in a turn, too."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 5, 200]))

    def codes() -> np.ndarray:
        values, kind = np.full(n, rng.random()), rng.integers(5)
        if kind == 1:
            values[0] = rng.random()
        return [values, values, rng.random(n), 0.5 + rng.normal(0, 1e-9, n), rng.integers(0, 2, n) / 1.0][kind]

    rows = {name: codes() for name in ("x", "year", "y", "z")}
    rows["sex"] = (rng.random(n) < rng.choice([0, 1e-3, 0.5, 1])).astype(np.float64)
    rows["y"] = rows["x"].copy() if rng.random() < 0.3 else rows["y"]
    measured: Any = SimpleNamespace(base=BaseCells(rows), size=float(rng.choice([1, 200, 1e6])))
    chosen = rng.choice(len(FORMULAS), rng.integers(1, 4), replace=False)
    made = [np.ones(n), np.zeros(n), rng.random(n) ** 8, 1e6 * np.eye(1, n)[0], rng.normal(size=n) * 1e-9]
    weights = [made[rng.integers(5)] for _ in chosen]
    equations = [
        aim_equation(score_design(formula, formula, link, COLUMNS), measured, own)  # type: ignore[arg-type]
        for (formula, link), own in zip([list(FORMULAS.items())[i] for i in chosen], weights, strict=True)
    ]
    shares, noise = np.full(len(equations), 1 / len(equations)), float(10 ** rng.uniform(-6, 6))
    query = joint_scores(equations, measured, weights, shares, noise)
    assert np.abs(query.turn).max() > 0
    assert np.linalg.norm(query.scores(measured.base), axis=1).max() <= ONE


LABELS = Schema(
    columns={
        "x": Continuous(lower=0, upper=1),
        "age": Integer(lower=0, upper=3),
        "y": Continuous(lower=0, upper=1, nullable=True),
        "a": Categorical(categories=("f", "m")),
        "b": Categorical(categories=("u", "v", "w"), nullable=True),
        "c": Categorical(categories=("p", "q", "r", "s")),
    },
    rows=N,
)
LABEL_COLUMNS = {column.name: column for column in Grid.of(LABELS, numeric_cells=512, narrow=True).columns}


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x", "y ~ 1", "y ~ x + a", "y ~ a*b", "y ~ 0 + a:b", "y ~ a:b", "y ~ x:a + x", "y ~ x*a*b", "y ~ b/x",
        "y ~ C(age)*x", "y ~ C(b, contr.sum) + a - 1", "y ~ C(x > .5)*a", "y ~ 0 + x:a:b + a:x",
        "y ~ (a + b + c)^2 - a",
        "y ~ I(x > .5):a + C(b, levels=['u', 'v', 'w'])", "y ~ poly(x, 3):a + a", "a ~ x + C(b):C(c)",
        "y ~ C(floor(3*x))", "y ~ poly(x, 2, raw=TRUE)*age + I(x**2)",
    ],
)  # fmt: skip
def test_a_formula_has_as_many_terms_by_its_text_as_it_evaluates_to(formula: str):
    link = "logit" if formula.startswith("a ") else "identity"
    known, told = (design("q", formula, link, LABEL_COLUMNS) for design in (score_design, outlined))
    assert told.coefficients.size == known.coefficients.size
    assert told.columns == known.columns
    assert told.fits()
    assert [(line > 0).sum() for line in told.products[:1]] == [(line > 0).sum() for line in known.products[:1]]


def test_too_many_terms_are_refused_by_their_text():
    for design in (score_design, outlined):
        with pytest.raises(ConfigError, match="at most 64 terms in the question 'q', got 96"):
            design("q", "y ~ a*b*c*age*I(x**2)", "identity", LABEL_COLUMNS)
