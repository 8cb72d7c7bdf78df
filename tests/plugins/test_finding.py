"""What other packages declare is found by name, loaded when it is asked for, and never stands in for ours."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato
from fixtures import tables
from fixtures.packages import install
from sfumato import entry_points, plugins
from sfumato.cli.settings import make_method
from sfumato.errors import ConfigError, PluginWarning, ReleaseError
from sfumato.methods.registry import METHODS, OWN
from sfumato.release.samplers import SAMPLERS, build_sampler

METHOD = """
from dataclasses import dataclass
from sfumato.plugins import FittedModel, Stage, Synthesizer

@dataclass(frozen=True, kw_only=True)
class Other(Synthesizer):
    \"\"\"A method that
    fits nothing.

    More of it.
    \"\"\"

    method = "other"

    def stages(self, facts):
        return [Stage(name="nothing", noise_multiplier=1.0)]

    def run(self, fit):
        raise KeyError("Smith")

class Table:
    name = "table"
    def __init__(self, schema, settings, parameters): ...
    def rows(self, n, rng, classes=None): ...
    def given(self, codes): ...
"""
BROKEN = "print('loaded', flush=True)\nimport no_such_module\n"


def declare(
    site: Path, package: str = "others", kind: str = "methods", text: str | None = METHOD, **points: str
) -> None:
    """Install a package of one module, with entry points of one group."""
    (site / f"{package}.py").write_text(text)
    install(site, package, "2.1", {f"sfumato.{kind}": points})


class TestMethods:
    def test_one_that_is_installed_is_listed_and_made(self, site):
        declare(site, other="others:Other")
        assert list(METHODS) == [*OWN, "other"]
        assert METHODS["other"].about == "A method that fits nothing. [others 2.1]"
        assert METHODS["other"].private
        assert make_method("other", 2.0, None, {}).epsilon == 2.0
        with pytest.raises(ConfigError, match="purpose"):
            make_method("other", 2.0, None, {"purpose": "training"})

    def test_without_it_the_name_is_unknown(self):
        assert "other" not in METHODS
        with pytest.raises(ConfigError, match=r"--method\) to be one of max-entropy, "):
            make_method("other", 1.0, None, {})

    def test_the_command_line(self, site, call, tmp_path):
        declare(site, other="others:Other")
        assert call("methods", "--json").json[-1] == {
            "method": "other", "about": "A method that fits nothing. [others 2.1]"
        }  # fmt: skip
        (tmp_path / "s.yaml").write_text(tables.SCHEMA_TEXT)
        plan = call("plan", "--schema", tmp_path / "s.yaml", "--method", "other", "--epsilon", 1, "--json").json
        assert [stage["name"] for stage in plan["stages"]] == ["nothing"]
        assert plan["versions"]["others"] == "2.1"

    @pytest.mark.filterwarnings("default::sfumato.errors.PluginWarning")
    def test_one_that_cannot_be_imported_is_left_out_and_named_when_asked_for(self, site, call):
        declare(site, "broken", text=BROKEN, worse="broken:Worse")
        with pytest.warns(PluginWarning, match=r"'worse' of the package broken 2.1"):
            assert list(METHODS) == list(OWN)
        with pytest.raises(ConfigError, match=r"'worse' of the package broken 2.1 .*no_such_module is missing"):
            METHODS["worse"]
        assert METHODS["max-entropy"].private
        listed = call("methods")
        assert listed.code == 0
        assert "'worse' is left out" in listed.err
        assert "no_such_module" in call("plan", "--schema", "s.yaml", "--method", "worse", "--epsilon", 1).err

    @pytest.mark.parametrize("place", ["others:Table", "others:missing", "os:sep", "others"])
    def test_one_that_is_no_synthesizer(self, site, place):
        declare(site, other=place)
        with pytest.raises(ConfigError, match=r"package others 2\.1"):
            METHODS["other"]

    def test_a_class_that_has_another_name(self, site):
        declare(site, others="others:Other")
        with pytest.raises(ConfigError, match="whose `method` is 'others'"):
            METHODS["others"]

    def test_a_name_that_two_packages_claim(self, site):
        declare(site, other="others:Other")
        declare(site, "thirds", other="thirds:Other")
        with pytest.raises(ConfigError, match=r"got (others and thirds|thirds and others)"):
            METHODS["other"]
        with pytest.warns(PluginWarning, match="'other' is left out"):
            assert list(METHODS) == list(OWN)

    def test_a_name_of_ours_is_never_taken(self, site):
        declare(site, **{"max-entropy": "others:Other"})
        with pytest.raises(ConfigError, match="got sfumato and others"):
            METHODS["max-entropy"]
        assert METHODS["p3gm"] is OWN["p3gm"]


class TestLaziness:
    @pytest.mark.slow
    def test_nothing_is_imported_before_it_is_asked_for(self, site):
        declare(site, "broken", text=BROKEN, worse="broken:Worse")
        program = (
            "import sfumato, sfumato.plugins\n"
            "from sfumato.cli.app import run\n"
            "assert run(['--help']) == run(['fit', '--help']) == 0\n"
            "from sfumato.methods.registry import METHODS\n"
            "assert METHODS['max-entropy'].private\n"
            "assert run(['methods']) == 0\n"
        )
        found = python(program, site)
        assert found.returncode == 0, found.stderr
        before, _, after = found.stdout.partition("loaded")
        assert "--schema" in before  # of the help
        assert "Methods" in after

    @pytest.mark.slow
    def test_the_import_of_sfumato_looks_for_none(self):
        program = (
            "import importlib.metadata as m\n"
            "def refuse(**_): raise AssertionError\n"
            "m.entry_points = refuse\nimport sfumato, sfumato.plugins, sfumato.cli.app\n"
        )
        found = python(program)
        assert found.returncode == 0, found.stderr


def python(program: str, *places: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that finds these tests' package, and modules in other places."""
    path = os.pathsep.join(map(str, [*places, Path(sfumato.__file__).parents[1]]))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


