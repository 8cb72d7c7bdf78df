"""Correlations of pairs of rows by their scores alone, from where these are stated, and what clipping hides."""

import numpy as np
import pytest

from harness.unit_cases import MOST, UNITS, records_of
from sfumato.inference.lag_scores import PRODUCTS, SQUARES, PairTotals, aim_pairs, pair_forms, pair_place, pair_query
from sfumato.inference.noisy_totals import Scores
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.queries import Measurement
from sfumato.measurements.score_query import ONE
from sfumato.schema.unit_features import Lag, features_in

LAG, N = Lag("score", 2), 3_000


def units(alike: float, drift: float = 0.0, spread: float = 0.08) -> list[dict[str, np.ndarray]]:
    """Units whose rows have one correlation, and a mean that moves from row to row."""
    rng = np.random.default_rng(1)
    parts = []
    for i in range(N):
        size = 1 + i % MOST
        z = np.sqrt(alike) * rng.standard_normal() + np.sqrt(1 - alike) * rng.standard_normal(size)
        score = np.clip(0.4 + drift * np.arange(size) + spread * z, 0, 1)
        parts.append(
            {"day": np.linspace(0, 1, size), "sex": np.zeros(size, int), "score": score, "state": np.zeros(size, int)}
        )
    return parts


def moments_of(rows, centre=ONE // 2, scale=ONE // 2):
    features = features_in(LAG.moments(centre, scale), UNITS)
    records = records_of(rows, features)
    bounds = [feature.kind.bounds for feature in features]
    values = [low + (high - low) * records[f.name] for f, (low, high) in zip(features, bounds, strict=True)]
    return np.column_stack(values), records


def real_correlation(rows):
    pairs = np.array([(u["score"][i], u["score"][i + 2]) for u in rows for i in range(u["score"].size - 2)])
    return np.corrcoef(pairs.T)[0, 1]


def measured(aimed, rows, noise_std=10.0):
    """What is measured of rows, by scores that other rows aim, without noise."""
    weights = np.ones(N)
    centre, scale = pair_place(moments_of(aimed)[0], weights)
    moments, _ = moments_of(aimed, centre, scale)
    _, influence, spread = pair_forms(moments, weights)
    exact, records = moments_of(rows, centre, scale)
    scores = []
    for left, form in ((PRODUCTS, influence), (SQUARES, spread)):
        query = aim_pairs(pair_query(LAG, UNITS, centre, scale, left), form, moments @ form, weights, N, noise_std)
        value = query.scores(BaseCells(records)).sum(axis=0) / ONE
        scores.append(Scores(Measurement("pairs", value, 1e-9, False, None, query)))
    return PairTotals.of(LAG, scores), exact


def test_the_forms_are_those_of_the_correlation():
    rows = units(0.7, drift=0.02)
    moments, _ = moments_of(rows)
    value, influence, spread = pair_forms(moments, np.ones(N))
    assert value == pytest.approx(real_correlation(rows), abs=1e-4)
    assert (moments @ influence).sum() == pytest.approx(0, abs=1e-6)
    assert (moments @ spread).sum() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("alike", [0.3, 0.6, 0.85])
def test_the_correlation_is_found_back_from_where_it_is_stated(alike):
    rows = units(alike, drift=0.02)
    totals, exact = measured(units(0.6, drift=0.02), rows)
    pairs = exact[:, 0].sum()
    missed = totals.clipped(exact, N)
    value, parts = totals.correlation(pairs, missed)
    assert value == pytest.approx(real_correlation(rows), abs=0.01)
    assert parts["noise"] < 1e-6
    assert abs(value - totals.correlation(pairs)[0]) < 0.08


def test_values_farther_apart_than_stated_change_nothing():
    rows = units(0.7, spread=0.1)
    totals, exact = measured(units(0.7, spread=0.08), rows)
    value, _ = totals.correlation(exact[:, 0].sum(), totals.clipped(exact, N))
    assert value == pytest.approx(real_correlation(rows), abs=0.015)


def test_the_error_of_drawing_units_is_that_of_their_influence():
    rows = units(0.7)
    totals, exact = measured(rows, rows, noise_std=1e-9)
    pairs = exact[:, 0].sum()
    _, influence, _ = pair_forms(exact, np.ones(N))
    expected = np.sqrt(((exact @ influence) ** 2).sum()) / pairs
    assert totals.sampling(exact, pairs, N) == pytest.approx(expected, rel=0.05)
    # units that are nothing like them: the squares that were measured say so
    assert totals.sampling(0.1 * exact, pairs, N) == pytest.approx(expected, rel=0.25)


def test_without_pairs_nothing_breaks():
    rows = [{name: codes[:1] for name, codes in unit.items()} for unit in units(0.5)]
    totals, exact = measured(rows, rows)
    assert np.isfinite(totals.correlation(max(exact[:, 0].sum(), 1.0))[0])
    assert PairTotals.of(Lag("score", 3), [totals.first, totals.second]) is None
