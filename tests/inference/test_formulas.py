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
        ("y ~ x.abs()", "none of its functions"),
        ("y ~ x.values", "got 'x.values'"),
        ("y ~ np.pi", "got 'np.pi'"),
        ("y ~ I(9**9**9)", "infinite"),
        ("y ~ x + I(10**400 * x)", "infinite"),
        ("y ~ I(Q * 2)", "numbers"),
        ("y ~ I('a' * 1000000000)", "numbers"),
        ("y ~ I(Q == 3)", "in quotes"),
        ("y ~ I(Q < 'u')", "no order"),
        ("y ~ I(x & 1)", "conditions"),
        ("y ~ C(Q, levels=['u'])", "leave out 'v'"),
        ("y ~ C(Q, contr.treatment('w'))", "can be evaluated"),
        ("y ~ poly(poly(x, 2), 2)", "can be evaluated"),
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


PLAIN_DATA = pd.DataFrame(
    {
        "y": RNG.normal(size=200),
        "x": RNG.normal(size=200),
        "z": RNG.random(200) + 1,
        "gap": np.where(RNG.random(200) < 0.1, np.nan, RNG.normal(size=200)),
        "a": pd.Categorical(RNG.choice(list("uvw"), 200)),
        "b": pd.Categorical(RNG.choice(list("pq"), 200)),
    }
)
HONEST = [
    "y ~ x",
    "y ~ x + z + a",
    "y ~ 0 + a + x",
    "y ~ x - 1",
    "y ~ -1 + a:b",
    "y ~ a * b",
    "y ~ x * a * b",
    "y ~ (x + z + a)**2",
    "y ~ (x + z + a)^3 - x:z:a",
    "y ~ b / a",
    "y ~ a %in% b",
    "y ~ a:x + b",
    "y ~ x + I(x**2) + I(x**3)",
    "y ~ log(z) + sqrt(z) + exp(x) + abs(x)",
    "log(z) ~ np.exp(x) + np.log10(z) + np.sqrt(z)",
    "y ~ center(x) * b",
    "y ~ poly(x, 3)",
    "y ~ poly(x, 2, raw=True) + a",
    "y ~ bs(x, df=5)",
    "y ~ bs(x, knots=[-1, 0, 1], degree=2)",
    "y ~ cr(x, df=4) + b",
    "y ~ cs(x, 4)",
    "y ~ cc(x, df=3)",
    "y ~ C(a)",
    "y ~ C(a, contr.treatment('v')) * x",
    'y ~ C(a, contr.treatment(base="w"))',
    "y ~ C(a, Treatment('v'))",
    "y ~ C(a, contr.sum) + C(b, contr.sum)",
    "y ~ C(a, Sum):x",
    "y ~ C(a, contr.helmert)",
    "y ~ C(a, contr.diff)",
    "y ~ C(a, contr.poly)",
    "y ~ C(a, contr.SAS('u'))",
    "y ~ C(a, levels=['w', 'u', 'v'])",
    "y ~ I(a == 'u') + I(a != 'v'):x",
    "y ~ I((x > 0) & (z < 1.5)) + I((x > 1) | ~(z < 1.2))",
    "y ~ {x > 0} + {x * z}",
    "y ~ C(x > 0)",
    "I(a == 'u') ~ x + z",
    "y ~ np.where(x > 0, x, 0) + np.maximum(x, 1)",
    "y ~ gap + gap:a",
    "y ~ I(x % 2) + I(x // 2) + I(-x + 2 * (z - 1) / 3)",
]


@pytest.mark.parametrize("text", HONEST)
def test_honest_formulas_have_the_terms_and_coefficients_of_formulaic(text: str) -> None:
    import formulaic

    theirs = formulaic.Formula(text).get_model_matrix(PLAIN_DATA, context={"sqrt": np.sqrt, "np": np})
    ours = read_formula(text, list(PLAIN_DATA)).design(PLAIN_DATA, references={"a": "u", "b": "p"}, logistic=False)
    there = ours.present > 0
    if "raw" not in text:  # whose terms formulaic counts from 0
        assert list(ours.terms) == list(theirs.rhs.columns)
    left, right = (np.asarray(side, dtype=np.float64) for side in (theirs.lhs, theirs.rhs))
    wanted, *_ = np.linalg.lstsq(right, left[:, 0], rcond=None)
    found, *_ = np.linalg.lstsq(ours.right[there], ours.left[there], rcond=None)
    np.testing.assert_allclose(ours.right[there], right, atol=1e-9)
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_formulaic_evaluates_no_text(monkeypatch) -> None:
    from formulaic.materializers.base import FormulaMaterializer

    monkeypatch.delattr(FormulaMaterializer, "_evaluate")
    assert design("y ~ log(1 + x**2) * C(Q, contr.sum) + poly(x, 2) + {x > 1}").right.shape[1] == 7


def test_a_column_may_be_called_as_a_number_or_hold_a_backtick() -> None:
    frame = pd.DataFrame({"1": X, "a`b": X**2, "": X, "y": X})
    found = read_formula("y ~ `1` + Q('a`b') + center(Q('a`b')) + Q('')", list(frame)).design(frame, logistic=False)
    assert found.terms == ("Intercept", "1", "a`b", "center(Q('a`b'))", "")
    assert found.of_terms == (frozenset(), {"1"}, {"a`b"}, {"a`b"}, {""})


def test_terms_are_the_same_however_they_are_written() -> None:
    one, other = (
        read_formula(text, list(FRAME)).terms
        for text in ("y ~ log( x )*I((x)**2)+`a b`", "y ~ I(x ** 2):log(x) + Q('a b') + I(x**2) + log(`x`)")
    )
    assert one == other


def test_labels_that_make_too_many_terms_are_refused_before_they_do() -> None:
    frame = pd.DataFrame({"y": np.arange(40.0), "a": np.arange(40.0), "b": np.arange(40.0)})
    with pytest.raises(ConfigError, match="1,000 terms"):
        read_formula("y ~ C(a):C(b)", list(frame)).design(frame, logistic=False)
