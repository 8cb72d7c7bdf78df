"""Samples given values: these are fixed, the rest follows the model's conditional law, mistakes are told."""

import dataclasses
import datetime as dt
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures import tables
from fixtures.costly import slow_after
from fixtures.releases import SMALL, fit, small_frame
from sfumato import MaxEntropy, NonPrivate
from sfumato.columns.kinds import Boolean, Continuous
from sfumato.errors import ConfigError
from sfumato.release.blocks import SAMPLE_BLOCK
from sfumato.schema.schema import Schema

ROWS = 20_000


@pytest.fixture(scope="module")
def many():
    """A release of many people without noise, and rows drawn from it without conditions."""
    schema = dataclasses.replace(tables.schema(), rows=ROWS)
    method = MaxEntropy(epsilon=NonPrivate())
    release = method.fit(tables.frame(ROWS), schema=schema, target="income", seed=0)
    return release, release.sample(300_000, seed=1)


EXTRAS = ({}, {"sex": "f"}, {"grade": "mid", "member": False})
AGES = [((i, j), (age, extra)) for i, age in enumerate((20, 45, 60)) for j, extra in enumerate(EXTRAS)]


class TestAgainstRejection:
    """The same law as that of the plain rows that happen to have the values."""

    @pytest.mark.parametrize(
        "given",
        slow_after(
            1,
            [
                {"weight": None, "sex": "m"}, {"sex": "f"}, {"grade": "low", "member": True}, {"grade": None},
                {"income": ">50K"}, {"income": "<=50K", "grade": "high"},
            ],
        ),
        ids=str,
    )  # fmt: skip
    def test_labels_and_missing(self, many, given):
        release, plain = many
        for name, value in given.items():
            plain = plain[plain[name].isna() if value is None else plain[name] == value]
        assert len(plain) > 8_000
        self.compare(release.sample(SAMPLE_BLOCK, seed=2, given=given), plain, tolerance=0.025)

    @pytest.mark.parametrize(
        ("age", "extra"),
        [pytest.param(age, extra, marks=() if place in {(1, 2)} else pytest.mark.slow) for place, (age, extra) in AGES],
        ids=str,
    )
    def test_numbers(self, many, age, extra):
        release, plain = many
        cell = release._sampler._grid.columns[3]
        cells = cell.cells(np.append(plain["age"].to_numpy(float), age) / 100)
        keep = cells[:-1] == cells[-1]
        for name, value in extra.items():
            keep &= (plain[name] == value).to_numpy()
        plain = plain[keep]
        # few plain rows have the value: 4.5 standard errors of a share near 1/2, and 0.025 for clipping
        tolerance = 0.025 + 4.5 * 0.5 / np.sqrt(len(plain))
        self.compare(release.sample(SAMPLE_BLOCK, seed=3, given={"age": age, **extra}), plain, tolerance)

    def compare(self, ours, plain, tolerance):
        for name in ("sex", "grade", "member", "income"):
            shares = [frame[name].value_counts(normalize=True, dropna=False) for frame in (ours, plain)]
            assert (shares[0].sub(shares[1], fill_value=0)).abs().max() < tolerance, name
        for name in ("age", "weight", "seen"):
            if ours[name].nunique() <= 1:
                continue
            numbers = [f[name].dropna().astype("int64" if name == "seen" else float) for f in (ours, plain)]
            cuts = np.quantile(numbers[1], [0.25, 0.5, 0.75])
            found = [np.searchsorted(cuts, values) for values in numbers]
            shares = [np.bincount(f, minlength=4) / len(f) for f in found]
            assert np.abs(shares[0] - shares[1]).max() < tolerance, name


