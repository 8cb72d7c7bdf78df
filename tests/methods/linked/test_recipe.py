"""What follows from the releases of units: how many steps they have, and how many of these count whole."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fixtures.linked import ROWS, schema, visits
from sfumato import MaxEntropy, NonPrivate
from sfumato.methods.linked import recipe
from sfumato.schema.linked import linked_tables

N = 20_000
STEPS = linked_tables(schema()).steps
assert STEPS is not None


def fit_of(noise_multiplier: float) -> SimpleNamespace:
    """A fit, as `room_of` looks at it."""
    stages = {recipe.ALONE.steps.moments: SimpleNamespace(noise_multiplier=noise_multiplier)}
    return SimpleNamespace(noise=SimpleNamespace(silent=not noise_multiplier), plan=stages, n_public=N)


def share_of(noise_multiplier: float, law: np.ndarray) -> tuple[float, float]:
    """How many steps count whole at this noise where they lie apart, and how many count."""
    return recipe.room_of(fit_of(noise_multiplier), recipe.ALONE.steps, STEPS, law, N)  # type: ignore[arg-type] - what it looks at


def test_the_numbers_of_steps_are_read_off_the_chain_of_units(monkeypatch):
    seen = []
    original = recipe.room_of

    def noted(fit, names, of, law, n):
        seen.append(law)
        return original(fit, names, of, law, n)

    monkeypatch.setattr(recipe, "room_of", noted)
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=300)
    method.fit(visits(4_000), schema=schema(units=4_000), seed=0)
    np.testing.assert_allclose(seen[0], ROWS, atol=0.02)
    assert seen[0].sum() == pytest.approx(1)


def test_with_less_noise_more_steps_count_whole():
    found = [share_of(noise, ROWS)[0] for noise in (100.0, 7.0, 0.8, 0.0)]
    assert found == sorted(found)
    assert found[0] < 2 < found[2] <= 5
    assert found[-1] == 25, "without noise nothing is left out, in whatever cells it lies"


def test_the_share_is_the_steps_that_count_of_a_unit():
    room, share = share_of(7.0, ROWS)
    k = np.arange(6)
    assert share == pytest.approx(float(ROWS @ np.minimum(k, np.sqrt(room * k))))


def test_units_of_one_row_by_the_release_still_have_a_share():
    law = np.array([1.0, 0, 0, 0, 0, 0])
    assert share_of(7.0, law)[1] > 0
