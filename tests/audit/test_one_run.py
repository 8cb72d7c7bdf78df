"""One-run auditing by jax-privacy as a cross-check; skipped without it (`pip install jax-privacy==2.0.0`).

A canary is a set of one item, in the table by the toss of a coin; what is released of its item is its score.
"""

import math
import warnings

import numpy as np
import pyarrow as pa
import pytest

from sfumato import IndependentItems, Schema
from sfumato.audit.attack import epsilon_above, proportion_above, proportion_below

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    auditing = pytest.importorskip("jax_privacy.auditing", reason="jax-privacy is not installed")

CANARIES, DELTA, EPSILON = 5_000, 1e-5, 1.0
FAILURE = 0.001


@pytest.fixture(scope="module")
def scores() -> tuple[np.ndarray, np.ndarray]:
    """What one fit released of every canary, and which canaries were in the table."""
    kinds = {"s": {"kind": "set", "n_items": CANARIES, "max_length": 1}}
    schema = Schema.from_dict({"rows": CANARIES // 2, "columns": kinds})
    present = np.random.default_rng(0).random(CANARIES) < 0.5
    table = pa.table({"s": [[int(i)] for i in np.flatnonzero(present)]})
    release = IndependentItems(epsilon=EPSILON, delta=DELTA).fit(table, schema=schema, seed=0)
    return release.measurements[0].value.ravel(), present


def _auditor(released: np.ndarray, present: np.ndarray) -> "auditing.CanaryScoreAuditor":
    return auditing.CanaryScoreAuditor(released[present], released[~present])


def test_no_bound_of_one_run_exceeds_what_is_certified(scores):
    auditor = _auditor(*scores)
    assert auditor.epsilon_one_run(FAILURE, DELTA) <= EPSILON
    assert 0 < auditor.epsilon_one_run_fdp(FAILURE, DELTA) <= EPSILON


def test_too_little_noise_is_seen_in_one_run(scores):
    released, present = scores
    assert _auditor(present + 0.3 * (released - present), present).epsilon_one_run_fdp(FAILURE, DELTA) > EPSILON


@pytest.mark.parametrize("cut", [0.0, 2.0, 5.0])
def test_our_bound_at_a_threshold_is_theirs(scores, cut):
    """Clopper-Pearson at one threshold fixed beforehand, each of the two rates at half the level."""
    released, present = scores
    theirs = _auditor(released, present).epsilon_clopper_pearson(
        FAILURE, DELTA, threshold_strategy=auditing.Explicit(cut)
    )
    right = proportion_above(int((released[present] > cut).sum()), int(present.sum()), FAILURE / 2)
    wrong = proportion_below(int((released[~present] > cut).sum()), int((~present).sum()), FAILURE / 2)
    assert max(0.0, math.log((right - DELTA) / wrong)) == pytest.approx(theirs, abs=1e-3)
    assert epsilon_above(right, wrong, DELTA) >= theirs - 1e-3  # it looks at the other error too
