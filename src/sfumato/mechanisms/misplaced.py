"""How many records lie where a release has none: total variation of tables of counts, as a count of low sensitivity.

Of a table, h_c records lie in cell c, N = Σ_c h_c in all, and of M samples of a release m_c do. What is measured is

    D = ½ Σ_c |h_c − N m_c/M| = N · TV(h/N, m/M),        and of several tables the largest D.

It is the least number of records that have to change cells for the table to be the release's. No number of records is
assumed: N is that of the records themselves. Sensitivity: docs/proofs/acceptance.md.
"""

from __future__ import annotations

import numpy as np

from sfumato.errors import ConfigError
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy, noisy_sum
from sfumato.privacy.ledger import Ledger
from sfumato.records.engine import Exact

MOST_SAMPLES = 1 << 20


def noisy_misplaced(
    counts: Exact, samples: np.ndarray, starts: np.ndarray, *, stage: str, ledger: Ledger, noise: NoiseSource
) -> Noisy:
    """Release the largest D of some tables with Gaussian noise: `noisy_sum` of one number.

    Privacy: one `Gaussian(σ)` event of the stage. A record that is added to cell c of a table changes h − N m/M by
        e_c − m/M, whose ℓ1 norm is 2(1 − m_c/M) ≤ 2: D changes by at most 1, and so does the largest of several. One
        that moves from c to c' changes it by e_c' − e_c: again by at most 1. Hence norm bound 1 and replace distance
        1, times the rows of a unit: what a record adds to the counts changes nothing else. Proof:
        docs/proofs/acceptance.md.

    Args:
        counts: of the records: t tables in one vector, to each of which a record adds a single 1: norm √t.
        samples: counts of M samples of the release, whole numbers, shape as `counts`.
        starts: where each table begins, and the end, shape (t + 1,).
        stage: name of the stage to charge.
        ledger: charged before the noise is drawn.
        noise: the source of randomness.

    Returns:
        The noisy largest D, records, shape (). The noise has standard deviation σ, times the rows of a unit.

    Raises:
        ConfigError: the tables are not counts of one number of samples; before anything is charged.
        LedgerError: the plan has another stage next. Nothing was released.
    """
    return noisy_sum(_largest(counts, samples, starts), stage=stage, ledger=ledger, noise=noise)


def _largest(counts: Exact, samples: np.ndarray, starts: np.ndarray) -> Exact:
    """Return the sealed largest D in whole numbers of 1/(2M), so that nothing is rounded."""
    whole = np.asarray(samples, dtype=np.int64)
    totals = np.add.reduceat(whole, starts[:-1])
    total = int(totals[0])
    if not 0 < total <= MOST_SAMPLES or (totals != total).any() or (whole < 0).any() or counts.step != 1.0:
        raise ConfigError(
            f"Expected tables of one number of samples, at most {MOST_SAMPLES}, got others in {counts!r}."
        )
    cells = counts.whole_in_mechanism()
    sizes = np.diff(starts)
    records = np.add.reduceat(cells, starts[:-1])
    apart = np.add.reduceat(np.abs(total * cells - np.repeat(records, sizes) * whole), starts[:-1])
    rows = counts.norm_bound / np.sqrt(len(sizes))  # of a unit
    return Exact(
        np.asarray(apart.max()),
        name="records in other cells than the release's",
        norm_bound=float(rows),
        replace_distance=1.0,
        step=1 / (2 * total),
    )
