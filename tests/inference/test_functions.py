import numpy as np

from sfumato.inference.functions import directions


def test_a_column_without_features_has_no_directions():
    found = directions(np.zeros((3, 0)), [np.array([1.0, 0.0, 0.0])], np.full(3, 1 / 3), 2)
    assert found.shape == (0, 0)
