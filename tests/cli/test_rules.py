"""Rules on the command line: drafted, checked, counted, kept, shown."""

import json

import pandas as pd
import pytest

from fixtures.ruled import RULES, hospital, hospital_schema

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hospital(800).to_csv("real.csv", index=False)
    hospital_schema(rows=800).save("schema.yaml")
    return tmp_path


@pytest.mark.slow
def test_the_whole_way(folder, call):
    shown = call("schema", "check", "schema.yaml")
    assert "{order: [admitted, discharged]}" in shown.out
    assert "Not measured, since they follow from others: stay, total, group." in shown.out
    assert "Measured as a distance of at least 0: discharged, from admitted." in shown.out
    assert len(call("schema", "check", "schema.yaml", "--json").json["rules"]) == len(RULES)
    counted = call("schema", "validate", "real.csv", "--schema", "schema.yaml", "--json").json
    assert counted["rows"] == 800
    assert set(counted["rules"].values()) == {0}
    fit = ("fit", "real.csv", "--schema", "schema.yaml", "--epsilon", 2, "--target", "back", "--out", "r")
    assert call(*fit).code == 0
    assert call("sample", "r", "-n", 3000, "--out", "made.csv").code == 0
    assert set(call("schema", "validate", "made.csv", "--schema", "schema.yaml", "--json").json["rules"].values()) == {
        0
    }
    scores = call("evaluate", "table", "real.csv", "r", "--json").json["fidelity"]["rules"]
    assert scores["broken"] == {"real": 0, "synthetic": 0}
    assert "rows that break a rule" in call("evaluate", "table", "real.csv", "made.csv", "--schema", "schema.yaml").out
    assert call("report", "r", "--out", "public.html").code == 0
    page = (folder / "public.html").read_text()
    assert "Every synthetic row keeps these rules exactly" in page
    assert "{order: [admitted, discharged]}" in page
    given = call("sample", "r", "-n", 5, "--given", "stay=3", "--given", "intensive=5", "--out", "no.csv")
    assert given.code == 2
    assert "rule 3 (range)" in given.err
    assert not (folder / "no.csv").exists()


def test_broken_rows_are_counted_on_the_holders_screen(folder, call):
    frame = pd.read_csv("real.csv")
    frame.loc[:4, "total"] += 3
    frame.to_csv("real.csv", index=False)
    shown = call("schema", "validate", "real.csv", "--schema", "schema.yaml")
    assert "Rows that break a rule, of 800" in shown.out
    assert call("schema", "validate", "real.csv", "--schema", "schema.yaml", "--json").json["rules"][
        "{sum: {total: [drugs, other]}}"
    ] == 5  # fmt: skip
    frame.drop(columns="total").to_csv("real.csv", index=False)
    shown = call("schema", "validate", "real.csv", "--schema", "schema.yaml")
    assert shown.code == 1
    assert "none named 'total'" in shown.err


def test_suggestions(folder, call):
    shown = call("schema", "draft", "real.csv", "--suggest-rules", "--out", "draft.yaml")
    assert "Rules that all records keep" in shown.out
    assert "{difference: {stay: [discharged, admitted]}}" in shown.out
    text = (folder / "draft.yaml").read_text()
    assert "\n  - {sum: {total: [drugs, other]}}" in text
    assert "#  - {if: " in text
    call("schema", "draft", "real.csv", "--out", "plain.yaml")
    assert "#  - {if: " not in (folder / "plain.yaml").read_text()
    rules = call("schema", "check", "plain.yaml", "--json").json["rules"]
    assert "{order: [admitted, discharged]}" in rules
    assert not any(rule.startswith("{if") for rule in rules)


def test_wrong_rules_are_told_by_number(folder, call):
    document = json.loads(json.dumps(hospital_schema().to_dict()))
    document["rules"] = [{"order": ["admitted", "age"]}, {"never": {"sex": "man"}}]
    (folder / "bad.json").write_text(json.dumps(document))
    shown = call("schema", "check", "bad.json")
    assert shown.code == 2
    assert "rule 1 (order)" in shown.err
    assert "rule 2 (never)" in shown.err
