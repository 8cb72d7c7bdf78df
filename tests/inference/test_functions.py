import dataclasses
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sfumato
from sfumato.inference.functions import cell_functions, directions, measured_functions
from sfumato.inference.questions import Questions
from sfumato.maths.arrays import dense


def test_a_column_without_features_has_no_directions():
    found = directions(np.zeros((3, 0)), [np.array([1.0, 0.0, 0.0])], np.full(3, 1 / 3), 2)
    assert found.shape == (0, 0)


def test_of_a_target_of_many_classes_those_that_stand_out_are_told_apart():
    """Products with the class of each are as many as classes that are seen: all of them held over a gigabyte."""
    rng = np.random.default_rng(0)
    classes = np.floor(150 * rng.random(4_000) ** 3).astype(int)
    frame = pd.DataFrame({"c": [f"{c:03d}" for c in classes], "x": (classes / 15 + rng.normal(size=4_000)).clip(0, 10)})
    columns = {"c": [f"{c:03d}" for c in range(150)], "x": (0, 10)}
    release = sfumato.fit(frame, {"columns": columns, "rows": 4_000}, epsilon=2.0, delta=1e-6, target="c", seed=0)
    questions = Questions(release)
    apart = questions.measured.apart("c").size
    assert 2 < apart < 60
    assert questions.estimator(("c", "x"), "table").calibration.width < 400  # 1,291 with all of them
    mean = release.mean("x", by="c")["000"]
    assert abs(mean.value - frame.loc[classes == 0, "x"].mean()) < 4 * mean.std_error < 1


@pytest.fixture(scope="module")
def eighty():
    """Two columns of 80 labels, one of them the target, and two numbers, measured without noise."""
    rng, n, labels = np.random.default_rng(3), 6_000, [f"{c:03d}" for c in range(80)]
    x = rng.random(n)
    codes = [np.floor(80 * (0.6 * x + 0.4 * rng.random(n)) ** 2).astype(int) for _ in range(2)]
    numbers = {"x": np.floor(100 * x), "y": np.floor(50 * (x + rng.random(n)))}
    frame = pd.DataFrame({"c": np.array(labels)[codes[0]], "l": np.array(labels)[codes[1]], **numbers})
    integer = {"kind": "integer", "lower": 0, "upper": 100}
    columns = {name: {"kind": "categorical", "categories": labels} for name in "cl"} | {"x": integer, "y": integer}
    schema = sfumato.Schema.from_dict({"rows": n, "areas": ["c"], "columns": columns})
    return frame, sfumato.MaxEntropy(epsilon=sfumato.NonPrivate()).fit(frame, schema=schema, seed=0)


def calibrations(release, columns, variance):
    """Of functions that are mostly 0, as they are and as a whole array, with noise of so many of their variances."""
    measured = Questions(release).measured
    totals = measured_functions(measured, cell_functions(measured, columns))
    noise = variance * dense(totals.functions).var(axis=0).mean()
    totals = dataclasses.replace(totals, variances=np.full(totals.totals.size, noise))
    whole = dataclasses.replace(totals, functions=dense(totals.functions))
    return totals, *(measured.calibration(each, columns=columns) for each in (totals, whole))


@pytest.mark.parametrize("columns", [("c", "l"), ("c", "x", "y")])
@pytest.mark.parametrize("variance", [0.0, 1e4])
def test_functions_of_labels_are_solved_as_they_are(eighty, columns, variance):
    """What is solved without the entries that are 0 is what a whole array of them gives."""
    totals, few, whole = calibrations(eighty[1], columns, variance)
    assert sparse.issparse(totals.functions)
    assert few.width > 700
    assert np.count_nonzero(dense(totals.functions)) < 0.1 * few.width * len(few.weights)
    np.testing.assert_allclose(few.weights, whole.weights, rtol=1e-4, atol=1e-4)
    functions = dense(totals.functions[:, :: few.width // 20])
    within = np.ones(len(few.weights))
    within[:1_000] = 0.0
    for one, other in (
        (few.each(functions), whole.each(functions)),
        (few.variances(functions), whole.variances(functions)),
        (few.variances(functions * within[:, None], within), whole.variances(functions * within[:, None], within)),
    ):
        np.testing.assert_allclose(one.of("population"), other.of("population"), rtol=1e-4, atol=0.05)
        np.testing.assert_allclose(one.known, other.known, atol=1e-4)
    np.testing.assert_allclose(few.noise(functions), whole.noise(functions), rtol=1e-4, atol=0.05)
    draws = [each.redraw(np.random.default_rng(1)) for each in (few, whole)]
    np.testing.assert_allclose(*draws, rtol=1e-3, atol=1e-3)
    if variance:  # without noise totals are solved for to a thousandth of their variance, and no further
        draws = [each.draw_weights(np.random.default_rng(1), sampled=True) @ functions for each in (few, whole)]
        deviations = np.sqrt(np.diagonal(few.variances(functions).of("population"))) + 1.0
        assert (np.abs(draws[0] - draws[1]) < 0.1 * deviations).all()
        assert (np.abs(draws[0] - few.total(functions)) > 0.1 * deviations).any()


def test_answers_of_many_classes_take_little_memory_and_are_exact(eighty):
    """Whole arrays of the functions of a class and other columns took 1.4 GB."""
    frame, release = eighty
    tracemalloc.start()
    try:
        release.answers()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 250e6
    counts = frame.groupby(["c", "l"]).size()
    cells = counts.sort_values(ascending=False).index[:3]
    for c, l in cells:  # noqa: E741
        assert release.count({"c": c, "l": l}).value == pytest.approx(counts[c, l], abs=0.1)
