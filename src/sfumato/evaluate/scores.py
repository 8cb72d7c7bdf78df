"""All scores of a synthetic table, as one dictionary.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

from typing import Any

from sfumato.data.schema import Schema
from sfumato.data.sources import open_source
from sfumato.evaluate.fidelity import mean_distance, read_bins
from sfumato.evaluate.tables import read_codes
from sfumato.evaluate.utility import Task, train_and_score


def evaluate(
    real: object,
    synthetic: object,
    *,
    schema: Schema,
    test: object = None,
    target: str | None = None,
    positive: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare a synthetic table with the real one it was made from.

    Privacy: none. It reads the real records without noise; no figure is private, and the result
    says so.

    Args:
        real: the real rows that the release was fitted to, anything `open_source` reads.
        synthetic: synthetic rows; as many as real ones make the scores comparable.
        schema: the columns that are compared are its released ones.
        test: real rows that the release was not fitted to, for the classifiers. Without them the
            classifiers are scored on `real`, which flatters those trained on it.
        target: the column the classifiers predict; None leaves `utility` out.
        positive: the class to tell from the others; by default the last of two categories.
        seed: random state of the classifiers.

    Returns:
        `private`: false. `rows`: rows read of `real`, `synthetic` and `test`. `utility`: null, or
        the scores of `classifier_scores` trained on `synthetic`, with `real`, the same
        classifiers trained on the real rows, and `scored_on`, `test` or `real`. `fidelity`:
        `tvd_1way` and `tvd_2way`, the mean total variation of one and of two columns (null if
        there is only one). JSON-ready.

    Raises:
        ConfigError: the target is no released level column, or `positive` is none of its labels.
        SchemaError: a column of the schema is not in one of the tables.
        DataError: a table cannot be read, or has no rows.

    Example:
        >>> evaluate(frame, synthetic, schema=schema)["fidelity"]["tvd_1way"]  # doctest: +SKIP
        0.021
    """
    task = None if target is None else Task.of(schema, target, positive)
    sources = {"real": open_source(real), "synthetic": open_source(synthetic)}
    bins = {name: read_bins(source, schema) for name, source in sources.items()}
    orders = {"tvd_1way": 1, "tvd_2way": 2}
    several = len(schema.released) > 1
    fidelity = {
        key: mean_distance(bins["real"], bins["synthetic"], schema=schema, k=k) if k == 1 or several else None
        for key, k in orders.items()
    }
    rows = {name: table.n_rows for name, table in bins.items()}
    del bins
    scores = None
    if task is not None:
        tables = {name: read_codes(source, schema) for name, source in sources.items()}
        held_out = tables["real"] if test is None else read_codes(open_source(test), schema)
        if test is not None:
            rows["test"] = held_out.n_rows
        scores = train_and_score(tables["synthetic"], held_out, task=task, seed=seed)
        scores["real"] = train_and_score(tables["real"], held_out, task=task, seed=seed)
        scores["scored_on"] = "real" if test is None else "test"
    return {"private": False, "rows": rows, "utility": scores, "fidelity": fidelity}
