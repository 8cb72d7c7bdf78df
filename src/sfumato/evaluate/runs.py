"""Scores over runs: means with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from sfumato.errors import require_instance, require_integer, require_open_unit


def over_runs(score: Callable[[int], dict[str, Any]], *, runs: int, confidence: float = 0.95) -> dict[str, Any]:
    """Score `runs` times, with seeds 0, 1, …, and sum up every figure.

    The interval is Student's, for the mean over runs: it shows what the seeds of sampling and of classifiers make of a
    figure, and nothing of the noise of the release, of which there is one.

    Args:
        score: from a seed to scores, as `evaluate` returns them.
        runs: at least 2.
        confidence: of the intervals, in (0, 1).

    Returns:
        The scores of the first run with every figure under `fidelity`, `utility` and `neighbours` replaced by `mean`,
        `low`, `high` and `values`; names and counts stay those of the first run. `runs` and `confidence`.

    Raises:
        ConfigError: an argument is outside its domain.
    """
    require_instance(Callable, "a function from a seed to scores", score=score)  # type: ignore[arg-type]
    require_integer(at_least=2, runs=runs)
    require_open_unit(confidence=confidence)
    scores = [score(seed) for seed in range(runs)]
    summed = {
        key: _together([s[key] for s in scores], confidence)
        for key in scores[0]
        if key in {"fidelity", "utility", "neighbours"}
    }
    return {**scores[0], **summed, "runs": runs, "confidence": confidence}


def interval(values: Sequence[float], confidence: float) -> dict[str, Any]:
    """Student's interval for the mean of at least two independent figures."""
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
    reach = deviation / math.sqrt(len(values)) * float(stats.t.ppf((1 + confidence) / 2, len(values) - 1))
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "values": [float(v) for v in values]}


def _together(values: Sequence[Any], confidence: float) -> Any:  # noqa: ANN401 - JSON
    first = values[0]
    if isinstance(first, dict):
        return {key: _together([value[key] for value in values], confidence) for key in first}
    numbers = [v for v in values if isinstance(v, float)]  # a whole number is a count
    return interval(numbers, confidence) if len(numbers) == len(values) else first
