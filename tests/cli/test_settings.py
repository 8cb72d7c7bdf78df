"""Settings by name: every field of every method, what is refused, and that nothing is read before."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from fixtures import tables
from sfumato import AutoDegree, NonPrivate, Training, settings
from sfumato.cli.setting_types import settings_of
from sfumato.cli.settings import describe_settings, flat_settings, make_method, plain_text
from sfumato.errors import ConfigError, PrivacyError
from sfumato.methods.nets import decoding
from sfumato.methods.registry import METHODS
from sfumato.release_front import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables.write_csv(tmp_path / "people.csv")
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    return tmp_path


def _made(method, *entries):
    return make_method(method, 1.0, None, flat_settings(entries))


def _same(one, other):
    return repr(one) == repr(other) and type(one) is type(other)


class TestValues:
    @pytest.mark.parametrize("method", METHODS)
    def test_every_field_is_a_setting_that_takes_its_own_default(self, method):
        make = METHODS[method].make
        known = settings_of(make)
        assert set(known) == {entry.name for entry in fields(make)} - {"epsilon", "delta"}
        epsilon = 1.0 if METHODS[method].private else None
        plain = make_method(method, epsilon, None, {})
        for entry in describe_settings(method):
            if entry["with"] is None:
                given = {entry["name"]: plain_text(entry["default"])}
                assert _same(make_method(method, epsilon, None, given), plain), entry
        assert isinstance(plain.epsilon, NonPrivate) is not METHODS[method].private

    @pytest.mark.parametrize("method", METHODS)
    def test_every_setting_says_what_it_is(self, method):
        for entry in describe_settings(method):
            assert entry["about"], entry["name"]
            assert entry["type"], entry["name"]

    @pytest.mark.parametrize(
        ("method", "entries", "expected"),
        [
            ("max-entropy", ["marginal-share=0.2", "level_groups=16"], {"marginal_share": 0.2, "level_groups": 16}),
            ("max-entropy", ["purpose=training", "pose=none"], {"purpose": Training(), "pose": "none"}),
            ("max-entropy", ["purpose.spread=1.5", "purpose=training"], {"purpose": Training(spread=1.5)}),
            ("max-entropy", ["calibration_rows=none"], {"calibration_rows": None}),
            ("max-entropy", ["calibration_rows=500"], {"calibration_rows": 500}),
            ("p3gm", ["prior=mixture"], {"prior": settings.Mixture()}),
            ("p3gm", ["prior=by_class"], {"prior": settings.ByClass()}),
            (
                "p3gm",
                ["prior=mixture", "prior.n_components=5", "prior.full-covariances=true"],
                {"prior": settings.Mixture(n_components=5, full_covariances=True)},
            ),
            ("p3gm", ["noise.moment=0.2"], {"noise": settings.Shares(moment=0.2)}),
            ("p3gm", ["start=random", "variance=false"], {"start": settings.Random(), "variance": False}),
            (
                "p3gm",
                ["noise=multipliers", *(f"noise.{name}=2" for name in ("centre", "moment", "mixture", "decoder"))],
                {"noise": settings.Multipliers(centre=2.0, moment=2.0, mixture=2.0, decoder=2.0)},
            ),
            ("dpgm", ["component.hidden=200, 100"], {"component": settings.VAE(hidden=(200, 100))}),
            ("dpgm", ["component=rbm", "component.hidden=50"], {"component": settings.RBM(hidden=50)}),
            ("dpgm", ["clip_norm=0.5", "shares.clusters=0.1"],
             {"clip_norm": 0.5, "shares": settings.MixtureShares(clusters=0.1)}),
            ("dpgm", ["clip_norm.rank=none"], {"clip_norm": settings.AdaptiveClip(rank=None)}),
            ("dpgm", ["clip_norm=adaptive-clip", "clip_norm.edges=1,2.5"],
             {"clip_norm": settings.AdaptiveClip(edges=(1.0, 2.5))}),
            ("dpmix", ["mixing=fixed-degree"], {"mixing": settings.FixedDegreeMixing()}),
            ("dpmix", ["mixture_degree=auto"], {"mixture_degree": AutoDegree()}),
            ("dpmix", ["mixture_degree=8", "mixing=subset"],
             {"mixture_degree": 8, "mixing": settings.SubsetMixing()}),
            ("p3gm", ["learning_rate=1e-4", "draw=false"], {"learning_rate": 1e-4, "draw": False}),
            ("p3gm", ["prior=standard-normal"], {"prior": settings.StandardNormal()}),
        ],
    )  # fmt: skip
    def test_what_an_entry_stands_for(self, method, entries, expected):
        assert _same(_made(method, *entries), METHODS[method].make(epsilon=1.0, **expected))

    def test_a_file_says_the_same(self, tmp_path):
        text = "latent_dim: 4\nlearning_rate: 1e-4\nprior: {kind: mixture, n_components: 5}\nstart: {kind: random}\n"
        (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
        dotted = {"latent-dim": 4, "learning_rate": 1e-4, "prior": "mixture", "prior.n_components": 5}
        (tmp_path / "s.json").write_text(json.dumps(dotted), encoding="utf-8")
        expected = METHODS["p3gm"].make(
            epsilon=1.0, latent_dim=4, learning_rate=1e-4, prior=settings.Mixture(n_components=5),
            start=settings.Random(),
        )  # fmt: skip
        assert _same(make_method("p3gm", 1.0, None, flat_settings([str(tmp_path / "s.yaml")])), expected)
        with_start = flat_settings(["start=random", str(tmp_path / "s.json")])
        assert _same(make_method("p3gm", 1.0, None, with_start), expected)

    def test_lists_of_a_file(self):
        found = make_method("dpgm", 1.0, None, {"centres": [[0.0, 1.0], [2, 3]], "component.hidden": [30, 20]})
        np.testing.assert_array_equal(found.centres, [[0.0, 1.0], [2.0, 3.0]])
        assert found.component == settings.VAE(hidden=(30, 20))


class TestDevices:
    @pytest.mark.parametrize("method", ["p3gm", "dpgm"])
    def test_what_is_no_device_is_refused(self, method):
        for device in ("gpu", "cuda:", "cpu:1"):
            with pytest.raises(ConfigError, match="device"):
                _made(method, f"device={device}")

    @pytest.mark.parametrize("method", ["p3gm", "dpgm"])
    def test_a_device_that_is_not_there_is_refused_before_a_plan(self, method):
        with pytest.raises(ConfigError, match="torch sees"):
            _made(method, "device=cuda:99").plan(tables.schema(), target="income")
        assert _made(method).plan(tables.schema(), target="income")

    def test_the_processor_is_there(self):
        decoding.require_networks("cpu")


REFUSED = [
    ("max-entropy", ["marginal_shares=0.3"], "marginal_share, level_groups"),
    ("max-entropy", ["marginal_shares=0.3"], "purpose.spread"),
    ("max-entropy", ["epsilon=2"], "settings of the method max-entropy"),
    ("max-entropy", ["marginal_share"], "KEY=VALUE"),
    ("max-entropy", ["=3"], "KEY=VALUE"),
    ("max-entropy", ["marginal_share="], "KEY=VALUE"),
    ("max-entropy", ["marginal_share=much"], "marginal_share to be a number"),
    ("max-entropy", ["marginal_share=nan"], "marginal_share"),
    ("max-entropy", ["marginal_share=1.5"], "marginal_share"),
    ("max-entropy", ["level_groups=2.5"], "level_groups to be a whole number"),
    ("max-entropy", ["level_groups=none"], "level_groups to be a whole number"),
    ("max-entropy", ["pose=upright"], "pose to be auto or affine or none"),
    ("max-entropy", ["purpose=fun"], "purpose to be fidelity or training"),
    ("max-entropy", ["purpose.spread=2"], "settings of purpose=fidelity, which has none"),
    ("max-entropy", ["marginal_share.x=2"], "'marginal_share.x'"),
    ("max-entropy", ["marginal_share=0.2", "marginal-share=0.3"], "'marginal_share' twice"),
    ("p3gm", ["prior=mixture", "prior.components=2"], "n_components, full_covariances, iterations"),
    ("p3gm", ["prior=mixture", "prior.n_components=0"], "n_components"),
    ("p3gm", ["noise=multipliers"], "noise.centre, noise.moment, noise.mixture, noise.decoder beside"),
    ("p3gm", ["draw=1"], "draw to be true or false"),
    ("p3gm", ["heads=both"], "heads"),
    ("dpgm", ["component.hidden=many"], "hidden to be a list, each a whole number"),
    ("dpgm", ["clip_norm=1", "clip_norm.rank=0.5"], "clip_norm to be adaptive-clip beside clip_norm.rank"),
    ("dpgm", ["centres=1,2"], "centres to be a list of lists"),
    ("independent-items", ["share=0.5"], "which has none"),
]


class TestRefused:
    @pytest.mark.parametrize(("method", "entries", "said"), REFUSED)
    def test_before_anything_is_read(self, tmp_path, monkeypatch, call, method, entries, said):
        """No file of these calls is there: a call that reached for one would say so."""
        monkeypatch.chdir(tmp_path)
        options = [part for entry in entries for part in ("--set", entry)]
        rest = ("--schema", "absent.yaml", "--epsilon", 1, "--method", method, *options)
        for command in (("plan",), ("fit", "absent.csv", "--out", "r"), ("evaluate", "method")):
            done = call(*command, *rest)
            assert done.code == 2
            assert said in done.err
            assert done.out == ""
        assert not list(tmp_path.iterdir())

    def test_a_file_and_an_entry(self, tmp_path, call):
        (tmp_path / "s.yaml").write_text("prior: {kind: mixture}\n", encoding="utf-8")
        options = ("--set", tmp_path / "s.yaml", "--set", "prior=by-class")
        done = call("plan", "--schema", "absent", "--epsilon", 1, "--method", "p3gm", *options)
        assert (done.code, "'prior' twice" in done.err) == (2, True)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("- 1\n", "to hold a mapping"),
            ("pose: none\npose: auto\n", "given twice"),
            ("purpose: {kind: training, spread: [1]}\n", "spread to be a number"),
            ("marginal_share: true\n", "marginal_share to be a number"),
            ("level_groups: 2.0\n", "level_groups to be a whole number"),
            ("purpose: {spread: {kind: 1}}\n", "settings of purpose=fidelity"),
            ("purpose:\n  kind: training\npurpose.kind: training\n", "purpose.kind"),
        ],
    )
    def test_a_file_of_another_form(self, tmp_path, call, text, said):
        (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
        done = call("plan", "--schema", "absent", "--epsilon", 1, "--set", tmp_path / "s.yaml")
        assert done.code == 2
        assert said in done.err

    def test_no_such_method_or_file(self, call):
        done = call("plan", "--schema", "absent", "--epsilon", 1, "--method", "none", "--set", "x=1")
        assert (done.code, "--method" in done.err) == (2, True)
        done = call("plan", "--schema", "absent", "--epsilon", 1, "--set", "no-settings.yaml")
        assert (done.code, "no-settings.yaml" in done.err) == (2, True)

    def test_the_settings_are_no_output(self, folder, call):
        (folder / "s.sfm").write_text("marginal_share: 0.3\n", encoding="utf-8")
        options = ("--schema", "schema.yaml", "--epsilon", 1, "--set", "s.sfm", "--out", "s.sfm", "--overwrite")
        done = call("fit", "people.csv", *options)
        assert (done.code, "settings of this call" in done.err) == (2, True)
        assert (folder / "s.sfm").read_text(encoding="utf-8") == "marginal_share: 0.3\n"


class TestCommands:
    def test_a_plan_is_that_of_the_settings(self, folder, call):
        (folder / "s.yaml").write_text("level_groups: 8\n", encoding="utf-8")
        base = ("plan", "--schema", "schema.yaml", "--epsilon", 1, "--target", "income", "--json")
        shown = call(*base, "--set", "marginal_share=0.2", "--set", "s.yaml").json
        method = METHODS["max-entropy"].make(epsilon=1.0, marginal_share=0.2, level_groups=8)
        plan = method.describe_plan(tables.schema(), target="income")
        assert [stage["share"] for stage in shown["stages"]] == [stage["share"] for stage in plan["stages"]]
        assert shown["stages"] != call(*base).json["stages"]

    def test_a_plan_for_a_target_error(self, folder, call):
        base = ("plan", "--schema", "schema.yaml", "--target", "income", "--json", "--target-error", 0.05)
        shown = call(*base, "--set", "marginal_share=0.2").json
        method = METHODS["max-entropy"].make(epsilon=1.0, marginal_share=0.2)
        epsilon = method.epsilon_for(tables.schema(), target_error=0.05, target="income")
        assert math.isclose(shown["epsilon"], epsilon, rel_tol=1e-3)
        assert not math.isclose(shown["epsilon"], call(*base).json["epsilon"], rel_tol=1e-2)
        assert replace(method, epsilon=epsilon).plan(tables.schema(), target="income")

    def test_a_plan_for_an_answer(self, folder, call):
        base = ("plan", "--schema", "schema.yaml", "--json", "--question", "ols: age ~ C(income)")
        shown = call(*base, "--target-error", "ols: age ~ C(income) = 1.2").json
        schema = replace(tables.schema(), questions=["ols: age ~ C(income)"])
        epsilon = (
            METHODS["max-entropy"]
            .make(epsilon=1.0)
            .epsilon_for(schema, question="ols: age ~ C(income)", target_error=1.2)
        )
        assert math.isclose(shown["epsilon"], epsilon, rel_tol=1e-3)
        assert "intervals 1.2 times as wide" in str(shown["stages"])

    def test_a_fit_has_the_settings(self, folder, call):
        base = ("--schema", "schema.yaml", "--epsilon", 1, "--seed", 0)
        assert call("fit", "people.csv", *base, "--set", "marginal_share=0.2", "--out", "r.sfm").code == 0
        found = {stage["name"]: stage["share"] for stage in load("r.sfm").certificate.content["stages"]}
        assert math.isclose(next(iter(found.values())), 0.2, rel_tol=1e-6)

    @pytest.mark.parametrize("method", METHODS)
    def test_what_can_be_set_is_shown(self, call, method):
        found = call("methods", method, "--json").json
        assert set(found) == {"method", "about", "settings", "presets"}
        for entry in found["settings"]:
            assert set(entry) == {"name", "type", "default", "required", "with", "about"}
        shown = call("methods", method)
        assert shown.code == 0
        for entry in found["settings"]:
            assert entry["name"] in shown.out
        assert ("no settings" in shown.out) is not bool(found["settings"])

    def test_inner_settings_say_beside_what(self, call):
        found = call("methods", "p3gm", "--json").json["settings"]
        (inner,) = [entry for entry in found if entry["name"] == "prior.n_components"]
        assert (inner["with"], inner["default"], inner["type"]) == ("prior=mixture", 1, "a whole number")
        assert "`n_components`" not in inner["about"]
        (outer,) = [entry for entry in found if entry["name"] == "prior"]
        assert (outer["type"], outer["default"]) == ("mixture or by-class or standard-normal", "by-class")

    def test_no_such_method(self, call):
        done = call("methods", "nonsense")
        assert (done.code, "max-entropy" in done.err) == (2, True)

    def test_an_audit_takes_them(self, folder, call, monkeypatch):
        seen = []

        def attack(synthesizer, *_, **__):
            seen.append(synthesizer)
            raise PrivacyError("enough")

        monkeypatch.setattr("sfumato.audit.audit", attack)
        assert (
            call("evaluate", "method", "--schema", "schema.yaml", "--epsilon", 1, "--set", "calibration_rows=7").code
            == 1
        )
        assert seen[0].calibration_rows == 7

    def test_all_candidates_of_a_search_have_them(self, folder, call, monkeypatch):
        seen = []

        def search(data, schema, *, method, **options):
            seen.extend(method)
            raise PrivacyError("enough")

        monkeypatch.setattr("sfumato.tune", search)
        base = ("model", "tune", "people.csv", "--schema", "schema.yaml", "--epsilon", 1, "--out", "r")
        base = (*base, "--method", "p3gm")
        options = ("--set", "prior=mixture", "--grid", "prior.n_components=1,3", "--grid", "latent-dim=5")
        assert call(*base, *options).code == 1
        assert [found.prior for found in seen] == [settings.Mixture(n_components=n) for n in (1, 3)]
        assert {found.latent_dim for found in seen} == {5}
        seen.clear()
        (folder / "c.yaml").write_text("- {prior: {kind: mixture, n_components: 2}}\n- prior: by-class\n", "utf-8")
        assert call(*base, "--candidates", "c.yaml").code == 1
        assert [found.prior for found in seen] == [settings.Mixture(n_components=2), settings.ByClass()]
        done = call(*base, *options, "--set", "latent_dim=4")
        assert (done.code, "'latent_dim' twice" in done.err) == (2, True)


class TestPresets:
    def test_a_preset_and_what_goes_over_it(self):
        released = METHODS["p3gm"].make.presets()["as-released"].settings
        found = make_method("p3gm", 1.0, None, {"latent_dim": "12", "prior.n_components": "5", "preset": "as-released"})
        assert (found.latent_dim, found.prior) == (12, settings.Mixture(n_components=5))
        assert found.noise == released["noise"]
        anew = make_method("p3gm", 1.0, None, {"prior": "by-class", "preset": "as-released"})
        assert anew.prior == settings.ByClass()
        changed = make_method("dpmix", 1.0, None, {"mixture_degree": "8", "preset": "published"})
        assert (changed.mixture_degree, changed.clip_norm) == (8, 28.0)

    @pytest.mark.parametrize(
        ("method", "preset", "said"),
        [
            ("max-entropy", "published", "which has none"),
            ("dpgm", "as-released", "published, published-rbm"),
        ],
    )
    def test_refused_before_anything_is_read(self, tmp_path, monkeypatch, call, method, preset, said):
        monkeypatch.chdir(tmp_path)
        rest = ("--schema", "absent.yaml", "--epsilon", 1, "--method", method, "--set", "preset=" + preset)
        for command in (("plan",), ("fit", "absent.csv", "--out", "r")):
            done = call(*command, *rest)
            assert (done.code, said in done.err) == (2, True)
        assert not list(tmp_path.iterdir())

    def test_a_plan_a_fit_and_its_certificate_say_it(self, folder, call):
        options = ("--schema", "schema.yaml", "--epsilon", 5, "--method", "dpmix", "--set", "preset=published")
        assert call("plan", *options, "--json").json["preset"].startswith("published: ")
        assert call("fit", "people.csv", *options, "--out", "r.sfm").code == 0
        shown = call("certificate", "r.sfm")
        line = METHODS["dpmix"].make.presets()["published"].differs
        assert "".join(line.split()) in "".join(shown.out.split())
        assert load("r.sfm").certificate.epsilon <= 5

    def test_a_method_lists_its_presets(self, call):
        found = {entry["preset"]: entry["differs"] for entry in call("methods", "p3gm", "--json").json["presets"]}
        assert "none meets its epsilon" in found["as-written:credit"]
        assert all(found.values())
        assert "--set preset=published-rbm: " in call("methods", "dpgm").out
