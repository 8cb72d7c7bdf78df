import numpy as np
import pandas as pd

import sfumato
from sfumato.inference.functions import directions
from sfumato.inference.questions import Questions


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
