"""Natural mistakes, in Python and on the command line: each message says what was expected, what came, what to do."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.cli.app import run
from sfumato.errors import SfumatoError, did_you_mean

FRAME = pd.DataFrame({"age": np.arange(20, 60), "country": ["AT", "DE"] * 20})
SCHEMA = """rows: 40
columns:
  age: {kind: integer, lower: 0, upper: 120}
  country: {kind: categorical, categories: [AT, DE]}
"""
FACTS = {"age": {"kind": "integer", "lower": 0, "upper": 120}, "country": "categorical"}


@pytest.fixture(scope="module")
def schema():
    return sfumato.describe(
        FRAME, {**FACTS, "country": {"kind": "categorical", "categories": ["AT", "DE"]}}, rows=len(FRAME)
    )


@pytest.fixture(scope="module")
def release(schema):
    return sfumato.fit(FRAME, schema, epsilon=1.0, seed=0)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: sfumato.fit(FRAME, eps=1.0), ("got 'eps'", "Did you mean 'epsilon'?")),
        (lambda: sfumato.fit(FRAME), ("Expected epsilon, got none", "Try epsilon=1.0")),
        (lambda: sfumato.fit(FRAME, epsilon=1.0), ("Expected delta or a public number of rows", "Add delta=1e-6")),
        (lambda: sfumato.fit(FRAME, epsilon=1.0, method="max_entropy"), ("max-entropy", "Did you mean 'max-entropy'?")),
        (lambda: sfumato.fit(FRAME, epsilon=-1.0, delta=1e-6), ("a number above 0", "got epsilon=-1.0")),
        (lambda: sfumato.fit({"a": [1, 2]}, epsilon=1.0), ("a dict of list", "pandas.DataFrame(data)")),
        (lambda: sfumato.fit([{"a": 1}], epsilon=1.0), ("type list", "Make a data frame of it")),
        (lambda: sfumato.fit(np.zeros((9, 3)), epsilon=1.0), ("named columns, got an array", "pandas.DataFrame(array")),
        (lambda: sfumato.fit("nothing.csv", epsilon=1.0), ("a file that exists, got nothing.csv", "Check the path")),
        (lambda: sfumato.describe(FRAME, {"age": [0, 120]}), ("a list of two numbers", "bounds as a tuple, (0, 120)")),
        (lambda: sfumato.describe(FRAME, {"age": {"kind": "int"}}), ("kind='int'", "Did you mean 'integer'?")),
        (
            lambda: sfumato.describe(FRAME, {"age": {"kind": "integer", "low": 0, "upper": 9}}),
            ("got 'low'", "Did you mean 'lower'?"),
        ),
        (lambda: sfumato.describe(FRAME, {"age": {"kind": "(0, 120)"}}), ("Such as {kind: integer, lower: 0, upper",)),
        (lambda: sfumato.Schema(columns={"age": (0, 120)}), ("'age': expected a column kind", "Schema.from_dict")),  # type: ignore[dict-item]
        (lambda: sfumato.fit(FRAME, method=sfumato.MaxEntropy), ("MaxEntropy(epsilon=1.0), got the class MaxEntropy",)),  # type: ignore[arg-type]
        (lambda: sfumato.fit(FRAME, epsilon=1.0, settings={"epsilon": 2.0}), ("an argument of its own", "settings")),
        (lambda: sfumato.fit(FRAME, epsilon=1.0, settings={"marginal_shre": 0.2}), ("Did you mean 'marginal_share'",)),
        (lambda: sfumato.describe(FRAME, ["age"]), ("a mapping from names", "got a list", "{'age': 'integer'}")),
        (lambda: sfumato.describe(FRAME, unit=5), ("{column: person, max_rows: 5}", "got 5")),
        (lambda: sfumato.describe(FRAME, unit="aeg"), ("got no column 'aeg'", "Did you mean 'age'?")),
    ],
)
def test_before_a_fit(call, parts):
    with pytest.raises(SfumatoError) as caught:
        call()
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_target_is_misspelt(schema):
    with pytest.raises(SfumatoError, match=r"got target=.contry.*Did you mean .country."):
        sfumato.fit(FRAME, schema, epsilon=1.0, target="contry")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda r: r.mean("agee"), ("got 'agee'", "Did you mean 'age'?")),
        (lambda r: r.mean("age", by="contry"), ("got 'contry'", "Did you mean 'country'?")),
        (lambda r: r.mean("country"), ("got 'country' of labels", "Ask of its shares")),
        (lambda r: r.share({"country": "FR"}), ("'AT', 'DE'", "got 'FR'")),
        (lambda r: r.sample(5, given={"contry": "AT"}), ("got 'contry'", "Did you mean 'country'?")),
        (lambda r: r.sample("10"), ("a whole number", "got n='10'")),
    ],
)
def test_of_a_release(release, call, parts):
    with pytest.raises(SfumatoError) as caught:
        call(release)
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (("fti", "p.csv"), ("No such command 'fti'", "Did you mean 'fit'?")),
        (("fit", "p.csv", "--shema", "s.yaml", "--out", "r"), ("No such option: --shema", "--schema")),
        (("fit", "p.csv", "--schema", "s.yaml", "--out", "r"), ("Expected --epsilon", "--epsilon 1")),
        (("plan", "--schema", "s.yaml"), ("got none", "such as --epsilon 1")),
        (("plan", "--schema", "s.yaml", "--epsilon", "1", "--target", "contry"), ("Did you mean 'country'?",)),
        (("plan", "--schema", "s.yaml", "--epsilon", "1", "--method", "maxentropy"), ("Did you mean 'max-entropy'?",)),
        (
            ("plan", "--schema", "s.yaml", "--epsilon", "1", "--set", "marginal_shre=.3"),
            ("'marginal_shre'", "Did you mean 'marginal_share'?"),
        ),
        (("plan", "--schema", "t.yaml", "--epsilon", "1"), ("t.yaml", "Check the path")),
    ],
)
def test_on_the_command_line(tmp_path, monkeypatch, capsys, call, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SCHEMA, encoding="utf-8")
    FRAME.to_csv(tmp_path / "p.csv", index=False)
    assert run(list(call)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert [part for part in parts if part not in said] == []


def test_a_name_that_is_far_from_all_gets_no_guess():
    assert did_you_mean("income", ("age", "country")) == ""
    assert did_you_mean("AGE", ("age", "country")) == " Did you mean 'age'?"
