"""What the fit estimated of columns is said in answers, and what hangs on its noise is refused."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.errors import EstimateError

N = 3_000


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(0)
    codes = [f"code {k}" for k in np.where(rng.random(N) < 0.5, rng.geometric(0.3, N), rng.integers(100, 2_100, N))]
    frame = pd.DataFrame({"x": rng.exponential(40, N).round(3), "code": codes})
    schema = sfumato.describe(frame, {"code": "categorical"}, rows=N)  # by the holder's word they name nobody
    return sfumato.fit(frame, schema, epsilon=2.0, delta=1e-5, seed=0)


def test_answers_say_that_bounds_were_estimated(release):
    assert "beyond estimated bounds" in release.mean("x").rests_on
    assert "estimated bounds" not in release.share({"code": "code 1"}).rests_on


def test_the_share_of_what_was_not_seen_is_refused(release):
    with pytest.raises(EstimateError, match="Declare the categories"):
        release.share({"code": "other"})
