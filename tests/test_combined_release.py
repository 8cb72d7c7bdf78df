"""Releases of disjoint people as one: samples, estimates, files, refusals."""

import dataclasses
import json
import math
import zipfile

import numpy as np
import pandas as pd
import pytest

from fixtures.parts import COLUMNS, SIZES, law, part
from fixtures.releases import SMALL, fit, small_frame
from sfumato import CombinedRelease, MaxEntropy, NonPrivate, Schema, combine_releases, load, new_key, sign_release
from sfumato.columns import Categorical, Integer
from sfumato.combined_release import number, pooled_variance, times, weighted_mean
from sfumato.errors import ConfigError, OutputError, ReleaseError, SfumatoError
from sfumato.inference.estimate import Estimate
from sfumato.release.signature import verify_release

ALL = sum(SIZES)


@pytest.fixture(scope="module")
def parts(remembered_accounts):
    return [part(0), part(1)]


@pytest.fixture(scope="module")
def union(parts):
    return combine_releases(parts, disjoint=True)


def test_samples_are_of_the_parts_by_their_public_shares(union, parts):
    rows = union.sample(seed=1)
    assert len(rows) == ALL
    assert rows.dtypes.equals(parts[0].sample(1).dtypes)
    assert union.sample(40, seed=1).equals(rows.head(40))
    assert len(union.sample(0)) == 0
    expected = sum(n * own.sample(20_000, seed=0)["x"].mean() for n, own in zip(SIZES, parts, strict=True)) / ALL
    assert union.sample(20_000, seed=3)["x"].mean() == pytest.approx(expected, abs=0.05)


def test_a_part_that_cost_more_than_it_states_is_refused(parts):
    less = dataclasses.replace(parts[1], certificate=dataclasses.replace(parts[1].certificate, epsilon=0.01))
    with pytest.raises(ReleaseError, match=r"part 2 whose certificate holds.*got events that cost"):
        combine_releases([parts[0], less], disjoint=True)


def test_answers_of_few_records_stay_within_the_columns_bounds():
    """Forty ages came out as -23 and 155 years on average, with a variance below 0."""
    outside = 0
    for seed in range(4):
        ages = [pd.DataFrame({"age": np.random.default_rng([3, seed, i]).integers(0, 8, 40)}) for i in (0, 1)]
        schema = Schema(columns={"age": Integer(lower=0, upper=120)}, rows=40)
        own = [MaxEntropy(epsilon=0.3, delta=1e-5).fit(rows, schema=schema, seed=seed) for rows in ages]
        for release in (*own, combine_releases(own, disjoint=True)):
            for answer, most in ((release.mean("age"), 120.0), (release.variance("age"), 3_600.0)):
                assert 0 <= answer.low <= answer.value <= answer.high <= most
                outside += answer.unbounded != answer.value
    assert outside, "no answer of these seeds would leave them"


def test_samples_go_to_files(union, tmp_path):
    union.write_sample(tmp_path / "s.csv", 50, seed=1)
    assert pd.read_csv(tmp_path / "s.csv")["x"].tolist() == union.sample(50, seed=1)["x"].tolist()


def test_estimates_are_means_of_the_parts_answers(union, parts):
    means = [own.mean("x") for own in parts]
    mean = union.mean("x")
    assert mean.value == pytest.approx(sum(n * m.value for n, m in zip(SIZES, means, strict=True)) / ALL)
    errors = [n * m.std_error / ALL for n, m in zip(SIZES, means, strict=True)]
    assert np.hypot(*errors) <= mean.std_error <= sum(errors)
    noise = [n * m.parts["noise"] / ALL for n, m in zip(SIZES, means, strict=True)]
    assert mean.parts["noise"] == pytest.approx(np.hypot(*noise))
    counts = [own.count({"s": "f"}).value for own in parts]
    assert union.count({"s": "f"}).value == pytest.approx(sum(counts))
    shares = [own.share({"s": "f"}).value for own in parts]
    assert union.share({"s": "f"}).value == pytest.approx(np.average(shares, weights=SIZES))


def test_without_noise_they_are_those_of_all_rows():
    tables = [law(3_000, place, np.random.default_rng(place)) for place in (0, 1)]
    rows = pd.concat(tables)
    # nobody combines releases without noise: the least noise stands for none
    parts = [
        MaxEntropy(epsilon=90.0, delta=1e-5).fit(own, schema=Schema(columns=COLUMNS, rows=3_000), seed=0)
        for own in tables
    ]
    union = combine_releases(parts, disjoint=True)
    assert union.mean("x").value == pytest.approx(rows["x"].mean(), abs=0.03)
    assert union.variance("x").value == pytest.approx(rows["x"].var(), rel=0.03)
    assert union.mean("k").value == pytest.approx(rows["k"].mean(), abs=0.03)
    assert union.missing("k").value == pytest.approx(rows["k"].isna().mean(), abs=0.01)
    by = union.mean("x", by="s")
    for label, value in rows.groupby("s")["x"].mean().items():
        assert by[label].value == pytest.approx(value, abs=0.05)
    shares = union.share({"k": (2, 3)}, by="s")
    for label, own in rows.groupby("s"):
        assert shares[label].value == pytest.approx((own["k"] >= 2).fillna(value=False).mean(), abs=0.03)


