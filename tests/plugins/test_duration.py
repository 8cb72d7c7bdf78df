"""The example of `examples/duration`: a stranger's kind, from schema file to report, and under our attacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato
from fixtures.packages import EXAMPLES, install, install_example
from harness.coupling import attack, leaves
from sfumato import MaxEntropy, Schema, evaluate, load
from sfumato.columns.numbers import Integer
from sfumato.desk.validation import validate
from sfumato.errors import ConfigError, ReleaseError, SchemaError
from sfumato.io.sources import open_source
from sfumato.release.manifest import content_hash

ROOT = Path(__file__).parents[2]
SCHEMA = """\
rows: 3000
columns:
  ride: {kind: duration, lower: "0:05", upper: PT2H, nullable: true}
  paid: {kind: boolean}
"""


@pytest.fixture
def example(site):
    install_example(site, "duration")
    return site


def rides(n: int = 3_000) -> pd.DataFrame:
    """Those that last longer than half an hour are paid."""
    minutes = np.random.default_rng(0).integers(5, 121, n)
    text = [f"PT{m // 60}H{m % 60}M" if m % 2 else f"{m // 60}:{m % 60:02}" for m in minutes]
    return pd.DataFrame({"ride": text, "paid": minutes > 30})


def minutes(column: pd.Series) -> np.ndarray:
    return np.array([60 * int(text.split(":")[0]) + int(text.split(":")[1]) for text in column])


def schema(folder: Path) -> Schema:
    (folder / "s.yaml").write_text(SCHEMA)
    return Schema.load(folder / "s.yaml")


def test_it_is_short():
    (module,) = (EXAMPLES / "duration").rglob("*.py")
    assert len(module.read_text().splitlines()) <= 70


@pytest.mark.slow
@pytest.mark.audit
def test_from_schema_file_to_report(example, tmp_path):
    known, frame = schema(tmp_path), rides()
    release = MaxEntropy(epsilon=20.0).fit(frame, schema=known, target="paid", seed=0)
    release.save(tmp_path / "r.sfm")
    back = load(tmp_path / "r.sfm")
    assert back.schema == known
    made = back.sample(2_000, seed=1)
    pd.testing.assert_frame_equal(made, release.sample(2_000, seed=1))
    there = made.dropna()
    assert minutes(there["ride"]).min() >= 5
    assert minutes(there["ride"]).max() <= 120
    paid = there["paid"].astype(bool)
    assert minutes(there["ride"][paid]).mean() > minutes(there["ride"][~paid]).mean() + 20
    assert set(back.sample(20, given={"ride": "PT1H30M"})["ride"]) == {"1:30"}
    assert {finding.problem for finding in validate(open_source(made), known)} <= {"missing"}
    scores = evaluate.evaluate(frame, made, schema=known)
    assert scores["fidelity"]
    sfumato.report.write_report(release, tmp_path / "r.html", real=frame)
    page = (tmp_path / "r.html").read_text()
    assert "0:05 to 0:10" in page
    assert "duration" in page


def test_validate_says_what_a_fit_would_change(example, tmp_path):
    table = pa.table({"ride": ["0:30", "3:00", "soon", None, "PT"], "paid": [True] * 5})
    found = {(f.problem, f.becomes, f.count) for f in validate(open_source(table), schema(tmp_path))}
    assert found == {("clamped", "the nearest bound", 1), ("unparseable", "missing", 2), ("missing", "missing", 1)}


def test_columns_of_numbers_are_minutes(example, tmp_path):
    kind = schema(tmp_path).columns["ride"]
    for cells in (["1:02", "PT62M"], pa.array([62, 62]), pa.array(["1:02", "PT1H2M"]).dictionary_encode()):
        codes = kind.code(pa.array(cells), missing=())
        np.testing.assert_array_equal(codes, Integer(lower=5, upper=120).code(pa.array([62, 62]), missing=()))
    assert kind.decode(codes, pa.int16()).to_pylist() == [62, 62]
    assert "numbers or text" in str(kind.storage_fault(pa.date32()))


def test_a_mistake_of_a_caller_is_an_error(example, tmp_path):
    release = MaxEntropy(epsilon=1.0).fit(rides(), schema=schema(tmp_path))
    for value, words in (("5:00", "0:05 <= ride <= PT2H"), ("soon", "ride to be a duration")):
        with pytest.raises(ConfigError, match=words):
            release.sample(3, given={"ride": value})
    with pytest.raises(SchemaError, match="'ride': Expected lower and upper to be durations"):
        Schema.from_dict({"columns": {"ride": {"kind": "duration", "lower": "now", "upper": "1:00"}}})


def test_the_certificate_says_whose_code_read_the_cells(example, tmp_path):
    content = MaxEntropy(epsilon=1.0).fit(rides(), schema=schema(tmp_path)).certificate.content
    assert content["versions"]["sfumato-duration"] == "0.1.0"
    (said,) = [said for said in content["assumptions"] if "duration" in said]
    assert "read by code of the package sfumato-duration 0.1.0" in said


class TestPackages:
    def saved(self, tmp_path):
        path = tmp_path / "release"
        MaxEntropy(epsilon=1.0).fit(rides(), schema=schema(tmp_path)).save(path)
        return path

    def edit(self, path, **facts):
        manifest = json.loads((path / "manifest.json").read_text())
        entry = manifest["schema"]["columns"]["ride"]
        assert entry["package"] == "sfumato-duration"
        entry |= facts
        manifest["schema"]["columns"]["ride"] = {k: v for k, v in entry.items() if v is not None}
        # whoever edits a manifest computes its hash anew
        manifest["certificate"]["release"]["content"] = content_hash(manifest)
        (path / "manifest.json").write_text(json.dumps(manifest))
        for name in [name for name in sys.modules if name.startswith("sfumato_duration")]:
            del sys.modules[name]

    @pytest.mark.parametrize(
        ("package", "words"), [(None, "the package of another"), ("others", "of the package 'others'"), (7, "package")]
    )
    def test_a_release_imports_only_the_package_that_it_names(self, example, tmp_path, package, words):
        path = self.saved(tmp_path)
        self.edit(path, package=package)
        with pytest.raises((ReleaseError, SchemaError), match=words):
            load(path)
        assert "sfumato_duration" not in sys.modules

    def test_a_name_of_a_package_is_compared_as_indexes_do(self, example, tmp_path):
        path = self.saved(tmp_path)
        self.edit(path, package="Sfumato_Duration")
        assert load(path).sample(2)["ride"].size == 2

    def test_without_the_package(self, example, tmp_path, monkeypatch):
        path = self.saved(tmp_path)
        monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(example)])
        with pytest.raises((ReleaseError, SchemaError), match="pip install sfumato-duration"):
            load(path)

    def test_a_module_is_no_kind(self, example):
        for label in ("sfumato_duration:Duration", "os", "duration "):
            with pytest.raises(SchemaError, match=r"kind to be one of categorical, .*, identifier, duration, got"):
                Schema.from_dict({"columns": {"x": {"kind": label}}})

    def test_two_packages_of_one_name(self, example):
        install(example, "others", "1.0", {"sfumato.kinds": {"duration": "others:Duration"}})
        with pytest.raises(SchemaError, match="Expected one package to bring the kind 'duration'"):
            Schema.from_dict({"columns": {"x": {"kind": "duration", "lower": "0:00", "upper": "1:00"}}})

    def test_what_is_no_kind_is_refused(self, site):
        (site / "others.py").write_text("class Kind: pass\n")
        install(site, "others", "1.0", {"sfumato.kinds": {"odd": "others:Kind"}})
        with pytest.raises(SchemaError, match=r"a class of labels or numbers .* kind 'odd' of the package others"):
            Schema.from_dict({"columns": {"x": {"kind": "odd"}}})

    def test_a_kind_that_nothing_declares_is_refused(self, tmp_path):
        """It could not be read back from a release."""
        with pytest.raises(SchemaError, match="expected a column kind"):
            Schema(columns={"x": type("Mine", (Integer,), {"name": "mine"})(lower=0, upper=1)})


class TestAttacks:
    """The attacks on our kinds: two fits of neighbours made to release the same, and every law of coding."""

    def fit(self, folder):
        known = schema(folder)
        return lambda data: leaves(MaxEntropy(epsilon=2.0).fit(data, schema=known, target="paid", seed=1))

    @pytest.mark.parametrize("odd", ["99:00", "soon", "", "PT2H"])
    def test_neighbours(self, example, tmp_path, monkeypatch, odd):
        frame, more = rides(60), pd.DataFrame({"ride": [odd], "paid": [True]})
        both = pd.concat([frame, more], ignore_index=True)
        attack(monkeypatch, self.fit(tmp_path), frame, both)
        other = pd.concat([frame, frame[:1]], ignore_index=True)
        attack(monkeypatch, self.fit(tmp_path), both, other, replaced=True)

    def test_a_kind_that_looks_at_other_cells_is_found(self, example, tmp_path, monkeypatch):
        known = schema(tmp_path)
        honest = type(known.columns["ride"]).read

        def ranked(self, cells, missing):
            values, valid = honest(self, cells, missing)
            return values - values.min(), valid

        monkeypatch.setattr(type(known.columns["ride"]), "read", ranked)
        frame = rides(60)
        both = pd.concat([frame, pd.DataFrame({"ride": ["0:00"], "paid": [True]})])
        both = pd.DataFrame(both.to_dict("list"))  # in one chunk, so that the kind sees all cells at once
        with pytest.raises(AssertionError, match="times as far apart"):
            attack(monkeypatch, self.fit(tmp_path), frame, both)

    def test_what_it_raises_makes_one_cell_missing(self, example, tmp_path, monkeypatch):
        kind = schema(tmp_path).columns["ride"]
        honest = type(kind).read

        def fragile(self, cells, missing):
            if "SECRET" in cells.to_pylist():
                raise ValueError("SECRET")
            return honest(self, cells, missing)

        monkeypatch.setattr(type(kind), "read", fragile)
        codes = kind.code(pa.array(["0:05", "SECRET", "2:00"]), missing=())
        np.testing.assert_array_equal(codes, [0.0, np.nan, 1.0])

    @pytest.mark.slow
    @pytest.mark.audit
    def test_every_law_of_coding(self, example):
        kinds = [
            {"kind": "duration", "lower": "0:10", "upper": "12:00", "nullable": True},
            {"kind": "duration", "package": "sfumato-duration", "lower": "PT1M", "upper": "PT1M"},
        ]
        path = os.pathsep.join([str(example), str(Path(sfumato.__file__).parents[1])])
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/columns/test_coding.py"],
            cwd=ROOT,
            env={
                **os.environ, "PYTHONPATH": path, "SFUMATO_KINDS": json.dumps(kinds), "PYTHONDONTWRITEBYTECODE": "1"
            },
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout[-3000:]
