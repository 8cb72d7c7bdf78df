"""The comparison of `make papers-quick`: what is equal, what is told, and where random figures may lie."""

import json
import sys
from importlib import import_module

import numpy as np
import pytest

from harness.papers import PAPERS

sys.path.insert(0, str(PAPERS))
quick = import_module("quick")
WRITTEN = {"zCDP": {"0.1": [-3.831, 0.2], "no noise": [0.5, 0.1]}, "command": "python x.py"}


def test_what_is_equal_to_the_printed_digits_is_equal():
    again = {"zCDP": {"0.1": [-3.834, 0.2]}, "command": "python y.py"}
    assert quick.differences(WRITTEN, again, 2) == (2, [])


@pytest.mark.parametrize(
    ("again", "told"),
    [
        ({"zCDP": {"0.1": [-3.836, 0.2]}}, "zCDP, 0.1, 0: -3.84, written down -3.83"),
        ({"zCDP": {"0.3": [-2.0]}}, "none of its figures is written down"),
    ],
)
def test_what_differs_is_named(again, told):
    assert quick.differences(WRITTEN, again, 2)[1] == [told]


def test_of_means_the_error_is_not_compared():
    rerun = quick.Rerun("python x.py", "stdout", (), ("dpgm",), means=True)
    assert quick.compared(rerun, {"1": [0.375, 20]}, {"1": [0.3751, 0.007]}) == (1, [])
    assert quick.compared(rerun, {"1": [0.375, 20]}, {"1": [0.39, 0.007]})[1]


def _runs(values):
    return {f"credit | dpgm | {i}": {"auroc": value} for i, value in enumerate(values)}


def test_a_random_figure_far_from_its_runs_is_told():
    before = _runs([0.960, 0.962, 0.966, 0.958, 0.964])
    near, far = ({"credit | dpgm | 0": {"auroc": value, "epsilon": 1.0}} for value in (0.975, 0.90))
    assert quick.random_differences(before, near) == (1, [])
    assert quick.random_differences(before, far)[1] == ["credit, dpgm, auroc: 0.900, of 5 runs 0.962 ± 0.003"]


def test_one_run_has_no_spread_to_compare_with():
    assert quick.random_differences(_runs([0.96]), _runs([0.5])) == (0, ["no run has a spread to compare with"])


def test_a_further_run_is_told_as_often_as_the_level_says():
    rng = np.random.default_rng(0)
    runs = rng.standard_normal((4000, 6))
    told = [abs(run[5] - run[:5].mean()) > quick.allowance(list(run[:5]), 0.05) for run in runs]
    assert np.mean(told) == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("rerun", quick.RERUNS, ids=lambda rerun: rerun.command)
def test_what_is_rerun_is_written_down(rerun):
    assert (PAPERS.parent / rerun.command.split()[1]).is_file()
    assert quick.written_down(rerun.at)


def test_figures_are_found_where_a_script_puts_them(tmp_path):
    lines = [{"key": "degree=64", "value": {"published": [0.8]}}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rerun = quick.Rerun("python x.py", "a.jsonl", ("64",), ("dpmix",))
    assert quick.results_of(rerun, tmp_path, "") == {"published": [0.8]}
    printed = 'fold 1\n{\n "mean": {"x": 1.5}\n}\n'
    assert quick.results_of(quick.Rerun("x", "stdout", ("mean",), ("dp_em",)), tmp_path, printed) == {"x": 1.5}
    assert quick.results_of(quick.Rerun("x", "stdout", (), ("dp_em",)), tmp_path, "{'a': 1.0}\n") == {"a": 1.0}
