"""Signs that a table's model went wrong, on made-up tables that no setting was chosen on."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import alarms

QUICK = ("ages", "grades", "small_heavy")
FORMER = ("loans", "deciles")  # columns that follow from others
OTHERS = ("adults", "stays", "rare_cases", "small_14", "small_20", "wide_100", "letters", "soils", "visits", *FORMER)
TIED = ("repayments", "indices", "flights")  # noise makes their moments contradict each other


def scores_of(name):
    return alarms.scores(name, alarms.TABLES[name](np.random.default_rng(5)), 1.0, 5)


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_no_alarm(name):
    """Samples are as near to released counts as their noise."""
    scores = scores_of(name)
    assert scores["1-way"] < 1.35  # of noise alone 1, the more the fewer columns
    assert scores["worst"] < 2.2
    assert scores["2-way"] < scores["tenth"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TIED)
def test_fits_of_tied_columns_are_solved(name):
    scores = scores_of(name)
    assert scores["worst"] < 2.2