@pytest.mark.slow
def test_intervals_cover(remembered_accounts):
    """40 seeds, two small parts each."""
    sizes = (250, 350)
    truth = {"mean": 0.0, "k": 1.5, "share": 0.0}
    for place, n in enumerate(sizes):
        truth["mean"] += n / sum(sizes) * 9 * (0.3 + 0.2 * place)
        truth["share"] += n / sum(sizes) * (0.3, 0.6)[place]
    covered = dict.fromkeys(truth, 0)
    for seed in range(1, 41):
        union = combine_releases([part(place, seed, n=n) for place, n in enumerate(sizes)], disjoint=True)
        answers = {"mean": union.mean("x"), "k": union.mean("k"), "share": union.share({"s": "f"})}
        for name, answer in answers.items():
            covered[name] += answer.low <= truth[name] <= answer.high
    assert min(covered.values()) >= 36, covered


def test_questions_that_the_parts_do_not_answer_are_refused(union):
    with pytest.raises(ConfigError, match="without missing cells beside by="):
        union.mean("k", by="s")
    with pytest.raises(ConfigError, match="without missing cells for the variance"):
        union.variance("k")
    with pytest.raises(ConfigError):
        union.mean("nowhere")
    with pytest.raises(SfumatoError):
        union.mean("x", by=["s", "k"])


def test_a_file_holds_the_parts_whole_and_unchanged(union, parts, tmp_path):
    for place, own in enumerate(parts, 1):
        own.save(tmp_path / f"{place}.sfm")
    parts[0].save(tmp_path / "folder")
    combine_releases([tmp_path / "folder", tmp_path / "2.sfm"], disjoint=True).save(tmp_path / "all.sfm")
    union.save(tmp_path / "same.sfm")
    assert (tmp_path / "all.sfm").read_bytes() == (tmp_path / "same.sfm").read_bytes()
    with zipfile.ZipFile(tmp_path / "all.sfm") as archive:
        assert archive.read("1.sfm") == (tmp_path / "1.sfm").read_bytes()
    back = CombinedRelease.load(tmp_path / "all.sfm")
    back.certificate.verify()
    assert back.certificate == dataclasses.replace(union.certificate, certificates=back.certificate.certificates)
    assert back.sample(20, seed=1).equals(union.sample(20, seed=1))
    assert back.mean("x").value == union.mean("x").value


def test_a_part_keeps_its_signature(parts, tmp_path):
    new_key(tmp_path / "key")
    parts[0].save(tmp_path / "a.sfm")
    sign_release(tmp_path / "a.sfm", tmp_path / "key")
    combine_releases([tmp_path / "a.sfm", parts[1]], disjoint=True).save(tmp_path / "all.sfm")
    with zipfile.ZipFile(tmp_path / "all.sfm") as archive:
        archive.extract("1.sfm", tmp_path)
    verify_release(tmp_path / "1.sfm", tmp_path / "key.pub", tmp_path / "a.sfm.sig")