class TestSamplers:
    """A release names a sampler. It is a stranger's: it never says what is imported."""

    def build(self, **settings):
        return build_sampler(tables.schema(), settings, {})

    def test_one_that_is_installed(self, site):
        declare(site, kind="samplers", table="others:Table")
        assert type(self.build(name="table", package="others")).__module__ == "others"
        assert type(self.build(name="table", package="Others")).__name__ == "Table"

    def test_one_that_is_not_installed_names_its_package(self):
        with pytest.raises(ReleaseError, match=r"is of the package others.*pip install others.*any code"):
            self.build(name="table", package="others")
        with pytest.raises(ReleaseError, match=r"one of the samplers table_softmax, .*upgrade"):
            self.build(name="table")

    @pytest.mark.parametrize("package", ["x y", "-e evil", "http://evil", "a" * 200, "", 7, None, ["others"], "../x"])
    def test_no_other_text_of_a_release_is_shown_as_a_package(self, package):
        with pytest.raises(ReleaseError) as caught:
            self.build(name="table", package=package)
        assert "pip install" not in str(caught.value)

    @pytest.mark.parametrize("name", ["others:Table", "others.Table", "os.system", "os:system", "../others", "table\n"])
    def test_a_path_of_a_module_is_no_name(self, site, name):
        declare(site, kind="samplers", table="others:Table")
        with pytest.raises(ReleaseError):
            self.build(name=name, package="others")
        assert "others" not in sys.modules

    def test_one_of_another_package_than_the_release_says(self, site):
        declare(site, kind="samplers", table="others:Table")
        for package in ("thirds", "sfumato"):
            with pytest.raises(ReleaseError, match="as the release says, got that of others"):
                self.build(name="table", package=package)
        with pytest.raises(ReleaseError, match="got that of others"):
            self.build(name="table")
        assert "others" not in sys.modules  # its code is not run for a release that is not of it

    def test_those_of_families_have_the_names_that_they_are_found_by(self):
        for name in entry_points.FAMILIES["sampler"]:
            assert entry_points.built_in("sampler", name).name == name

    def test_ours_under_another_package(self):
        with pytest.raises(ReleaseError, match="got that of sfumato"):
            self.build(name=next(iter(SAMPLERS)), package="others")

    def test_one_of_our_names(self, site):
        declare(site, kind="samplers", table_softmax="others:Table")
        with pytest.raises(ReleaseError, match="sfumato and others"):
            self.build(name="table_softmax")

    def test_one_that_cannot_be_imported_and_one_that_is_no_sampler(self, site):
        declare(site, "broken", "samplers", BROKEN, worse="broken:Worse", path="os:sep")
        with pytest.raises(ReleaseError, match="no_such_module"):
            self.build(name="worse", package="broken")
        with pytest.raises(ReleaseError, match="class of samplers"):
            self.build(name="path", package="broken")


class TestExceptions:
    """What a stranger's method raises may hold a cell."""

    def fit(self, **settings):
        data, schema = tables.frame(), tables.schema()
        return METHODS["other"].make(epsilon=1.0).fit(data, schema=schema, **settings)

    def test_its_text_is_withheld(self, site):
        declare(site, other="others:Other")
        with pytest.raises(RuntimeError, match=r"Other.*package others 2.1.*\(KeyError\)") as caught:
            self.fit()
        assert "Smith" not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None

    def test_an_author_sees_it_with_a_seed(self, site):
        declare(site, other="others:Other")
        with pytest.raises(KeyError, match="Smith"):
            self.fit(seed=1)

    def test_a_search_withholds_it_too(self, site):
        declare(site, other="others:Other")
        other = METHODS["other"].make(epsilon=1.0)
        with pytest.raises(RuntimeError, match="KeyError") as caught:
            sfumato.tune(tables.frame(), method=[other], schema=tables.schema())
        assert caught.value.__context__ is None


def test_a_class_of_no_package(monkeypatch):
    kind = type("Loose", (), {"__module__": "nowhere.at_all"})
    assert entry_points.package_of(kind) is None
    assert not entry_points.is_ours(kind)
    assert entry_points.is_ours(sfumato.MaxEntropy)


def test_all_that_an_author_may_import_is_described():
    page = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
    named = set(re.findall(r"`(\w+)`", page.partition("## Names")[2]))
    assert named - {"sfumato"} == set(plugins.__all__)
    assert all(hasattr(plugins, name) for name in plugins.__all__)
