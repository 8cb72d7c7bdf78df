"""`--risk` in place of `--epsilon`, and what the commands say of attackers."""

import pytest

from fixtures import tables
from sfumato import load


@pytest.fixture
def schema(tmp_path):
    tables.schema().save(tmp_path / "s.yaml")
    return tmp_path / "s.yaml"


def test_a_plan_keeps_a_risk(call, schema):
    shown = call("plan", "--schema", schema, "--rows", 20_000, "--risk", "advantage=0.1")
    assert "beat a coin by more than 10 of 100" in shown.out
    found = call("plan", "--schema", schema, "--rows", 20_000, "--risk", "tpr=0.1,fpr=0.05", "--json")
    assert 1 < found.json["epsilon"] < 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--epsilon", "1", "--risk", "advantage=.1"], "got several"),
        (["--risk", "advantage"], "advantage=0.1 or tpr=0.1,fpr=0.05"),
        (["--risk", "tpr=0.1"], "advantage=0.1 or tpr=0.1,fpr=0.05"),
        (["--risk", "tpr=0.04,fpr=0.05"], "a coin"),
        ([], "got none"),
    ],
)
def test_other_risks_are_refused(call, schema, options, said):
    found = call("plan", "--schema", schema, "--rows", 20_000, *options)
    assert found.code
    assert said in found.err


def test_a_fit_and_its_ledger_say_the_risk(call, schema, tmp_path):
    data, out, ledger = tables.write_csv(tmp_path / "d.csv"), tmp_path / "r.sfm", tmp_path / "p.ledger"
    call("ledger", "create", ledger, "--epsilon", 5, "--delta", 1e-6)
    fit = ("fit", data, "--schema", schema, "--rows", tables.ROWS, "--risk", "advantage=0.2", "--delta", 1e-6)
    assert call(*fit, "--out", out, "--ledger", ledger).code == 0
    assert 0.199 < load(out).certificate.advantage() <= 0.2
    for command in (["certificate", out], ["ledger", "show", ledger]):
        assert "beat a coin by more than 20 of 100" in call(*command).out
    both = call(*fit, "--epsilon", 1, "--out", tmp_path / "other.sfm")
    assert "either --epsilon or --risk" in both.err
