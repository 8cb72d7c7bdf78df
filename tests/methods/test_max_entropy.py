"""MaxEntropy: what it learns, its settings, and the public facts that its sizes follow from."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from fixtures import tables
from sfumato import Fidelity, MaxEntropy, NonPrivate, Schema, Training, load
from sfumato.columns.kinds import Boolean, Categorical, Continuous, Integer
from sfumato.errors import ConfigError, ReleaseError, SchemaError
from sfumato.methods.tables import settings as table_model

N = 4_000


def two_columns(rows: int = N) -> tuple[pd.DataFrame, Schema]:
    rng = np.random.default_rng(0)
    a = rng.random(rows) < 0.3
    b = np.where(rng.random(rows) < 0.9, a, ~a)
    frame = pd.DataFrame({"a": a, "b": b, "x": rng.normal(5 + 3 * a, 1).clip(0, 10)})
    kinds = {"a": Boolean(), "b": Boolean(), "x": Continuous(lower=0, upper=10, resolution=0.01)}
    return frame, Schema(columns=kinds, rows=rows)


class TestWhatItLearns:
    @pytest.mark.slow
    @pytest.mark.parametrize("target", [None, "a"])
    @pytest.mark.parametrize("epsilon", [NonPrivate(), 5.0])
    def test_marginals_and_dependence(self, target, epsilon):
        frame, schema = two_columns()
        made = MaxEntropy(epsilon=epsilon).fit(frame, schema=schema, target=target, seed=0).sample(20_000, seed=0)
        assert made["a"].mean() == pytest.approx(frame["a"].mean(), abs=0.03)
        # clipping weakens the dependence of two columns of one class; without any it would be 0.56
        assert 0.75 < (made["a"] == made["b"]).mean() < 0.95
        for value in (False, True):
            ours, theirs = made.loc[made["a"] == value, "x"], frame.loc[frame["a"] == value, "x"]
            assert ours.mean() == pytest.approx(theirs.mean(), abs=0.4 if target else 0.8)

    def test_the_classes_of_images(self):
        pixels, labels = tables.images(600)
        release = MaxEntropy(epsilon=NonPrivate()).fit((pixels, labels), schema=tables.image_schema())
        made = release.sample(600, seed=0)
        for label in range(3):
            ours, theirs = made["y"] == label, labels == label
            assert ours.mean() == pytest.approx(theirs.mean(), abs=0.08)
            assert np.abs(made["x"][ours].mean(axis=0) - pixels[theirs].mean(axis=0)).max() < 25

    def test_impossible_values_stay_impossible(self):
        # an amount that is exactly 0 for most, and a label that never occurs
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({"amount": np.where(rng.random(N) < 0.8, 0.0, rng.uniform(500, 900, N)), "k": "p"})
        kinds = {"amount": Continuous(lower=0, upper=1000), "k": Categorical(categories=("p", "q"))}
        schema = Schema(columns=kinds, rows=N)
        made = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=schema).sample(5_000, seed=0)
        assert (made["amount"] == 0).mean() == pytest.approx(0.8, abs=0.03)
        assert set(made["k"]) == {"p"}

    @pytest.mark.parametrize(
        ("kind", "missing"), [(Integer(lower=0, upper=5_000), False), (Continuous(lower=16, upper=52_864), False),
                              (Integer(lower=7, upper=9_000, nullable=True), True)],
    )  # fmt: skip
    def test_what_is_recorded_as_a_bound_stays_there(self, kind, missing):
        """A cap holds 35 % of the records, the lower bound 10 %; other values lie beside both, hundreds to a cell."""
        rng = np.random.default_rng(2)
        inside = rng.uniform(kind.lower, kind.upper, N)
        values = np.select([(u := rng.random(N)) < 0.35, u < 0.45], [kind.upper, kind.lower], np.rint(inside))
        label = np.where(rng.random(N) < 0.8, u < 0.35, u >= 0.35)
        x = pd.Series(np.where(missing & (u > 0.9), np.nan, values))
        frame = pd.DataFrame({"x": x.astype("Int64" if isinstance(kind, Integer) else float), "capped": label})
        schema = Schema(columns={"x": kind, "capped": Boolean()}, rows=N)
        made = MaxEntropy(epsilon=1.0).fit(frame, schema=schema, target="capped", seed=0).sample(N, seed=0)
        ours, theirs = (f.assign(x=f["x"].fillna(0)) for f in (made, frame))
        for bound in (kind.lower, kind.upper):
            assert (ours["x"] == bound).mean() == pytest.approx((theirs["x"] == bound).mean(), abs=0.03)
        capped = [(f["x"] == kind.upper)[f["capped"]].mean() for f in (ours, theirs)]
        assert capped[0] == pytest.approx(capped[1], abs=0.06)


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("marginal_share", 0), ("marginal_share", 1), ("marginal_share", float("nan")), ("level_groups", 1),
            ("level_groups", 2.5), ("clip_slack", 0), ("clip_slack", float("inf")),
        ],
    )  # fmt: skip
    def test_outside_their_domain(self, name, value):
        with pytest.raises(ConfigError, match=name):
            MaxEntropy(epsilon=1.0, **{name: value})

    def test_they_change_the_plan(self):
        plan = MaxEntropy(epsilon=1.0, marginal_share=0.5).plan(tables.schema())
        marginals, moments = plan.stages
        assert marginals.noise_multiplier == moments.noise_multiplier

    def test_few_groups_of_many_levels(self):
        kind = Categorical(categories=tuple(map(str, range(200))))
        schema = Schema(columns={"a": kind, "b": Boolean()}, rows=1000)
        frame = pd.DataFrame({"a": [str(i % 200) for i in range(1000)], "b": [True] * 1000})
        release = MaxEntropy(epsilon=1.0, level_groups=5).fit(frame, schema=schema)
        assert release.parameters["column.0.tilts"].shape == (6,)  # the last one of no label
        assert set(release.sample(200)["a"].astype(str)) <= set(kind.categories)


class TestSizes:
    facts = table_model.TableFacts(n_columns=10, n_level_cells=30, n_number_entries=5, n_classes=2)

    def test_less_noise_buys_more_waves_and_smaller_margins(self):
        """Entries of a second moment are told apart from noise sooner with more rows; all from public facts."""
        rows = (10, 10_000, 10**9)
        noise = [table_model.entry_noise(10.0, self.facts, n) for n in rows]
        assert noise == sorted(noise, reverse=True)
        waves = [table_model.waves_of(entry, self.facts).most for entry in noise]
        assert waves == sorted(waves)
        assert waves[0] == 1 < waves[-1]
        shares = [table_model.margins_share(self.facts, 10.0, n) for n in rows]
        assert shares == sorted(shares, reverse=True)
        assert 0 < shares[-1] < shares[0] < 1

    def test_as_noise_vanishes_settings_are_those_without_it(self, monkeypatch):
        """Finer step by step, and at last as fine as without noise."""
        found = []
        of = table_model.Settings.of.__func__

        def seen(cls, *arguments):
            found.append(of(cls, *arguments))
            raise KeyboardInterrupt  # the rest of a fit takes seconds

        monkeypatch.setattr(table_model.Settings, "of", classmethod(seen))
        for rows, epsilon in ((1_000, 1.0), (10_000, 1.0), (10_000, 10.0), (10**7, 10.0), (1_000, NonPrivate())):
            schema = dataclasses.replace(tables.schema(), rows=rows)
            with pytest.raises(KeyboardInterrupt):
                MaxEntropy(epsilon=epsilon).fit(tables.frame(), schema=schema, seed=0)
        assert [s.cells for s in found] == sorted(s.cells for s in found)
        waves = [s.resolution.waves.most for s in found]
        assert waves == sorted(waves)
        assert waves[0] < waves[-1]
        assert [s.ends for s in found] == sorted(s.ends for s in found)
        assert not found[0].ends
        assert found[-1].ends
        assert (found[-2].cells, found[-2].resolution) == (found[-1].cells, found[-1].resolution)
        assert [s.few for s in found] == sorted((s.few for s in found), reverse=True)

    def test_a_target_weighs_more_of_many_labels_and_in_much_noise(self):
        few, many = (dataclasses.replace(self.facts, n_classes=n) for n in (2, 26))
        assert table_model.target_weight(0.0, few) < table_model.target_weight(0.0, many)
        assert table_model.target_weight(1.0, few) == self.facts.n_columns

    def test_a_target_alone_is_one_class(self):
        schema = Schema(columns={"a": Boolean()}, rows=100)
        release = MaxEntropy(epsilon=1.0).fit(pd.DataFrame({"a": [True] * 90}), schema=schema, target="a")
        assert release.sampler["target"] is None
        assert list(release.sample(10).columns) == ["a"]

    def test_too_many_classes(self):
        kind = Categorical(categories=tuple(map(str, range(1001))))
        schema = Schema(columns={"a": kind, "b": Boolean()}, rows=100)
        with pytest.raises(SchemaError, match="at most 1000 classes"):
            MaxEntropy(epsilon=1.0).plan(schema, target="a")

    def test_constants_by_the_marginals_are_no_failure(self):
        # every released marginal is a point: the records' vectors have norm 0
        kinds = {"a": Categorical(categories=("p", "q")), "b": Integer(lower=0, upper=9)}
        schema = Schema(columns=kinds, rows=1000)
        frame = pd.DataFrame({"a": ["p"] * 1000, "b": [4] * 1000})
        for epsilon in (NonPrivate(), 5.0):
            made = MaxEntropy(epsilon=epsilon).fit(frame, schema=schema, seed=0).sample(100, seed=0)
            assert (made["a"] == "p").mean() > 0.9
            assert (made["b"] == 4).mean() > 0.9

    def test_a_domain_of_one_point(self):
        kinds = {"a": Categorical(categories=("p",)), "b": Integer(lower=3, upper=3)}
        schema = Schema(columns=kinds, rows=10)
        made = MaxEntropy(epsilon=1.0).fit(pd.DataFrame({"a": ["p"], "b": [3]}), schema=schema).sample(4)
        assert made.to_dict("list") == {"a": ["p"] * 4, "b": [3] * 4}


class TestForecast:
    @pytest.mark.slow
    def test_it_is_about_what_the_noise_does(self):
        # the standard error of a 1-way share at n_public, against fits to one and the same table
        frame, schema = two_columns()
        synthesizer = MaxEntropy(epsilon=1.0, calibration_rows=100)  # what follows the noise is not looked at
        said = synthesizer.describe_plan(schema)["stages"][0]["forecast"]
        forecast = float(said.rpartition("±")[2])
        counts = np.array(
            [synthesizer.fit(frame, schema=schema, seed=seed).measurements[0].value[0, :2] for seed in range(30)]
        )
        assert (counts / N).std(axis=0).mean() == pytest.approx(forecast, rel=0.5)

    def test_images(self):
        stages = MaxEntropy(epsilon=1.0).describe_plan(tables.image_schema())["stages"]
        assert [stage["name"] for stage in stages] == [
            "profiles", "class sums", "pooled second moment", "second moments by class",
        ]  # fmt: skip
        assert all(stage["forecast"] for stage in stages)

    def test_images_for_training(self):
        method = MaxEntropy(epsilon=1.0, purpose=Training(teacher_share=0.3))
        assert all(stage["forecast"] for stage in method.describe_plan(tables.image_schema())["stages"])
        stages = method.plan(tables.image_schema()).stages
        assert [stage.count for stage in stages] == [1, 1, 1, 1, 10]
        shares = np.array([stage.count / stage.noise_multiplier**2 for stage in stages])
        assert shares[-1] / shares.sum() == pytest.approx(0.3)


class TestPurpose:
    @pytest.mark.parametrize("settings", [{"spread": -1}, {"elastic": 5}, {"jitter": True}, {"teacher_share": 1.0}])
    def test_settings_out_of_range(self, settings):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            Training(**settings)

    @pytest.mark.parametrize("settings", [{"purpose": "training"}, {"pose": "upright"}])
    def test_unknown_purpose_or_pose(self, settings):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            MaxEntropy(epsilon=1.0, **settings)

    def test_images_without_labels_have_nothing_to_train_on(self):
        pixels, _ = tables.images(60)
        schema = Schema(columns={"x": tables.image_schema().columns["x"]}, rows=60)
        with pytest.raises(ConfigError, match="label column"):
            MaxEntropy(epsilon=1.0, purpose=Training()).fit(pixels, schema=schema)

    @pytest.mark.slow
    def test_a_release_for_training(self, tmp_path):
        pixels, labels = tables.images(600)
        method = MaxEntropy(epsilon=50.0, delta=1e-5, purpose=Training())
        release = method.fit((pixels, labels), schema=tables.image_schema())
        assert release.certificate.recompute() == pytest.approx(release.certificate.epsilon, abs=1e-6)
        (steps,) = (m for m in release.measurements if m.name == "classifier's gradients")
        assert steps.value.shape[0] == 10
        release.save(tmp_path / "r.sfm")
        made = load(tmp_path / "r.sfm").sample(300, seed=0)
        np.testing.assert_array_equal(made["x"], release.sample(300, seed=0)["x"])
        brightest = made["x"][:, range(3), range(3)].argmax(axis=1)  # each class is bright in a corner of its own
        assert (brightest == made["y"]).mean() > 0.9
        assert set(release.sample(20, given={"y": 1})["y"]) == {1}
        assert np.bincount(release.sample(class_counts={"0": 5, "2": 7})["y"]).tolist() == [5, 0, 7]

    def test_tables_are_the_same_for_training(self):
        schema = tables.schema()
        plans = [MaxEntropy(epsilon=1.0, purpose=p).plan(schema) for p in (Fidelity(), Training())]
        assert plans[0] == plans[1]


def test_arguments_of_a_wrong_type():
    method, frame = MaxEntropy(epsilon=1.0), tables.frame()
    for schema in (None, 5, ["age"]):
        with pytest.raises(ConfigError, match="schema"):
            method.fit(frame, schema=schema)
    with pytest.raises(ConfigError, match=r"progress.*got DataFrame") as caught:
        method.fit(frame, schema=tables.schema(), progress=frame)
    assert "<=50K" not in str(caught.value)
    release = method.fit(frame, schema=tables.schema(), target="income")
    for asked in ({"given": "age"}, {"class_counts": ["<=50K"]}):
        with pytest.raises(ConfigError, match=next(iter(asked))):
            release.sample(3, **asked)
    with pytest.raises(ReleaseError, match="path"):
        load(None)
