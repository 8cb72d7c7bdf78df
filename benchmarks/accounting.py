"""Speed of accounting: a plan of sampled steps, beside dp-accounting's own accountant on the same grid, in one run.

python benchmarks/accounting.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation

from sfumato.privacy.pld import GridPLDAccountant

DELTA, REPEATS = 1e-5, 5
PLANS = {
    "2,000 steps, q = 0.01, z = 1.1, grid 1e-4": (0.01, 1.1, 2_000, 1e-4),
    "60,000 mixtures, q = 0.001, z = 0.8, grid 1e-4": (0.001, 0.8, 60_000, 1e-4),
    "100 steps, q = 0.1, z = 2, grid 1e-3": (0.1, 2.0, 100, 1e-3),
}


def main() -> None:
    for name, (q, z, count, interval) in PLANS.items():
        step = dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(z))
        plan = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(20.0), dp_event.SelfComposedDpEvent(step, count)])

        def epsilon(make: Callable[..., PLDAccountant], plan=plan, interval=interval) -> float:
            accountant = make(NeighboringRelation.ADD_OR_REMOVE_ONE, interval)
            return accountant.compose(plan).get_epsilon(DELTA)

        ours, theirs = (fastest(lambda make=make: epsilon(make)) for make in (GridPLDAccountant, PLDAccountant))
        apart = abs(ours[1] / theirs[1] - 1)
        print(f"{name}: dp-accounting's time ÷ ours {theirs[0] / ours[0]:.1f}, ε apart by {apart:.1g}")


def fastest(run: Callable[[], float]) -> tuple[float, float]:
    """Return the least of some times, seconds, and what was returned."""
    times, found = [], 0.0
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - start)
    return min(times), found


if __name__ == "__main__":
    main()
