"""The example of `examples/chow_liu`: a stranger's method, by Python and by command line, and under our attacks."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures import tables
from fixtures.packages import EXAMPLES, install_example, passed_suites
from harness.coupling import attack, leaves
from sfumato import audit, load
from sfumato.errors import ConfigError, EstimateError, LedgerError, ReleaseError
from sfumato.methods.registry import METHODS


@pytest.fixture
def example(site):
    install_example(site, "chow_liu")
    return METHODS["chow-liu"].make


def test_it_is_short():
    (module,) = (EXAMPLES / "chow_liu").rglob("*.py")
    assert len(module.read_text().splitlines()) <= 120


class TestPython:
    def test_its_certificate_says_whose_it_is(self, example):
        content = example(epsilon=1.0).fit(tables.frame(), schema=tables.schema()).certificate.content
        assert content["method"] == "chow-liu"
        assert content["versions"]["sfumato-chow-liu"] == "0.1.0"
        assert any("ChowLiu is code of the package sfumato-chow-liu 0.1.0" in said for said in content["assumptions"])
        ours = sfumato.MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema()).certificate.content
        assert "sfumato-chow-liu" not in ours["versions"]
        assert not any("rests on that code" in said for said in ours["assumptions"])

    def test_saved_loaded_and_refused_without_its_package(self, example, tmp_path, monkeypatch, site):
        release = example(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), target="income")
        release.save(tmp_path / "r.sfm")
        pd.testing.assert_frame_equal(load(tmp_path / "r.sfm").sample(50, seed=1), release.sample(50, seed=1))
        assert release.sampler["package"] == "sfumato-chow-liu"
        monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(site)])
        with pytest.raises(ReleaseError, match="pip install sfumato-chow-liu"):
            load(tmp_path / "r.sfm")

    def test_its_pairs_answer_questions(self, example, tmp_path):
        """Its measurements carry their queries: means and tables of any pair, and reasons where cells are too wide."""
        frame = tables.frame(5000)
        made = example(epsilon=2.0).fit(frame, schema=tables.schema(), n_public=5000, target="income", seed=0)
        made.save(tmp_path / "r.sfm")
        release = load(tmp_path / "r.sfm")
        for estimate, true in (
            (release.share({"income": ">50K"}, target="table"), (frame.income == ">50K").mean()),
            (
                release.crosstab("sex", "income", target="table")["f", ">50K"],
                ((frame.sex == "f") & (frame.income == ">50K")).sum(),
            ),
            (release.mean("age", target="table"), frame.age.mean()),
        ):
            assert abs(estimate.value - true) < 4 * estimate.std_error
            assert "products" not in estimate.rests_on
        wide = example(epsilon=2.0, numeric_cells=4).fit(frame, schema=tables.schema(), n_public=5000, seed=0)
        with pytest.raises(EstimateError, match="narrower cells of 'age'"):
            wide.variance("age")
        with pytest.raises(EstimateError, match="only the columns of its tables"):
            release.share({"income": ">50K", "sex": "f", "member": True})
        with pytest.raises(EstimateError, match="how all of its columns go together"):
            release.replicates(2)

    def test_it_keeps_what_goes_together(self, example):
        """Income follows from age: independent columns would have a correlation of 0."""
        schema, frame = tables.schema(), tables.frame(5000)
        release = example(epsilon=2.0).fit(frame, schema=schema, n_public=5000, seed=0)
        made = release.sample(5000, seed=0)
        kept, true = (np.corrcoef(f["age"], f["income"] == ">50K")[0, 1] for f in (made, frame))
        assert true > 0.7
        assert kept > 0.6
        names = list(schema.released)
        parents = release.parameters["parents"]
        assert names.index("age") in (parents[names.index("income")], names.index("age"))
        assert abs(np.corrcoef(made["age"], made["member"])[0, 1]) < 0.1

    def test_given_values_and_class_counts(self, example):
        release = example(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), target="income")
        assert set(release.sample(40, given={"income": ">50K"})["income"]) == {">50K"}
        assert release.sample(class_counts={">50K": 3, "<=50K": 1})["income"].value_counts().to_dict() == {
            ">50K": 3, "<=50K": 1
        }  # fmt: skip
        with pytest.raises(ConfigError, match="target"):
            release.sample(5, given={"age": 30})

    def test_what_it_cannot_fit_is_refused_before_anything_is_charged(self, example):
        with pytest.raises(ConfigError, match="columns of a table"):
            example(epsilon=1.0).plan(tables.image_schema())
        with pytest.raises(ConfigError, match="numeric_cells"):
            example(epsilon=1.0, numeric_cells=4096).plan(tables.schema())

    def test_a_damaged_release_is_refused(self, example, tmp_path):
        release = example(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), target="income")
        n = release.parameters["parents"].size
        wrong = [
            {"parents": np.arange(n)}, {"parents": np.full(n, 99)}, {"order": np.zeros(n, dtype=np.int64)},
            {"order": release.parameters["order"][:-1]}, {"order": release.parameters["order"][::-1]},
            {"column 0": release.parameters["column 0"] + 0.1}, {"column 0": -release.parameters["column 0"]},
            {"column 0": release.parameters["column 0"][:, :-1]},
        ]  # fmt: skip
        for i, change in enumerate(wrong):
            other = sfumato.Release(
                release.schema, release.certificate, release.sampler, {**release.parameters, **change},
                release.measurements, release.form,
            )  # fmt: skip
            other.save(tmp_path / str(i))
            with pytest.raises(ReleaseError):
                load(tmp_path / str(i))

    def test_a_search_over_its_settings(self, example):
        few, many = (example(epsilon=2.0, numeric_cells=cells) for cells in (4, 16))
        release = sfumato.tune(tables.frame(), method=[few, many], schema=tables.schema(), mean_repetitions=2, seed=1)
        assert release.sampler["package"] == "sfumato-chow-liu"
        assert release.certificate.content["versions"]["sfumato-chow-liu"] == "0.1.0"
        assert len(release.sample(7)) == 7


def test_by_the_command_line(example, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables.write_csv(tmp_path / "people.csv")
    (tmp_path / "s.yaml").write_text(tables.SCHEMA_TEXT)
    assert "chow-liu" in call("methods").out
    arguments = ("--schema", "s.yaml", "--method", "chow-liu", "--target", "income")
    assert "counts of pairs of cells" in call("plan", *arguments, "--epsilon", 1).out
    assert call("plan", *arguments, "--target-error", 0.5, "--json").json["epsilon"] > 0
    assert call("fit", "people.csv", *arguments, "--epsilon", 1, "--out", "r.sfm").code == 0
    assert call("sample", "r.sfm", "-n", 20, "--out", "made.csv").code == 0
    assert len(pd.read_csv("made.csv")) == 20
    said = call("certificate", "r.sfm").out
    assert "not Sfumato's" in " ".join(said.split())


@pytest.mark.slow
def test_it_passes_the_suites_of_our_methods(site):
    assert passed_suites(site, "chow_liu", "chow-liu and not TestFrames") > 40


@pytest.mark.slow
@pytest.mark.audit
def test_it_passes_all_of_them(site):
    """144 cases: all but those of images and sets, which it refuses."""
    assert passed_suites(site, "chow_liu", "chow-liu", "not browser") > 140


def counts_with(body: str) -> tuple[tuple[str, str], ...]:
    """The changes of the source that count by a class of its own."""
    of_own = f"class Own(QueryCounts):\n    {body}\n\n\ndef pair_counts"
    return ("def pair_counts", of_own), ("QueryCounts(MarginalQuery(", "Own(MarginalQuery(")


BUGS = {  # what the attack says, and the changes of the source
    "half the sensitivity": (
        "times as far apart", *counts_with("squares = property(lambda self: len(self.query.tables) / 4)"),
    ),
    "records counted twice": (
        "times as far apart",
        *counts_with("add = lambda self, total, rows: [QueryCounts.add(self, total, rows) for _ in range(2)]"),
    ),
    "replaced records nearer than they are": ("replace", ("replace_distance=2**0.5", "replace_distance=1.0")),
    "noise that is not charged, in place of what is": (
        "depends on more",
        (
            "        tables, pairs",
            "        exact = plugins.reduce(statistic, fit.data).open_in_mechanism()\n"
            "        own = exact + fit.noise.gaussian(exact.shape, noisy.noise_std)\n        tables, pairs",
        ),
        ("query.split(noisy.value)", "query.split(own)"),
    ),
    "a true number of records": (
        "depends on more",
        ("max(noisy.value.sum() / len(tables), 1.0)", "sum(len(r['age']) for r in fit.data.coded()) + 1.0"),
    ),
}  # fmt: skip


def neighbours_attacked(monkeypatch, method) -> None:
    """What `tests/attacks/test_recipes.py` does to every method: a record more, and one replaced by another."""
    frame = tables.frame(71)
    more, other = frame, frame.assign(**{name: [*frame[name][:-1], value] for name, value in ODD.items()})

    def fit(data):
        return leaves(method(epsilon=2.0).fit(data, schema=tables.schema(), target="income", seed=1))

    attack(monkeypatch, fit, more.head(70), more)
    assert attack(monkeypatch, fit, more, other, replaced=True) > 0.9


ODD = {"sex": "x", "grade": None, "age": 10**6, "weight": np.nan, "income": "?"}


def test_without_a_bug_its_neighbours_release_the_same(example, monkeypatch):
    neighbours_attacked(monkeypatch, example)


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_that_is_planted_in_it_is_found(site, monkeypatch, bug):
    install_example(site, "chow_liu")
    said = plant(site, bug)
    with pytest.raises((AssertionError, LedgerError), match=said):
        neighbours_attacked(monkeypatch, METHODS["chow-liu"].make)


def plant(site: Path, bug: str) -> str:
    """Change the installed copy; return what the attack has to say."""
    said, *changes = BUGS[bug]
    module = site / "sfumato_chow_liu" / "__init__.py"
    source = module.read_text()
    for text, wrong in changes:
        assert text in source
        source = source.replace(text, wrong)
    module.write_text(source)
    return said


@pytest.mark.parametrize("bug", [None, "half the sensitivity"])
def test_the_audit_of_the_package_attacks_it(site, bug):
    """Shadow fits, which need no test of ours: right guesses prove a larger epsilon than a buggy method claims."""
    install_example(site, "chow_liu")
    if bug:
        plant(site, bug)
    columns = {"a": {"kind": "boolean"}, "b": {"kind": "integer", "lower": 0, "upper": 9}}
    schema = sfumato.Schema.from_dict({"rows": 50, "columns": columns})
    found = audit.audit(METHODS["chow-liu"].make(epsilon=3.0, delta=0.01), schema, fits=600, seed=1)
    assert found["holds"] == (bug is None)
    assert found["epsilon_lower_gaussian"] > 0.1
