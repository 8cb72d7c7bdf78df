"""Verdicts on images and linked rows: worse with more noise, and none on what was not measured."""

import numpy as np
import pytest

from fixtures import linked, tables
from sfumato import MaxEntropy
from sfumato.report import write_report
from sfumato.report.uses import closest_classes, image_verdicts, linked_verdicts

FIT = {"delta": 1e-6}


def of_images(epsilon, seed=0):
    return MaxEntropy(epsilon=epsilon, **FIT).fit(tables.images(), schema=tables.image_schema(), seed=seed)


@pytest.mark.slow
def test_a_classifier_learns_from_images_where_classes_stand_out_of_the_noise():
    words = [image_verdicts(of_images(epsilon))[0].word for epsilon in (0.1, 50.0)]
    assert words == ["poor", "good"]


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_counts_as_nothing(seed):
    assert closest_classes(of_images(0.02, seed)) < 0.5


@pytest.mark.slow
def test_the_distance_is_that_of_the_means_by_their_noise():
    """From a twentieth of the noise: what noise adds is taken off, and two standard deviations of it."""
    exact, noisy = of_images(100.0), [of_images(8.0, seed) for seed in range(6)]
    stds = [next(m.noise_std for m in r.measurements if m.name == "class sums") for r in (exact, noisy[0])]
    expected = closest_classes(exact) * stds[0] / stds[1]
    assert np.mean([closest_classes(r) for r in noisy]) == pytest.approx(expected, rel=0.15)


@pytest.mark.slow
def test_linked_rows_are_judged_by_units_and_later_rows_are_not(tmp_path):
    release = MaxEntropy(epsilon=20.0, **FIT).fit(linked.visits(3_000), schema=linked.schema(), seed=0)
    found = {verdict.use: verdict.word for verdict in linked_verdicts(release)}
    assert found.pop("how rows follow each other") == "not measured"
    assert found.pop("testing software") == "good"
    assert len(found) == 2
    write_report(release, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "What it is good for" in page
    assert "how rows follow each other" in page
