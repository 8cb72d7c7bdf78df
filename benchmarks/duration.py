"""What `plan` says of the time of a fit, beside what fits of made-up tables take: `python benchmarks/duration.py`."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from sfumato import MaxEntropy, Schema
from sfumato.fitting.duration import fit_seconds

CASES = (
    (20_000, 10, 5, False), (200_000, 10, 5, False), (20_000, 10, 5, True), (20_000, 40, 5, False),
    (100_000, 40, 5, True), (20_000, 10, 50, False), (20_000, 100, 5, False),
)  # fmt: skip
"""Rows, columns (half of them numbers), labels of the others, and whether there is a target."""


def table(n: int, columns: int, labels: int) -> tuple[pa.Table, Schema]:
    rng = np.random.default_rng(0)
    common = rng.standard_normal(n)
    cells, kinds = {}, {}
    for i in range(columns // 2):
        cells[f"n{i}"] = np.clip(500 + 100 * (common + rng.standard_normal(n)), 0, 1000).astype(int)
        kinds[f"n{i}"] = {"kind": "integer", "lower": 0, "upper": 1000}
        cells[f"c{i}"] = rng.integers(0, labels, n).astype(str)
        kinds[f"c{i}"] = {"kind": "categorical", "categories": [str(k) for k in range(labels)]}
    return pa.table(cells), Schema.from_dict({"rows": n, "columns": kinds})


def main() -> None:
    for n, columns, labels, by_class in ((1_000, 4, 3, False), *CASES):  # the first warms up
        rows, schema = table(n, columns, labels)
        target = "c0" if by_class else None
        begun = time.process_time()
        MaxEntropy(epsilon=1.0, delta=1e-6).fit(rows, schema=schema, target=target)
        took, said = time.process_time() - begun, fit_seconds("max-entropy", schema, target=target) or float("nan")
        table_of = f"{n} x {columns}, {labels} labels{', target' * by_class}"
        print(f"{table_of}: {took:.1f} s, said {said:.1f}, x {said / took:.2f}")


if __name__ == "__main__":
    main()
