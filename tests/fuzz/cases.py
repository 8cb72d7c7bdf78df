"""How many cases: some by default, 2,500 of each kind in the slow tests, which makes 10⁴ of schemas, CSV files, Parquet
files and releases."""

import pytest

MOST = 2_500


def batches(cases: int, size: int):
    """Numbers of batches of so many cases; those beyond `cases` are slow."""
    few = cases // size
    return [*range(few), *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(few, MOST // size))]
