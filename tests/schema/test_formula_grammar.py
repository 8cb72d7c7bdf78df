"""Formulas of strangers: nothing of them runs, and what is too much is refused before it is expanded."""

from __future__ import annotations

import time

import pytest

from sfumato.errors import ConfigError, SchemaError
from sfumato.schema.formula_grammar import MOST_TERMS, formula_terms
from sfumato.schema.named_questions import read_question

DEEP = 100_000
LETTERS = "+".join("abcdefghij")

RUNS = [  # what ran, or could, where a library evaluated the text
    "y ~ I(x * (1 + 0*__import__('os').system('touch ran')))",
    "y ~ __import__('os').system('touch ran')",
    "y ~ I(open('ran', 'w'))",
    "y ~ eval('1')",
    "y ~ exec('1')",
    "y ~ getattr(x, 'a')",
    "y ~ type(x)",
    "y ~ print(x)",
    "y ~ C(__import__('os'))",
    "y ~ C(x, levels=open('ran', 'w'))",
    "y ~ C(x, contr.custom({}))",
    "y ~ C(x, print(1))",
    "y ~ bs(x, knots=print(1))",
    "y ~ x.abs()",
    "y ~ I((x).values)",
    "y ~ I(x)[0]",
    "y ~ x[0]",
    "y ~ I(x[0])",
    "y ~ I((lambda: 1)())",
    "y ~ I((lambda x: x)(x))",
    "y ~ I(f'{x}')",
    'y ~ f"{__import__(1)}"',
    "y ~ I([a for a in x])",
    "y ~ I({1: 2})",
    "y ~ I(x := 3)",
    "y ~ I(x if 1 else 2)",
    "y ~ I(x, x)",
    "y ~ I(*x)",
    "y ~ np.random.seed(1)",
    "y ~ np.load('ran')",
    "y ~ numpy.fromfile('ran')",
    "y ~ math.log(x)",
    "y ~ hashed(x, levels=3)",
    "y ~ x; import os",
    "y ~ x\nimport os",
    "y ~ I(x) if 1 else 2",
    "y ~ 'x'",
    "y ~ @x",
    "y ~ x \\ z",
]

TOO_MUCH = [
    f"y ~ ({LETTERS})**40",
    f"y ~ ({LETTERS})**8",
    f"y ~ ({LETTERS})**99999999999999999999",
    "y ~ " + "*".join("(" + "+".join(f"{a}{i}" for i in range(10)) + ")" for a in "abcd"),
    "y ~ " + "*".join(f"a{i}" for i in range(18)),
    "y ~ " + ":".join(f"a{i}" for i in range(18)),
    "y ~ " + "+".join(f"a{i}" for i in range(MOST_TERMS + 1)),
    "y ~ " + "+".join(f"a{i}" for i in range(1_000_000)),
    "y ~ (" + "+".join(f"a{i}" for i in range(60)) + ")**4",
    "y ~ " + "(" * DEEP + "x" + ")" * DEEP,
    "y ~ " + "(" * 4_000 + "x" + ")" * 4_000,
    "y ~ I(" + "(" * 4_000 + "x" + ")" * 4_000 + ")",
    "y ~ " + "log(" * 1_500 + "x" + ")" * 1_500,
    "y ~ I(" + "-" * 9_000 + "x)",
    "y ~ I(" + "~" * 9_000 + "(x > 1))",
    "y ~ I(" + "-".join("x" * 4_000) + ")",
    "y ~ I(" + "**".join("x" * 2_000) + ")",
    "y ~ C(x, levels=" + "[" * 9_000,
    "y ~ poly(x, 1000000)",
    "y ~ bs(x, df=1000000)",
    "y ~ cr(x, knots=[" + ",".join("1" * 1_000) + "])",
]


@pytest.mark.parametrize("text", RUNS)
def test_nothing_beyond_the_grammar_is_read(text: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^Expected a formula .*\.$") as caught:
        formula_terms(text)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_what_is_too_much_is_refused_before_it_is_expanded(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ConfigError, match=r"most|of 1 to|at most") as caught:
        formula_terms(text)
    assert time.process_time() - start < 0.5
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", [*RUNS, *TOO_MUCH], ids=range(len(RUNS) + len(TOO_MUCH)))
def test_a_question_with_such_a_formula_is_none(text: str) -> None:
    with pytest.raises(SchemaError):
        read_question({"ols": text})


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("y ~ x", ["", "x"]),
        ("y ~ 0 + x", ["x"]),
        ("y ~ x - 1", ["x"]),
        ("y ~ -1 + x + 1", ["x", ""]),
        ("y ~ (0 + x)", ["", "x"]),
        ("y ~ a * b", ["", "a", "b", "a:b"]),
        ("y ~ a / b", ["", "a", "a:b"]),
        ("y ~ b %in% a", ["", "a", "a:b"]),
        ("y ~ (a + b + c)^2 - a:b", ["", "a", "a:c", "b", "b:c", "c"]),
        ("y ~ a:(b + c) + a", ["", "a:b", "a:c", "a"]),
        ("y ~ x + x:x + x**3", ["", "x"]),
        ("y ~ x + z - x", ["", "z"]),
        ("y ~ Q('a b') + `c d` + `1`", ["", "a b", "c d", "1"]),
        ("y ~ I( (x+1)**2 ) + I(-x**2 - -z)", ["", "I((x + 1) ** 2)", "I(-x ** 2 - -z)"]),
        ("y ~ I(x^2) + I(x %% 2) + I(x %/% 2)", ["", "I(x ** 2)", "I(x % 2)", "I(x // 2)"]),
        ('y ~ I(w=="a" & x>1 | !(x<3))', ["", "I((w == 'a') & (x > 1) | ~(x < 3))"]),
        ("y ~ x > 2", ["", "x > 2"]),
        ("y ~ w == 'a' + x", ["", "w == 'a'", "x"]),
        ("y ~ {x*2}", ["", "x * 2"]),
        ("y ~ np.log(x)+log( x )", ["", "np.log(x)", "log(x)"]),
        ("y ~ C(z,levels=c('a',\"b\"))", ["", "C(z, levels=['a', 'b'])"]),
        ("y ~ poly(x,2,raw=TRUE)", ["", "poly(x, 2, raw=True)"]),
        ("y ~ x.y + Größe", ["", "x.y", "Größe"]),
    ],
)
def test_terms_are_those_of_the_notation(text: str, terms: list[str]) -> None:
    assert [":".join(factor.factor for factor in term) for term in formula_terms(text).right] == terms


def test_columns_are_names_that_nothing_follows_as_a_call() -> None:
    read = formula_terms("log(log) ~ I(`a b` + Q('c') > 2) + C(C, levels=['x']) + max.x")
    assert read.columns == ("C", "a b", "c", "log", "max.x")
    assert read.functions == ("C", "I", "log")
