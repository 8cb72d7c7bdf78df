"""The decision on clusters within a class has the figures of its file, and concludes no more than they say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "decisions" / "0046-clusters-within-a-class.md").read_text(encoding="utf-8")


def _runs(images: str) -> dict[str, dict[str, list[float]]]:
    path = ROOT / "benchmarks" / "results" / f"image_levers_{images}.json"
    return json.loads(path.read_text(encoding="utf-8"))["runs"]


RUNS, DIGITS = _runs("fashion_mnist"), _runs("mnist")
PLAIN, VARIED, CHARGED = "as it is", "texture and contrast", "clusters, all charged"


def _row(lever: str) -> list[float]:
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {lever} |"))
    return [float(text.replace("−", "-")) for text in re.findall(r"[+−]?\d+(?:\.\d+)?", line)]


def _gains(lever: str, runs: dict[str, dict[str, list[float]]] = RUNS) -> list[float]:
    return [run[lever][-1] - run[PLAIN][-1] for run in runs.values() if lever in run]


@pytest.mark.parametrize(
    ("lever", "runs", "said"),
    [
        *((lever, RUNS, "") for lever in (PLAIN, VARIED, "clusters, cut not charged", CHARGED)),
        *((lever, DIGITS, ", on digits") for lever in (PLAIN, CHARGED)),
    ],
)
def test_a_row_is_what_was_measured(lever: str, runs: dict[str, dict[str, list[float]]], said: str) -> None:
    last = [run[lever][-1] for run in runs.values() if lever in run]
    expected = [np.mean(last), np.std(last, ddof=1), len(last)]
    if lever != PLAIN:
        expected += [np.mean(_gains(lever, runs)), np.std(_gains(lever, runs), ddof=1)]
    assert _row(lever + said) == pytest.approx(expected, abs=0.00056)


def test_gains_by_run_are_those_of_the_file() -> None:
    shown = re.search(r"Gains of the charged form by run: (.*?)\. The", PAGE)
    assert shown
    assert [float(text.replace("−", "-")) for text in shown[1].split(", ")] == pytest.approx(_gains(CHARGED), abs=6e-5)


def test_what_it_concludes() -> None:
    assert np.mean(_gains(CHARGED)) > 2 * np.std(_gains(CHARGED), ddof=1) / np.sqrt(len(_gains(CHARGED)))
    assert np.mean(_gains(CHARGED, DIGITS)) < 0
    assert np.mean(_gains(VARIED)) < np.std(_gains(VARIED), ddof=1)
