"""Formulas: columns called as functions are, names with blanks, transforms by what other rows hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import ConfigError
from sfumato.inference.formulas import read_formula

N = 4_000
RNG = np.random.default_rng(5)
X = RNG.normal(size=N)
FRAME = pd.DataFrame(
    {
        **{name: X for name in ("x", "center", "C", "log", "mean", "np", "I", "df", "a.b", "max", "a b")},
        "y": 1 + 2 * X,
        "Q": pd.Categorical(np.where(X > 0, "v", "u")),
        "gap": np.where(X > 1, np.nan, X),
    }
)
PLAIN = ["x", "center", "C", "log", "mean", "np", "I", "df", "a.b", "max", "`a b`", "Q('a b')"]


def design(text: str, weights: np.ndarray | None = None):
    return read_formula(text, list(FRAME.columns)).design(FRAME, weights, logistic=False)


@pytest.mark.parametrize("name", PLAIN)
def test_a_column_may_be_called_as_a_function_is(name: str) -> None:
    found = design(f"y ~ {name}")
    assert np.array_equal(found.right[:, 1], X)
    assert found.terms == ("Intercept", "a b" if " " in name else name)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("y ~ center(center)", "center(center)"),
        ("y ~ I(I ** 2)", "I(I ** 2)"),
        ("y ~ np.exp(np)", "np.exp(np)"),
        ("y ~ scale(`a b`)", "scale(`a b`)"),
        ("y ~ C(Q)", "C(Q)[T.u]"),
        ("y ~ Q", "Q[T.u]"),
        ("y ~ bs(df, df=3)", "bs(df, df=3)[1]"),
        ("y ~ x:`a b`", "x:a b"),
        ("y ~ abs(max)", "abs(max)"),
        ("y ~ x.abs()", "x.abs()"),
        ("y ~ I(Q == 'x')", "I(Q == 'x')"),
    ],
)
def test_a_name_before_a_parenthesis_is_a_function_and_terms_keep_the_names(text: str, term: str) -> None:
    assert design(text).terms[1] == term


def test_transforms_count_rows_by_their_weights_and_leave_out_missing_values() -> None:
    weights = np.where(X > 0, 3.0, 1.0)
    for name in ("x", "gap"):
        values = FRAME[name].to_numpy()
        there = ~np.isnan(values)
        middle = np.average(values[there], weights=weights[there])
        spread = np.sqrt(np.average((values[there] - middle) ** 2, weights=weights[there]))
        found = design(f"y ~ center({name}) + scale({name})", weights)
        assert np.allclose(found.right[there, 1], values[there] - middle)
        assert np.allclose(found.right[there, 2], (values[there] - middle) / spread)
        assert np.array_equal(found.present, there.astype(float))


def test_polynomials_are_without_correlation_under_the_weights() -> None:
    weights = np.where(X > 0, 3.0, 1.0)
    found = design("y ~ poly(x, 3)", weights).right[:, 1:]
    assert np.allclose((found * weights[:, None]).T @ found, np.eye(3), atol=1e-8)
    assert np.allclose(weights @ found, 0.0, atol=1e-6)
    assert np.allclose(design("y ~ poly(x, 2, raw=True)").right[:, 2], X**2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y ~ lag(x)", "no order"),
        ("y ~ zz", "got 'zz'"),
        ("y ~ scale(zz)", "got 'zz'"),
        ("y ~ `z z`", "got 'z z'"),
        ("y ~ 0", "at least one term"),
        ("y ~ x | center", "one left and one right"),
        ("1 ~ 1", "got none"),
        ("y ~ np.log(0 * x)", "infinite"),
        ("y + x ~ C", "one column of numbers on the left"),
        ("y ~ scale(Q)", "cannot be evaluated|can be evaluated"),
        ("y ~ (x", "got 'y ~ \\(x'"),
        ("", "both sides"),
    ],
)
def test_what_is_no_formula_of_the_columns_is_refused_in_their_names(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        design(text)
    assert "of_the_formula" not in str(caught.value)


@pytest.mark.parametrize("text", [None, 3, ["y ~ x"], b"y ~ x", np.array(["y"])])
def test_other_things_are_no_formulas(text: object) -> None:
    with pytest.raises(ConfigError, match="Expected formula to be"):
        read_formula(text, ["x", "y"])


def test_labels_are_compared_with_the_commonest_unless_the_formula_names_one() -> None:
    labels = pd.Categorical(["u"] * 2 + ["v"] * 5 + ["w"] * 3, categories=["u", "v", "w"])
    frame = pd.DataFrame({"y": np.arange(10.0), "q": labels})
    found = read_formula("y ~ C(q)", ["y", "q"]).design(frame, logistic=False)
    assert found.terms == ("Intercept", "C(q)[T.u]", "C(q)[T.w]")
    assert found.references == {"q": "v"}
    weighted = read_formula("y ~ C(q)", ["y", "q"]).design(frame, np.where(labels == "w", 9.0, 1.0), logistic=False)
    assert weighted.references == {"q": "w"}
    own = read_formula('y ~ C(q, contr.treatment("u"))', ["y", "q"]).design(frame, logistic=False)
    assert own.references == {}