@pytest.mark.usefixtures("small_blocks")
class TestWhatIsFixed:
    @pytest.mark.parametrize(
        ("name", "value", "shown"),
        [
            ("sex", "f", "f"), ("grade", "mid", "mid"), ("member", True, True), ("member", "no", False),
            ("age", 41, 41), ("age", 41.0, 41), ("age", "41", 41), ("age", np.int8(41), 41), ("age", 0, 0),
            ("weight", 61.3, 61.3), ("weight", "61.3", 61.3), ("weight", np.float32(61.3), 61.3),
            ("seen", "2012-03-04", pd.Timestamp("2012-03-04")),
            ("seen", dt.date(2012, 3, 4), pd.Timestamp("2012-03-04")),
            ("seen", np.datetime64("2012-03-04"), pd.Timestamp("2012-03-04")),
            ("seen", pd.Timestamp("2012-03-04"), pd.Timestamp("2012-03-04")), ("income", ">50K", ">50K"),
        ],
    )  # fmt: skip
    def test_every_row_has_exactly_the_value(self, many, name, value, shown):
        release, plain = many
        rows = release.sample(300, seed=0, given={name: value})
        assert (rows[name] == shown).all()
        assert rows.dtypes.equals(plain.dtypes)
        assert list(rows.columns) == list(plain.columns)

    @pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT, np.float64("nan")], ids=repr)
    @pytest.mark.parametrize("name", ["grade", "weight"])
    def test_missing(self, many, name, nothing):
        assert many[0].sample(300, seed=0, given={name: nothing})[name].isna().all()

    def test_a_number_that_no_resolution_rounds(self):
        value = 1 / 3
        frame = pd.DataFrame({"x": np.linspace(0, 1, 500), "a": [True, False] * 250})
        schema = Schema(columns={"x": Continuous(lower=-0.1, upper=1.7), "a": Boolean()}, rows=500)
        release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=schema)
        assert set(release.sample(50, given={"x": value})["x"]) == {value}

    def test_all_columns(self, many):
        row = {"sex": "f", "grade": "low", "member": True, "age": 60, "weight": 60.0, "seen": "2012-03-04"}
        row["income"] = ">50K"
        rows = many[0].sample(20, seed=0, given=row)
        assert len(rows.drop_duplicates()) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("container", ["pyarrow", "csv"])
    def test_in_other_containers(self, container, tmp_path):
        frame = small_frame()
        frame.loc[::5, "grade"] = None
        data = (
            pa.Table.from_pandas(frame, preserve_index=False)
            if container == "pyarrow"
            else tables.write_csv(tmp_path / "d.csv", frame)
        )
        # at a small ε the noise may leave no missing grade at all
        release = MaxEntropy(epsilon=20.0).fit(data, schema=SMALL, target="label", seed=1)
        given = {"grade": None, "age": 3, "weight": 2.5}
        rows = release.sample(20, seed=0, given=given)
        assert rows.schema == release.sample(5, seed=0).schema
        text = container == "csv"
        assert rows["age"].to_pylist() == ["3" if text else 3] * 20
        assert rows["weight"].to_pylist() == ["2.5" if text else 2.5] * 20
        assert rows["grade"].null_count == 20


GIVEN = {"age": 40, "sex": "f"}


class TestStreams:
    def test_nothing_given_is_plain_sampling(self, people):
        plain = people.sample(300, seed=4)
        for nothing in (None, {}):
            pd.testing.assert_frame_equal(people.sample(300, seed=4, given=nothing), plain)

    @pytest.mark.usefixtures("small_blocks")
    def test_the_same_seed_gives_the_same_rows(self, people):
        first = people.sample(300, seed=4, given=GIVEN)
        again = fit(tables.frame(), tables.schema(), "income")
        pd.testing.assert_frame_equal(again.sample(300, seed=4, given=GIVEN), first)
        backwards = dict(reversed(GIVEN.items()))
        pd.testing.assert_frame_equal(people.sample(300, seed=4, given=backwards), first)
        assert not people.sample(300, seed=5, given=GIVEN).equals(first)

    @pytest.mark.parametrize("n", [0, 1, SAMPLE_BLOCK, SAMPLE_BLOCK + 1])
    def test_the_first_rows_do_not_depend_on_n(self, small, n):
        given = {"age": 4}
        whole = pa.concat_tables(small.batches(SAMPLE_BLOCK + 7, seed=9, given=given))
        assert pa.concat_tables(small.batches(n, seed=9, given=given)).equals(whole.slice(0, n))

    def test_another_question_after_the_first_is_quick(self, many):
        many[0].sample(10, given={"age": 50, "weight": 60.0})
        start = time.process_time()
        many[0].sample(10, given={"age": 70, "weight": 61.0})
        assert time.process_time() - start < 2


