"""Every command and flag: exit codes, keys, files; and that outputs are refused before any work."""

import errno
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import typer

import sfumato
from fixtures import tables
from sfumato import cli
from sfumato.cli import app as cli_app
from sfumato.cli import commands, data_commands, quality_commands, release_commands
from sfumato.cli.example_calls import EXAMPLES
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.io.csv import CsvSource
from sfumato.methods.registry import METHODS
from sfumato.release_front import load
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

CERTIFICATE_KEYS = {
    "format_version", "method", "versions", "private", "epsilon", "delta", "neighbours", "replace_one", "unit",
    "n_public", "n_public_source", "sampling", "accountant", "curve", "extra_delta", "events", "stages",
    "assumptions", "release",
}  # fmt: skip
EVENT_KEYS = {"stage", "type", "noise_multiplier", "sampling_probability", "count", "replace_distance"}
CLASSIFIERS = {"logistic_regression", "ada_boost", "gradient_boosting", "xgboost"}

COMMANDS = [
    (), *((name,) for name in commands.COMMANDS),
    *(tuple(full.split()) for full in EXAMPLES if " " in full),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A working directory with a table and its schema."""
    monkeypatch.chdir(tmp_path)
    tables.write_csv(tmp_path / "people.csv")
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def release(remembered_accounts, small_simulations, tmp_path_factory) -> Path:
    """A release of the table, which nobody changes."""
    home = tmp_path_factory.mktemp("fitted")
    tables.write_csv(home / "people.csv")
    (home / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert cli_app.run([str(part) for part in (*FIT, "--target", "income")]) == 0
    return home / "r"


@pytest.fixture
def fitted(folder, release) -> Path:
    """The same, with a release in `r`."""
    shutil.copytree(release, folder / "r")
    return folder


PLAN = ("plan", "--schema", "schema.yaml", "--epsilon", 1)
FIT = ("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", 1, "--out", "r")


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
    @pytest.mark.parametrize("flag", ["--help", "-h"])
    def test_every_command_explains_itself(self, call, command, flag):
        result = call(*command, flag)
        assert (result.code, result.err) == (0, "")
        assert "Usage:" in result.out
        assert len(result.out) > 200

    def test_every_command_is_in_this_list(self):
        groups = {name: getattr(commands.load_command(name), "commands", ()) for name in commands.COMMANDS}
        known = {(name,) for name in groups} | {(group, name) for group, names in groups.items() for name in names}
        assert known == set(COMMANDS) - {()}
        assert len(COMMANDS) == len(known) + 1

    def test_the_list_of_commands_is_short(self):
        """A newcomer reads all of it: what few need stands in groups, and in panels of its own among the options."""
        assert len(commands.COMMANDS) <= 14

    @pytest.mark.parametrize("name", commands.COMMANDS)
    def test_the_list_of_commands_says_what_each_says_of_itself(self, name):
        said = commands.load_command(name).help
        assert commands.COMMANDS[name].help == " ".join(said.split("\n\n")[0].split())

    def test_every_command_of_every_module_is_in_the_list(self):
        listed = {(entry.module, entry.name) for entry in commands.COMMANDS.values()}
        paths = Path(cli.__file__).parent.glob("*_commands.py")
        modules = {path.stem: importlib.import_module(f"sfumato.cli.{path.stem}") for path in paths}
        groups = {
            (stem, name): value
            for stem, module in modules.items()
            for name, value in vars(module).items()
            if isinstance(value, typer.Typer)
        }
        grouped = {command.callback for group in groups.values() for command in group.registered_commands}
        own = {
            (stem, name)
            for stem, module in modules.items()
            for name, value in vars(module).items()
            if name.endswith("_command") and value.__module__ == module.__name__ and value not in grouped
        }
        assert own | set(groups) == listed
        assert len(listed) == len(commands.COMMANDS)

    @pytest.mark.parametrize("command", [[], ["schema"], ["model"], ["evaluate"], ["publish"], ["ledger"]])
    def test_a_group_alone_shows_its_help_and_fails(self, capsys, command):
        assert cli_app.run(command) == 2
        out, err = capsys.readouterr()
        assert "Usage:" in out
        assert "rror" not in err

    def test_version(self, call):
        result = call("--version")
        assert result.code == 0
        assert result.out.startswith("sfumato ")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("nonsense",), "nonsense"),
            (("fit",), "DATA"),
            (("plan", "--schema", "s.yaml"), "--epsilon"),
            (("plan", "--schema", "s.yaml", "--epsilon", "much"), "--epsilon"),
            (("methods", "--no-such-flag"), "--no-such-flag"),
            (("methods", "surplus"), "surplus"),
            (("sample", "r", "-n", "1.5", "--out", "f.csv"), "-n"),
            (("schema", "import", "f", "--format", "other", "--out", "s.yaml"), "--format"),
        ],
    )
    def test_a_wrong_call_is_one_sentence_and_2(self, call, arguments, said):
        result = call(*arguments)
        assert (result.code, result.out) == (2, "")
        assert said in result.err
        assert result.err.count("Error:") == 1
        assert result.err.endswith(".\n")
        assert re.search(r"[^.?] See ", result.err) is None


class TestSchema:
    def test_draft_warns_in_the_file_and_on_the_screen(self, folder, call):
        result = call("schema", "draft", "people.csv", "--out", "draft.yaml")
        assert result.code == 0
        assert "read off the records" in result.out
        text = Path("draft.yaml").read_text(encoding="utf-8")
        assert text.startswith("# A draft: edit it before any release.")
        assert "READ OFF THE\n# RECORDS" in text
        assert OpenSchema.load("draft.yaml").draft

    def test_an_exact_draft_counts_the_rows(self, folder, call):
        assert call("schema", "draft", "people.csv", "--out", "draft.yaml", "--exact").code == 0
        assert Schema.load("draft.yaml").rows == tables.ROWS

    @pytest.mark.parametrize("name", ["people.parquet", "pictures.npz"])
    def test_draft_of_other_files(self, folder, call, name):
        (tables.write_npz if name.endswith("npz") else tables.write_parquet)(folder / name)
        assert call("schema", "draft", name, "--out", "draft.yaml").code == 0
        assert OpenSchema.load("draft.yaml").released

    def test_a_draft_is_no_json(self, folder, call):
        result = call("schema", "draft", "people.csv", "--out", "draft.json")
        assert (result.code, "End it in .yaml" in result.err, Path("draft.json").exists()) == (2, True, False)

    def test_check(self, folder, call):
        result = call("schema", "check", "schema.yaml", "people.csv")
        assert result.code == 0
        assert "a valid schema" in result.out
        assert "240, public" in result.out
        for name in tables.RELEASED:
            assert name in result.out

    def test_check_json(self, folder, call):
        found = call("schema", "check", "schema.yaml", "--json").json
        assert set(found) == {"valid", "rows", "columns", "closed"}
        assert set(found["closed"]) <= {entry["name"] for entry in found["columns"]}
        assert (found["valid"], found["rows"]) == (True, 240)
        assert found["columns"][:2] == [
            {"name": "id", "kind": "identifier", "released": False},
            {"name": "sex", "kind": "categorical", "released": True},
        ]

    def test_check_says_where_words_have_no_place_and_where_none_is_a_label(self, folder, call):
        columns = "columns:\n  a: [low, high]\n  b: {kind: categorical, categories: [u, v], other: w}\n"
        Path("words.yaml").write_text(f"rows: 9\n{columns}", encoding="utf-8")
        pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}).to_parquet("numbers.parquet", index=False)
        found = call("schema", "check", "words.yaml", "numbers.parquet", "--json").json
        assert found["closed"] == ["a"]
        assert found["misfits"].keys() == {"a"}
        said = call("schema", "check", "words.yaml", "numbers.parquet").out
        assert "A word outside the list counts for no label: 'a'. Add `other` or `nullable: true`" in said
        assert "No cell of 'a' is a label. Expected labels that type double can hold, got 'low'" in said

    def test_check_tells_every_fault(self, folder, call):
        Path("bad.yaml").write_text(
            "columns:\n  a: {kind: integer, lower: 3, upper: 1}\n  b: {kind: colour}\n", encoding="utf-8"
        )
        result = call("schema", "check", "bad.yaml")
        assert (result.code, result.out) == (2, "")
        assert "'a'" in result.err
        assert "'b'" in result.err

    def test_check_tells_each_question_that_a_fit_would_refuse(self, folder, call):
        text = Path("schema.yaml").read_text(encoding="utf-8")
        asked = ["ols: age ~ C(income)", "ols: age ~ I(age * 0)", "logit: age ~ weight"]
        Path("s.yaml").write_text(text + f"questions: {json.dumps(asked)}\n", encoding="utf-8")
        result = call("schema", "check", "s.yaml")
        assert (result.code, result.out) == (2, "")
        assert [words in result.err for words in ("C(income)'", "always 0", "two values")] == [
            False,
            True,
            True,
        ]
        Path("s.yaml").write_text(text + f"questions: {json.dumps([*asked, 'ols: age ~ nowhere'])}\n", encoding="utf-8")
        assert "nowhere" in call("schema", "check", "s.yaml").err
        Path("s.yaml").write_text(text + f"questions: {json.dumps(asked[:1])}\n", encoding="utf-8")
        assert asked[0] in call("schema", "check", "s.yaml").out
        assert call("schema", "check", "s.yaml", "--json").json["questions"] == asked[:1]

    def test_check_reads_no_record(self, folder, call, monkeypatch):
        monkeypatch.setattr(CsvSource, "_read", _never)
        assert call("schema", "check", "schema.yaml", "people.csv").code == 0

    def test_rows_not_declared(self, folder, call):
        Path("s.yaml").write_text("columns: {a: boolean}\n", encoding="utf-8")
        assert "not declared" in call("schema", "check", "s.yaml").out

    def test_markup_in_names_is_text(self, folder, call):
        Path("[red]:smile:.yaml").write_text("columns: {'[/b]:smile:': boolean}\n", encoding="utf-8")
        result = call("schema", "check", "[red]:smile:.yaml")
        assert result.code == 0
        assert "[red]:smile:.yaml" in result.out
        assert "[/b]:smile:" in result.out

    @pytest.mark.parametrize(
        ("format_", "text", "column"),
        [
            ("domain", '{"a": 3}', "a"),
            ("smartnoise", "db:\n  s:\n    t:\n      rows: 9\n      a: {type: boolean}\n", "a"),
        ],
    )
    def test_import(self, folder, call, format_, text, column):
        Path("theirs").write_text(text, encoding="utf-8")
        result = call("schema", "import", "theirs", "--format", format_, "--out", "ours.yaml")
        assert result.code == 0, result.err
        assert column in Schema.load("ours.yaml").columns


class TestValidate:
    def test_nothing_to_change(self, folder, call):
        tables.write_csv(folder / "people.csv", tables.frame().dropna())
        result = call("schema", "validate", "people.csv", "--schema", "schema.yaml")
        assert result.code == 0
        assert "declared domain" in result.out
        assert "do not publish" in result.err

    def test_findings(self, folder, call):
        table = tables.frame().dropna()
        table.iloc[3, table.columns.get_loc("age")] = 140
        tables.write_csv(folder / "people.csv", table)
        shown = call("schema", "validate", "people.csv", "--schema", "schema.yaml")
        assert shown.code == 0
        assert "140" in shown.out
        found = call("schema", "validate", "people.csv", "--schema", "schema.yaml", "--json").json
        assert set(found) == {"private", "findings"}
        assert found["private"] is False
        (finding,) = found["findings"]
        assert set(finding) == {"column", "problem", "becomes", "count", "examples"}
        assert (finding["column"], finding["count"], finding["examples"]) == ("age", 1, ["'140'"])


class TestPlan:
    def test_it_reads_no_record_and_prints_what_it_costs(self, folder, call):
        (folder / "people.csv").unlink()
        result = call(*PLAN, "--target", "income")
        assert result.code == 0
        assert "epsilon = 1, delta = 1e-05, for adding or removing one row" in result.out
        for said in ("Replacing one row", "marginals", "Gaussian", "50%", "standard error of a 1-way share"):
            assert said in result.out

    def test_json(self, folder, call):
        plan = call(*PLAN, "--target", "income", "--json").json
        assert set(plan) == CERTIFICATE_KEYS - {"private", "release"}
        assert plan["epsilon"] <= 1
        assert (plan["delta"], plan["n_public"], plan["n_public_source"]) == (1e-5, 240, "declared")
        assert plan["neighbours"] == "add_remove"
        assert set(plan["replace_one"]) == {"epsilon", "delta"}
        assert set(plan["accountant"]) == {"name", "value_discretization_interval"}
        assert plan["unit"] == {"name": "row", "max_rows": 1}
        assert all(set(event) == EVENT_KEYS for event in plan["events"])
        for stage in plan["stages"]:
            assert {"name", "epsilon_alone", "share"} <= set(stage)
            assert stage["forecast"]
        assert sum(stage["share"] for stage in plan["stages"]) == pytest.approx(1)

    def test_it_is_what_the_fit_then_charges(self, folder, call):
        plan = call(*PLAN, "--json").json
        assert call(*FIT).code == 0
        certificate = call("certificate", "r", "--json").json
        for key in set(plan) - {"stages"}:
            assert plan[key] == certificate[key]

    def test_rows_override_the_schema(self, folder, call):
        plan = call(*PLAN, "--rows", 50_000, "--json").json
        assert (plan["n_public"], plan["delta"]) == (50_000, pytest.approx(2e-6))

    def test_bought_rows(self, folder, call):
        plan = call(*PLAN, "--rows", "estimate", "--delta", 1e-6, "--json").json
        assert (plan["n_public"], plan["n_public_source"]) == (None, "estimated")
        assert plan["events"][0]["stage"] == "count"

    @pytest.mark.parametrize("options", [("--rows", "estimate"), ("--rows", "9.5"), ("--rows", "guess")])
    def test_rows_are_a_number_or_estimated_with_a_delta(self, folder, call, options):
        assert call(*PLAN, *options).code == 2

    def test_a_unit_of_several_rows(self, folder, call):
        text = tables.SCHEMA_TEXT.replace("columns:", "unit: {column: id, max_rows: 3}\ncolumns:")
        Path("schema.yaml").write_text(text, encoding="utf-8")
        assert "one id (up to 3 rows)" in call(*PLAN).out
        assert call(*PLAN, "--json").json["unit"] == {"name": "id", "max_rows": 3}


class TestFit:
    def test_a_directory(self, folder, call):
        result = call(*FIT, "--target", "income")
        assert result.code == 0
        assert sorted(path.name for path in Path("r").iterdir()) == ["arrays.safetensors", "manifest.json"]
        assert "Wrote r." in result.out
        assert "NOT private" not in result.out
        assert "not released: 'id'." in result.err
        release = load("r")
        assert release.schema.released == tables.RELEASED
        assert release.certificate.private

    def test_its_own_options_are_few(self):
        """What few need stands under a heading of its own in the help."""
        own = [
            p for p in commands.load_command("fit").params if p.opts[0].startswith("-") and p.rich_help_panel is None
        ]
        assert len(own) <= 15

    @pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
    @pytest.mark.parametrize("schema", [("--schema", "schema.yaml"), ("--rows", 240)])
    def test_for_a_program(self, folder, call, schema):
        """The one document on standard output says where the release is, and what its certificate says."""
        told = call("fit", "people.csv", *schema, "--epsilon", 20, "--delta", 1e-6, "--out", "r", "--json")
        assert told.code == 0, told.err
        assert told.json["written"] == "r"
        assert told.json.keys() ^ call("certificate", "r", "--json").json.keys() == {"written", "release"}
        assert ("Taken as public" in told.err) == ("--rows" in schema)

    def test_one_file(self, folder, call):
        assert call(*FIT[:-1], "r.sfm").code == 0
        assert load("r.sfm").certificate.private

    @pytest.mark.filterwarnings("default:The storage types:sfumato.errors.PrivacyWarning")
    @pytest.mark.parametrize("name", ["people.parquet", "pictures.npz"])
    def test_other_files(self, folder, call, name):
        text, writer = tables.SCHEMA_TEXT, tables.write_parquet
        if name.endswith("npz"):
            text, writer = tables.IMAGE_SCHEMA_TEXT, tables.write_npz
        writer(folder / name)
        Path("schema.yaml").write_text(text, encoding="utf-8")
        done = call("fit", name, *FIT[2:], "--types", "as-source")
        assert done.code == 0
        assert "The storage types of" in done.err
        assert "NOT covered" in call("certificate", "r").out
        assert call("sample", "r", "-n", 7, "--seed", 1, "--out", f"s{Path(name).suffix}").code == 0
        if name.endswith("npz"):
            with np.load("s.npz") as made:
                assert made["x"].shape == (7, 4, 4)
                assert made["x"].dtype == np.uint8
                assert made["y"].dtype == np.int64
        else:
            ours, theirs = pq.read_schema("s.parquet"), pq.read_schema("people.parquet")
            assert ours.names == list(tables.RELEASED)
            assert all(ours.field(name).type == theirs.field(name).type for name in ours.names)

    def test_a_seed_is_reproducible_and_says_so(self, folder, call):
        for name in ("r1", "r2"):
            result = call(*FIT[:-1], name, "--seed", 7)
            assert result.code == 0
            assert "NOT private" in result.out
        assert [f.read_bytes() for f in sorted(Path("r1").iterdir())] == [
            f.read_bytes() for f in sorted(Path("r2").iterdir())
        ]
        assert call("certificate", "r1", "--json").json["private"] is False
        assert "NOT PRIVATE" in call("certificate", "r1").out

    def test_without_a_seed_no_two_are_alike(self, folder, call):
        assert call(*FIT).code == call(*FIT[:-1], "r2").code == 0
        assert (Path("r") / "arrays.safetensors").read_bytes() != (Path("r2") / "arrays.safetensors").read_bytes()

    def test_bought_rows(self, folder, call):
        assert call(*FIT, "--rows", "estimate", "--delta", 1e-6).code == 0
        certificate = call("certificate", "r", "--json").json
        assert certificate["n_public_source"] == "estimated"
        assert abs(certificate["n_public"] - tables.ROWS) < 1000

    def test_method_and_its_absence(self, folder, call):
        assert call(*FIT, "--method", "max-entropy").code == 0
        result = call(*FIT[:-1], "r2", "--method", "other")
        assert result.code == 2
        assert "max-entropy" in result.err


class TestSample:
    def test_the_default_number_is_the_public_one(self, fitted, call):
        assert call("sample", "r", "--out", "s.csv").code == 0
        made = pd.read_csv("s.csv")
        assert len(made) == 240
        assert tuple(made.columns) == tables.RELEASED
        assert set(made["sex"]) <= {"f", "m"}
        assert set(made["income"]) == {"<=50K", ">50K"}
        assert made["age"].between(0, 100).all()

    @pytest.mark.parametrize("n", [0, 1, 16_385])
    def test_any_number(self, fitted, call, n):
        assert call("sample", "r", "-n", n, "--out", "s.parquet").code == 0
        assert pq.read_metadata("s.parquet").num_rows == n

    def test_the_same_seed_gives_the_same_rows(self, fitted, call):
        for name, n in (("a.csv", 50), ("b.csv", 50), ("c.csv", 20)):
            assert call("sample", "r", "-n", n, "--seed", 3, "--out", name).code == 0
        assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
        assert Path("a.csv").read_text().startswith(Path("c.csv").read_text())
        assert call("sample", "r", "-n", 50, "--seed", 4, "--out", "d.csv").code == 0
        assert Path("a.csv").read_bytes() != Path("d.csv").read_bytes()

    @pytest.mark.parametrize(
        "options", [("-n", -1), ("--seed", -1), ("--seed", 2**63), ("--out", "s.xls"), ("--out", "no/s.csv")]
    )
    def test_wrong_calls(self, fitted, call, options):
        result = call("sample", "r", "--out", "s.csv", *options)
        assert result.code == 2
        assert not list(fitted.glob("s.*"))
        assert not list(fitted.glob(".*"))


class TestCertificate:
    def test_json(self, fitted, call):
        certificate = call("certificate", "r", "--json").json
        assert set(certificate) == CERTIFICATE_KEYS
        assert all(set(event) == EVENT_KEYS for event in certificate["events"])
        assert all(set(stage) == {"name", "epsilon_alone", "share"} for stage in certificate["stages"])
        assert all(set(point) == {"delta", "epsilon"} for point in certificate["curve"])
        assert certificate["private"] is True
        assert 0.99 < certificate["epsilon"] <= 1

    def test_it_is_computed_again(self, fitted, call):
        result = call("certificate", "r")
        assert result.code == 0
        assert "Computed again with PLDAccountant: epsilon = 1" in result.out
        assert "assumptions" in result.out


class TestEvaluate:
    @pytest.fixture
    def sampled(self, fitted, call) -> Path:
        assert call("sample", "r", "--seed", 0, "--out", "s.csv").code == 0
        tables.write_csv(fitted / "test.csv", tables.frame(120, seed=1))
        return fitted

    def test_json(self, sampled, call):
        options = ("--test", "test.csv", "--target", "income", "--schema", "schema.yaml", "--json")
        scores = call("evaluate", "table", "people.csv", "s.csv", *options).json
        assert set(scores) == {"private", "rows", "outside", "not_compared", "utility", "fidelity", "neighbours"}
        assert scores["private"] is False
        assert scores["rows"] == {"real": 240, "synthetic": 240, "test": 120}
        distances = {"tvd_1way", "tvd_2way", "tvd_3way", "k_marginal", "correlations", "log_likelihood"}
        assert set(scores["fidelity"]) == {*distances, "rules"}
        assert "prove nothing" in scores["neighbours"]["caveat"]
        utility = scores["utility"]
        # `scored_on` says which rows, beside the keys of the agreed form
        keys = {"auroc", "auprc", "accuracy", "per_classifier", "real", "scored_on", "clustering", "sample"}
        assert set(utility) == keys
        assert utility["scored_on"] == "test"
        assert set(utility["per_classifier"]) == set(utility["real"]["per_classifier"]) == CLASSIFIERS
        assert utility["real"]["auroc"] > 0.8

    def test_runs_of_a_release(self, sampled, call):
        scores = call("evaluate", "table", "people.csv", "r", "--runs", 2, "--json").json
        found = scores["fidelity"]["tvd_1way"]
        assert (scores["runs"], len(found["values"])) == (2, 2)
        assert found["low"] <= found["mean"] <= found["high"]
        result = call("evaluate", "table", "people.csv", "r", "--runs", 2)
        assert (result.code, "2 runs" in result.out) == (0, True)
        assert call("evaluate", "table", "people.csv", "r", "--runs", 0).code == 2

    def test_without_a_schema_it_reads_the_real_rows(self, sampled, call):
        # the real table has a column that is not released
        scores = call("evaluate", "table", "people.csv", "s.csv", "--json").json
        assert scores["utility"] is None
        assert 0 <= scores["fidelity"]["tvd_1way"] <= 1

    def test_without_a_test_table_it_says_so(self, sampled, call):
        result = call("evaluate", "table", "people.csv", "s.csv", "--target", "income")
        assert result.code == 0
        assert "No --test" in result.out
        assert "NOT private" in result.out

    @pytest.mark.parametrize("schema", [(), ("--schema", "schema.yaml")])
    @pytest.mark.parametrize("target", ["nothing", "weight", "id"])
    def test_a_target_without_classes(self, sampled, call, target, schema):
        result = call("evaluate", "table", "people.csv", "s.csv", "--target", target, *schema)
        assert result.code == 2
        assert target in result.err

    def test_files_that_do_not_fit_the_schema(self, sampled, call):
        people = pd.read_csv("people.csv", dtype=str).assign(sex="x")
        people.to_csv("odd.csv", index=False)
        options = ("s.csv", "--schema", "schema.yaml")
        assert call("evaluate", "table", "odd.csv", *options, "--json").json["outside"] == {
            "real": {"sex": 1.0},
            "synthetic": {},
        }
        result = call("evaluate", "table", "odd.csv", *options)
        assert "Not in the schema" in result.out
        assert "100.00%" in result.out
        assert "in the schema" not in call("evaluate", "table", "people.csv", *options).out

    def test_what_a_fit_made_of_open_columns_is_no_mistake_of_the_schema(self, sampled, call):
        text = "columns:\n  sex: {kind: categorical, discover: true}\n  age: {kind: integer, lower: 0, upper: 50}\n"
        Path("open.yaml").write_text(text, encoding="utf-8")
        people = pd.read_csv("people.csv", dtype=str)
        people[["sex", "age"]].assign(sex=lambda frame: frame["sex"].where(people.index % 2 == 0, "other")).to_csv(
            "made.csv", index=False
        )
        said = call("evaluate", "table", "people.csv", "made.csv", "--schema", "open.yaml").out
        schema, real = said.split("Not among the real values")
        assert "Not in the schema" in schema
        assert "age" in schema.split("Not in the schema")[1]
        assert "sex" in real
        assert "age" not in real.split("Shares of cells")[0]

    def test_a_release_of_no_rows(self, sampled, call):
        options = ("--method", "dpmix", "--set", "mixture_degree=4", "--set", "n_mixtures=30", "--out", "m")
        assert call("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", "1", *options).code == 0
        result = call("evaluate", "table", "people.csv", "m")
        assert (result.code, "sfumato report m --real" in result.err) == (2, True)

    def test_a_disk_that_is_full(self, sampled, call, monkeypatch):
        def full(value):
            raise OSError(errno.ENOSPC, "private text")

        monkeypatch.setattr(quality_commands, "print_json", full)
        result = call("evaluate", "table", "people.csv", "s.csv", "--json")
        assert result.code == 2
        assert "Cannot write to standard output" in result.err
        assert "private text" not in result.err

    def test_nothing_in_common(self, sampled, call):
        Path("other.csv").write_text("a\n1\n", encoding="utf-8")
        assert call("evaluate", "table", "people.csv", "other.csv").code == 2


class TestMethods:
    def test_methods(self, call):
        assert "max-entropy" in call("methods").out
        listed = call("methods", "--json").json
        assert [entry["method"] for entry in listed] == list(METHODS)
        assert all(entry["about"] for entry in listed)


class TestMixtures:
    def test_whole_or_in_part(self, folder, call):
        options = ("--method", "dpmix", "--set", "mixture_degree=4", "--set", "n_mixtures=30", "--target", "income")
        result = call("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", "1", "--out", "m", *options)
        assert result.code == 0
        for n, rows in (((), 30), (("-n", "7"), 7)):
            assert call("sample", "m", "--out", "m.csv", *n, "--overwrite").code == 0
            assert len(pd.read_csv("m.csv")) == rows
        result = call("sample", "m", "--out", "more.csv", "-n", "31")
        assert result.code == 2
        assert "at most 30" in result.err
        assert not Path("more.csv").exists()

    @pytest.mark.parametrize(
        ("options", "named"),
        [(("--method", "dpmix", "--set", "mixing=other"), "mixing"), (("--set", "n_mixtures=5"), "n_mixtures")],
    )
    def test_wrong_options(self, folder, call, options, named):
        result = call("plan", "--schema", "schema.yaml", "--epsilon", "1", *options)
        assert result.code == 2
        assert named in result.err


FITTING = ("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", "1")


class TestOutputsThatAreInputs:
    """No output takes the place of a file that the call reads or keeps, also not with --overwrite."""

    @pytest.mark.parametrize(
        ("command", "out", "named"),
        [
            (FITTING, "people.csv", "data"),
            (FITTING, "./schema.yaml", "schema"),
            ((*FITTING, "--ledger", "l"), "l", "ledger"),
            ((*FITTING, "--ledger", "l"), "l.lock", "ledger"),
            ((*FITTING, "--checkpoint", "c"), "c", "checkpoint"),
            (FITTING, "../{here}", "data"),
            (("model", "tune", *FITTING[1:], "--grid", "marginal_share=0.3,0.5"), "people.csv", "data"),
            (("schema", "draft", "people.csv"), "people.csv", "data"),
            (("sample", "r", "-n", "5"), "r", "release"),
            (("report", "r", "--real", "people.html"), "people.html", "real"),
        ],
    )
    def test_it_is_refused(self, fitted, call, command, out, named):
        assert call("ledger", "create", "l", "--epsilon", "9", "--delta", "1e-5").code == 0
        (fitted / "people.html").write_bytes((fitted / "people.csv").read_bytes())
        before = {path: path.read_bytes() for path in fitted.rglob("*") if path.is_file()}
        result = call(*command, "--out", out.format(here=fitted.name), "--overwrite")
        assert result.code == 2
        assert f"which is the {named} of this call" in result.err
        assert {path: path.read_bytes() for path in fitted.rglob("*") if path.is_file()} == before

    def test_an_existing_ledger_stays(self, folder, call):
        assert call("ledger", "create", "l", "--epsilon", "1", "--delta", "1e-5").code == 0
        result = call("ledger", "create", "l", "--epsilon", "9", "--delta", "1e-5")
        assert (result.code, "Name another file" in result.err, "overwrite" in result.err) == (2, True, False)


class TestExistingOutputs:
    """An output that exists is refused before any work is done, and replaced with --overwrite."""

    @pytest.fixture
    def busy(self, fitted, call, monkeypatch) -> Path:
        for name in ("draft.yaml", "s.csv", "r.sfm"):
            (fitted / name).write_text("mine", encoding="utf-8")
        return fitted

    CALLS = (
        ("schema", "draft", "people.csv", "--out", "draft.yaml"),
        ("schema", "import", "people.csv", "--format", "domain", "--out", "draft.yaml"),
        FIT,
        (*FIT[:-1], "r.sfm"),
        ("sample", "r", "--out", "s.csv"),
    )

    @pytest.mark.parametrize("arguments", CALLS, ids=lambda a: f"{a[0]}-{a[-1]}")
    def test_refused_before_any_work(self, busy, call, monkeypatch, arguments):
        before = {path: path.read_bytes() for path in busy.rglob("*") if path.is_file()}
        for module, name in (
            (data_commands, "open_undescribed"),
            (release_commands, "open_tables"),
            (sfumato, "load"),
        ):
            monkeypatch.setattr(module, name, _never)
        monkeypatch.setattr(Synthesizer, "fit", _never)
        result = call(*arguments)
        assert (result.code, result.out) == (2, "")
        assert "--overwrite" in result.err
        assert before == {path: path.read_bytes() for path in busy.rglob("*") if path.is_file()}

    @pytest.mark.parametrize("arguments", [CALLS[0], *CALLS[2:]], ids=lambda a: f"{a[0]}-{a[-1]}")
    def test_overwrite(self, busy, call, arguments):
        out = busy / str(arguments[-1])
        before = out.stat().st_ino
        assert call(*arguments, "--overwrite").code == 0
        assert out.stat().st_ino != before
        assert not list(busy.glob(".*.partial"))

    def test_a_foreign_directory_is_never_replaced(self, busy, call):
        (busy / "photos").mkdir()
        (busy / "photos" / "1.jpg").write_text("mine", encoding="utf-8")
        result = call(*FIT[:-1], "photos", "--overwrite")
        assert result.code == 2
        assert (busy / "photos" / "1.jpg").read_text(encoding="utf-8") == "mine"

    def test_a_failed_overwrite_leaves_the_old(self, busy, call):
        before = (busy / "r" / "manifest.json").read_bytes()
        (busy / "people.csv").write_text("sex\n", encoding="utf-8")
        assert call(*FIT, "--overwrite").code == 2
        assert (busy / "r" / "manifest.json").read_bytes() == before


def _never(*_: object, **__: object) -> object:
    raise AssertionError("work was done")


class TestDemo:
    @pytest.mark.slow
    def test_it_runs_end_to_end(self, tmp_path, call):
        pytest.importorskip("statsmodels")
        result = call("demo", "--out", tmp_path / "demo")
        assert result.code == 0, result.err
        for said in ("person-year", "the plan", "certificate", "AUROC", "synthetic.csv", "delta = 1e-06"):
            assert said.lower() in result.out.lower()
        outputs = {"schema.yaml", "demo.ledger", "demo.ledger.lock", "release", "synthetic.csv", "report.html"}
        assert {path.name for path in (tmp_path / "demo").iterdir()} == outputs
        page = tmp_path / "demo" / "report.html"
        assert result.out.rstrip().endswith(f"Look at it: {page.as_uri()}")
        assert "<svg" in page.read_text(encoding="utf-8")
        assert re.findall(r"^\{never: .*│ (\d+)", result.out, re.M) == ["0", "0", "0"]
        rows = re.findall(r"^(?:no|an individual) deductible +│ (\S+) +│ (\S+) to (\S+) +│ (\S+)", result.out, re.M)
        assert len(rows) == 2
        for value, low, high, own in (map(float, row) for row in rows):
            assert low < value < high
            assert high - low < 2.0  # unnamed it was 3.9, and said nothing
            assert abs(own - value) < 3 * (high - low)
        assert re.search(r"^together +│ of 2 at delta = 1e-06 +│ (1|0\.99\d*) ", result.out, re.M)
        assert "█" in result.out
        for name in ("schema.yaml", "synthetic.csv", "demo.ledger", "report.html"):
            other = tmp_path / f"only-{name}"
            other.mkdir()
            (other / name).write_text("mine", encoding="utf-8")
            refused = call("demo", "--out", other)
            assert refused.code == 2
            assert "--overwrite" in refused.err
            assert [path.name for path in other.iterdir()] == [name]


class TestProcess:
    """A few calls through a process of their own, as a shell makes them."""

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        source = Path(cli.__file__).parents[2]
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"} | environment,
            timeout=120,
            check=False,
        )

    @pytest.mark.slow
    def test_a_module_that_runs(self):
        done = self.python("-m", "sfumato", "methods", "--json")
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)[0]["method"] == "max-entropy"

    @pytest.mark.slow
    def test_a_wrong_call(self):
        done = self.python("-m", "sfumato", "certificate", "no-such-release")
        assert done.returncode == 1
        assert b"Error: " in done.stderr
        assert b"Traceback" not in done.stderr

    def test_names_that_the_terminal_cannot_show(self, tmp_path):
        path = tmp_path / "größe.yaml"
        path.write_text("columns: {größe: boolean}\n", encoding="utf-8")
        done = self.python("-m", "sfumato", "schema", "check", str(path), PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize(("set_before", "threads"), [(None, "1"), ("3", "3")])
    def test_linear_algebra_has_one_thread_unless_told_otherwise(self, set_before, threads):
        code = (
            f"import atexit, os, sys; os.environ.pop('OPENBLAS_NUM_THREADS', None); set_before = {set_before!r}\n"
            "if set_before: os.environ['OPENBLAS_NUM_THREADS'] = set_before\n"
            "from sfumato.cli import main; assert 'numpy' not in sys.modules\n"
            "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'])); main(['--version'])"
        )
        assert self.python("-c", code).stdout.decode().split()[-1] == threads


class TestUnforeseenErrors:
    def test_their_text_is_withheld(self, folder, monkeypatch, capsys):
        def fail(*_, **__):
            raise RuntimeError("Xanthippe")

        monkeypatch.setattr(Synthesizer, "fit", fail)
        assert cli_app.run([str(argument) for argument in FIT]) == 1
        out, err = capsys.readouterr()
        assert "RuntimeError" in err
        assert "Xanthippe" not in out + err

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_stopping(self, folder, monkeypatch, call, error):
        def stop(*_, **__):
            raise error

        monkeypatch.setattr(Synthesizer, "fit", stop)
        assert call(*FIT).code == 1
        assert not Path("r").exists()

    def test_warnings_of_libraries_are_dropped(self, folder, monkeypatch, call):
        import warnings

        def warn(*_, **__):
            warnings.warn("Xanthippe", RuntimeWarning, stacklevel=1)
            raise KeyboardInterrupt

        monkeypatch.setattr(Synthesizer, "fit", warn)
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            result = call(*FIT)
        assert "Warning" not in result.err
        assert "Xanthippe" not in result.err

    def test_main_exits_with_the_code(self, monkeypatch):
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
        with pytest.raises(SystemExit) as leaving:
            cli.main(["--version"])
        assert leaving.value.code == 0


class TestTargetError:
    def test_plan(self, folder, call):
        plan = call("plan", "--schema", "schema.yaml", "--target-error", 0.01, "--rows", 20_000, "--json").json
        assert 0.008 < float(plan["stages"][0]["forecast"].rpartition("±")[2]) <= 0.01
        assert 0.01 < plan["epsilon"] < 100

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ((), "got none"),
            (("--epsilon", 1, "--target-error", 0.1), "got several"),
            (("--target-error", 0), "target_error"),
            (("--target-error", 0.1, "--rows", "estimate", "--delta", 1e-6), "declared number"),
            (("--target-error", 1e-7), "more rows"),
            (("--target-error", "ols: age ~ income"), "QUESTION = NUMBER"),
            (("--target-error", "ols: age ~ income = 1.2"), "one of the named questions"),
        ],
        ids=str,
    )  # fmt: skip
    def test_mistakes(self, folder, call, options, said):
        result = call("plan", "--schema", "schema.yaml", *options)
        assert result.code == 2
        assert said in result.err


class TestGiven:
    @pytest.fixture
    def steady(self, folder, call):
        """A release with little, seeded noise: at epsilon 1 a rare cell of so small a table may come out as 0."""
        assert call(*FIT[:5], 50, *FIT[6:], "--target", "income", "--seed", 1).code == 0
        return folder

    @pytest.mark.slow
    def test_values_and_class_counts(self, steady, call):
        assert call("sample", "r", "-n", 30, "--given", "age=40", "--given", "income=>50K", "--out", "g.csv").code == 0
        rows = pd.read_csv("g.csv")
        assert set(rows["age"]) == {40}
        assert set(rows["income"]) == {">50K"}
        counts = ("--class-count", "<=50K=3", "--class-count", ">50K=4", "--given", "grade=NA")
        assert call("sample", "r", *counts, "--out", "c.csv").code == 0
        rows = pd.read_csv("c.csv")
        assert rows["income"].value_counts().to_dict() == {"<=50K": 3, ">50K": 4}
        assert rows["grade"].isna().all()

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--given", "age"), "COL=VALUE"), (("--given", "age=200"), "age <= 100"), (("--given", "a=1"), "'a'"),
            (("--given", "age=1", "--given", "age=2"), "once"), (("--given", "sex=x"), "'sex'"),
            (("--given", "age="), "'age'"), (("--class-count", "yes"), "LABEL=N"), (("--class-count", "yes=1"), "yes"),
            (("--class-count", ">50K=1", "--class-count", ">50K=2"), "once"),
            (("--class-count", ">50K=1", "-n", 2), "sum"),
        ],
        ids=str,
    )  # fmt: skip
    def test_mistakes(self, fitted, call, options, said):
        result = call("sample", "r", *options, "--out", "g.csv")
        assert result.code == 2
        assert said in result.err
        assert not Path("g.csv").exists()


def test_a_schema_that_leaves_something_open(folder, call):
    Path("open.yaml").write_text("rows: 240\ncolumns:\n  age: {kind: integer, discover: true}\n", encoding="utf-8")
    assert call("schema", "check", "open.yaml").code == 0
    result = call(
        "schema", "validate", "people.csv", "--schema", "open.yaml", "--json"
    )  # of what is open nothing is changed
    assert {finding["problem"] for finding in result.json["findings"]} == {"undeclared", "nothing_declared"}
    command = ("model", "tune", "people.csv", "--epsilon", "1", "--grid", "marginal_share=0.3,0.5", "--out", "r")
    result = call(*command, "--schema", "open.yaml")
    assert (result.code, "declares every column" in result.err) == (2, True)


@pytest.mark.filterwarnings("default::sfumato.errors.SchemaWarning")
def test_an_import_names_what_it_leaves_out(folder, call):
    text = "'':\n  s:\n    t:\n      rows: 10\n      sex: {type: string}\n      age: {type: int, lower: 0, upper: 9}\n"
    Path("sn.yaml").write_text(text, encoding="utf-8")
    result = call("schema", "import", "sn.yaml", "--format", "smartnoise", "--out", "im.yaml")
    assert (result.code, "'sex'" in result.err) == (0, True)


def test_images_are_not_discovered(folder, call):
    np.savez("i.npz", x=np.zeros((30, 4, 4), np.uint8), y=np.arange(30) % 2)
    result = call("fit", "i.npz", "--epsilon", "1", "--delta", "1e-5", "--out", "img")
    assert result.code == 2
    assert "images in column 'x'" in result.err
    assert not Path("img").exists()
