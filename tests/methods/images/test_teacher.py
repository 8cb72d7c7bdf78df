"""The classifier of images: its gradient against automatic rules, and what it learns."""

import numpy as np
import pytest

from harness.cases import encoder_of, image_rows
from harness.privacy import FakeRecords, join
from sfumato.methods.images.teacher import STEPS, Standardised, TeacherGradient, train, warm_start
from sfumato.models.images.gradients import gradient_features, n_features
from sfumato.records.engine import reduce


def pictures_of(n, rng):
    """Bars: class 0 across, class 1 upright, anywhere, on noise."""
    classes = rng.integers(0, 2, n)
    pictures = 0.1 * rng.random((n, 1, 12, 12), dtype=np.float32)
    for i, k in enumerate(classes):
        at = rng.integers(2, 10)
        if k:
            pictures[i, 0, 2:10, at] += 0.8
        else:
            pictures[i, 0, at, 2:10] += 0.8
    return pictures, classes


@pytest.fixture(scope="module")
def bars():
    encoder = encoder_of(12, 12, pose=False)
    pictures, classes = pictures_of(600, np.random.default_rng(0))
    standardised = Standardised.of(encoder, gradient_features(pictures, encoder))
    return encoder, standardised, pictures, classes


def rows_of(pictures, classes):
    return {"x": pictures[:, 0].astype(np.float64), "y": classes.astype(np.int32)}


def test_vectors_have_norm_at_most_one_and_typically_less(bars):
    encoder, standardised, pictures, _ = bars
    norms = np.linalg.norm(standardised.vectors(gradient_features(pictures, encoder)), axis=1)
    assert norms.max() <= 1
    assert 0.6 < np.median(norms) < 0.9


def test_the_gradient_is_that_of_cross_entropy_where_nothing_is_clipped(bars):
    encoder, standardised, pictures, classes = bars
    vectors = standardised.vectors(gradient_features(pictures[:50], encoder))
    weights = np.random.default_rng(1).standard_normal((vectors.shape[1], 2))

    def loss(at):
        scores = vectors @ at
        return float(np.sum(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(50), classes[:50]]))

    found = reduce(
        TeacherGradient(standardised, weights, clip_norm=1.5),  # no error is longer than √2
        FakeRecords([rows_of(pictures[:50], classes[:50])]),
    )
    gradient = found.open_in_mechanism()
    rng = np.random.default_rng(2)
    for _ in range(5):
        along = rng.standard_normal(weights.shape)
        slope = (loss(weights + 1e-5 * along) - loss(weights - 1e-5 * along)) / 2e-5
        assert np.sum(gradient * along) == pytest.approx(slope, rel=2e-4, abs=2e-4)


def test_it_learns_and_the_linear_form_gives_the_same_labels(bars):
    encoder, standardised, pictures, classes = bars
    features = gradient_features(pictures, encoder)
    vectors = standardised.vectors(features)
    start = warm_start(vectors[:100], classes[:100], 2)
    calls = []

    def gradient(weights):
        calls.append(weights)
        exact = reduce(TeacherGradient(standardised, weights), FakeRecords([rows_of(pictures, classes)]))
        return exact.open_in_mechanism()

    weights = train(start, gradient, len(classes))
    assert len(calls) == STEPS
    fresh, labels = pictures_of(400, np.random.default_rng(5))
    coefficients, offsets = standardised.linear(weights)
    found = (gradient_features(fresh, encoder) @ coefficients + offsets).argmax(axis=1)
    assert (found == labels).mean() > 0.97
    inside = np.linalg.norm((features - standardised.mean) @ standardised.whiten, axis=1) < 1
    same = (features @ coefficients + offsets).argmax(axis=1) == (vectors @ weights).argmax(axis=1)
    assert same[inside].mean() > 0.99


def test_hopeless_images_give_finite_gradients():
    encoder = encoder_of(8, 8, pose=True)
    f = n_features(encoder)
    standardised = Standardised.of(encoder, np.zeros((20, f), dtype=np.float32))
    weights = np.full((f + 1, 2), 1e3)
    rows = join(image_rows(5, (8, 8)))
    value = reduce(TeacherGradient(standardised, weights), FakeRecords([rows])).open_in_mechanism()
    assert np.isfinite(value).all()