class TestClassCounts:
    def test_they_are_kept_and_mixed(self, people):
        rows = people.sample(class_counts={"<=50K": 100, ">50K": 900}, seed=0)
        assert rows["income"].value_counts().to_dict() == {"<=50K": 100, ">50K": 900}
        assert 20 < (rows["income"][:500] == "<=50K").sum() < 80
        pd.testing.assert_frame_equal(rows, people.sample(1000, class_counts={">50K": 900, "<=50K": 100}, seed=0))

    def test_over_several_blocks(self, small):
        counts = {"no": SAMPLE_BLOCK + 3, "yes": SAMPLE_BLOCK}
        batches = list(small.batches(class_counts=counts, seed=0))
        assert [batch.num_rows for batch in batches] == [SAMPLE_BLOCK, SAMPLE_BLOCK, 3]
        labels = pa.concat_tables(batches)["label"].to_pandas()
        assert labels.value_counts().to_dict() == counts

    def test_with_given_values(self, people):
        rows = people.sample(class_counts={">50K": 30, "<=50K": 5}, given={"grade": "mid"}, seed=0)
        assert (rows["grade"] == "mid").all()
        assert (rows["income"] == ">50K").sum() == 30

    def test_none_at_all(self, people):
        assert len(people.sample(class_counts={})) == 0

    def test_of_images(self, pictures):
        rows = pictures.sample(class_counts={0: 5, "2": 7}, seed=0)
        assert np.bincount(rows["y"]).tolist() == [5, 0, 7]
        assert (pictures.sample(30, seed=0, given={"y": 1})["y"] == 1).all()

    @pytest.mark.parametrize(
        "arguments",
        [
            {"class_counts": {"<=50K": 3}, "n": 4}, {"class_counts": {"<=50K": -1}}, {"class_counts": {"<=50K": 1.5}},
            {"class_counts": {"rich": 1}}, {"class_counts": {None: 1}}, {"class_counts": {"<=50K": 10**9}},
            {"class_counts": {"<=50K": 3}, "given": {"income": ">50K"}},
        ],
        ids=str,
    )  # fmt: skip
    def test_mistakes(self, people, arguments):
        with pytest.raises(ConfigError):
            people.batches(**arguments)

    def test_a_release_without_a_target(self):
        release = fit(small_frame(), SMALL)
        with pytest.raises(ConfigError, match="target"):
            release.batches(class_counts={"yes": 3})
        assert (release.sample(30, given={"label": "yes"})["label"] == "yes").all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colour": "red"}, "'colour'"), ({"id": 3}, "'id'"),
        ({"sex": "x"}, "'sex'"), ({"sex": 3}, "'sex'"), ({"sex": ["f"]}, "'sex'"), ({"sex": None}, "'sex'"),
        ({"member": "perhaps"}, "'member'"), ({"income": ">60K"}, "'income'"),
        ({"age": 101}, "age <= 100"), ({"age": -1}, "0 <= age"), ({"age": 4.5}, "age"), ({"age": "old"}, "age"),
        ({"age": True}, "age"), ({"age": None}, "'age'"), ({"age": float("inf")}, "age"), ({"age": 10**30}, "age"),
        ({"weight": 120.1}, "weight <= 120"), ({"weight": 60.05}, "multiple of 0.1"), ({"weight": "heavy"}, "weight"),
        ({"weight": True}, "weight"), ({"weight": [60]}, "weight"), ({"weight": -float("inf")}, "weight"),
        ({"seen": "2021-01-01"}, "seen"), ({"seen": "soon"}, "seen"), ({"seen": 3}, "seen"),
        ({"seen": "2012-03-04 10:00"}, "whole day"), ({"seen": dt.datetime(2012, 3, 4, tzinfo=dt.UTC)}, "offset"),
        ({"sex": "f", "age": 101}, "age"),
    ],
    ids=str,
)  # fmt: skip
def test_impossible_values_are_refused_before_sampling(people, given, said):
    with pytest.raises(ConfigError, match=said) as error:
        people.batches(5, given=given)
    assert str(error.value).startswith("Expected")
    assert error.value.__context__ is None


def test_pictures_cannot_be_given(pictures):
    with pytest.raises(ConfigError, match="'x'"):
        pictures.batches(5, given={"x": np.zeros((4, 4))})


def test_what_the_release_never_draws_is_refused():
    frame = pd.DataFrame({"a": [True] * 500, "b": [True, False] * 250})
    schema = Schema(columns={"a": Boolean(), "b": Boolean()}, rows=500)
    for target in (None, "b"):
        release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=schema, target=target)
        with pytest.raises(ConfigError, match="probability 0"):
            release.batches(5, given={"a": False})
        assert release.sample(5, given={"a": True})["a"].all()