def changed(path, change):
    """Write a combined file anew, with other contents of its members."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    change(contents)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def _flipped(contents):
    contents["1.sfm"] = contents["1.sfm"][:-200] + bytes([contents["1.sfm"][-200] ^ 1]) + contents["1.sfm"][-199:]


def _swapped(contents):
    contents["1.sfm"], contents["2.sfm"] = contents["2.sfm"], contents["1.sfm"]


def _cheaper(contents):
    listed = json.loads(contents["combination.json"])
    listed["parts"][0]["epsilon"] = 0.1
    contents["combination.json"] = json.dumps(listed).encode()


def _twice(contents):
    listed = json.loads(contents["combination.json"])
    listed["parts"][1] = listed["parts"][0]
    contents |= {"combination.json": json.dumps(listed).encode(), "2.sfm": contents["1.sfm"]}


def _without(contents):
    del contents["2.sfm"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_flipped, "was changed since"), (_swapped, "was changed since"), (_cheaper, "other rows or costs"),
        (_twice, "which are the same"), (_without, "Expected exactly"),
        (lambda contents: contents.update({"combination.json": b"{}"}), "Cannot read"),
        (lambda contents: contents.update({"3.sfm": b""}), "Expected exactly"),
    ],
)  # fmt: skip
def test_tampering_is_caught(union, tmp_path, change, says):
    union.save(tmp_path / "all.sfm")
    changed(tmp_path / "all.sfm", change)
    with pytest.raises(ReleaseError, match=says):
        CombinedRelease.load(tmp_path / "all.sfm")


def test_files_of_one_kind_are_not_read_as_the_other(union, parts, tmp_path):
    union.save(tmp_path / "all.sfm")
    parts[0].save(tmp_path / "one.sfm")
    with pytest.raises(ReleaseError, match="It holds several releases combined"):
        load(tmp_path / "all.sfm")
    with pytest.raises(ReleaseError, match="no combined release"):
        CombinedRelease.load(tmp_path / "one.sfm")
    with pytest.raises(ReleaseError, match="It holds several releases combined"):
        combine_releases([tmp_path / "all.sfm", parts[0]], disjoint=True)
    with pytest.raises(OutputError, match=r"ends in \.sfm"):
        union.save(tmp_path / "folder")
    with pytest.raises(OutputError):
        union.save(tmp_path / "all.sfm")


def refusal(*parts, disjoint=True):
    with pytest.raises(ConfigError) as error:
        combine_releases(list(parts), disjoint=disjoint)
    return str(error.value)


def test_the_holders_word_is_needed(parts):
    assert "your word" in refusal(*parts, disjoint=False)
    assert "True or False" in refusal(*parts, disjoint="yes")


def test_what_is_no_union_is_refused(parts, tmp_path):
    one = parts[0]
    assert "which are the same" in refusal(one, one)
    assert "2 to" in refusal(one)
    assert "got a int" in refusal(one, 3)
    assert "the column 's'" in refusal(one, part(1, columns={k: v for k, v in COLUMNS.items() if k != "s"}))
    assert "the column 'x'" in refusal(one, part(1, columns={**COLUMNS, "x": Integer(lower=0, upper=10)}))
    assert "order of its columns" in refusal(one, part(1, columns=dict(reversed(COLUMNS.items()))))
    assert "the target" in refusal(one, part(1, target="s"))
    assert "states no epsilon" in refusal(one, part(1, epsilon=NonPrivate()))
    with pytest.raises(ReleaseError, match="Cannot read the release"):
        combine_releases([one, tmp_path / "nowhere.sfm"], disjoint=True)


def test_other_areas_are_refused(parts):
    rows = law(350, 1, np.random.default_rng(0))
    schema = Schema(columns=COLUMNS, rows=350, areas=("s",))
    other = MaxEntropy(epsilon=1.0, delta=1e-5).fit(rows, schema=schema, seed=3)
    assert "'areas'" in refusal(parts[0], other)


def test_a_number_of_rows_that_was_estimated_is_refused(parts):
    from sfumato import EstimateCount

    assert "declared" in refusal(parts[0], part(1, n_public=EstimateCount()))


def test_other_shapes_are_refused(parts):
    from fixtures import tables

    pictures = fit(tables.images(), tables.image_schema())
    assert "of images" in refusal(parts[0], pictures)
    assert "column" in refusal(parts[0], fit(small_frame(), SMALL))


def test_labels_that_a_part_alone_has_are_refused(parts):
    other = part(1, columns={**COLUMNS, "s": Categorical(categories=("f", "m", "d"))})
    assert "the column 's'" in refusal(parts[0], other)


def test_shows_itself(union):
    assert "NOT PRIVATE" in repr(union)  # seeds
    assert "<section" in union._repr_html_()


def estimate(value, noise=0.0, unmeasured=0.0):
    parts = {"noise": noise, "unmeasured": unmeasured}
    return Estimate(value, math.hypot(noise, unmeasured), "table", "Measured: counts.", parts)


def test_noise_of_parts_is_independent_and_what_was_not_measured_adds_up():
    mean = weighted_mean([estimate(1.0, 0.3, 0.1), estimate(3.0, 0.4, 0.1)], [100, 300])
    assert mean.value == 2.5
    assert mean.parts["noise"] == pytest.approx(math.hypot(0.25 * 0.3, 0.75 * 0.4))
    assert mean.parts["unmeasured"] == pytest.approx(0.1)
    assert mean.std_error == pytest.approx(math.hypot(*mean.parts.values()))


def test_sizes_that_are_estimated_have_their_errors():
    sizes = [times(estimate(0.5, 0.1), 200), times(estimate(0.5, 0.1), 600)]
    mean = weighted_mean([estimate(1.0), estimate(3.0)], sizes)
    assert mean.value == 2.5
    assert mean.std_error == pytest.approx(math.hypot(1.5 / 400 * 20, 0.5 / 400 * 60))


def test_a_variance_is_within_parts_and_between_them():
    pooled = pooled_variance([estimate(1.0, 0.1), estimate(1.0)], [estimate(0.0), estimate(2.0)], [50, 50])
    assert pooled.value == 2.0
    assert pooled.std_error == pytest.approx(0.05)


def test_moments_are_refused():
    with pytest.raises(ConfigError, match="of dates"):
        number(Estimate("2020-01-01", 0.0, "table", ""))
