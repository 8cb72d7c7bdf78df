"""Scores of a data set of mixtures: how near its means are to the records', and what a linear classifier learns.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from sfumato.errors import DataError
from sfumato.evaluate.fidelity import distance
from sfumato.io.sources import open_source
from sfumato.models.mixed import SplitEncoder
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema, SchemaLike, read_schema


def mixture_scores(
    real: object,
    features: np.ndarray,
    labels: np.ndarray,
    *,
    schema: SchemaLike,
    target: str | None,
    noise_std: float,
    test: object = None,
) -> dict[str, Any]:
    """Compare mixtures with the records that were mixed.

    The classifier is least squares on moments of mixtures from which the noise's part is taken away; an eigenvalue
    counts as far as it stands above what noise of T mixtures moves it. The same on records is beside it.

    Privacy: none. It reads the real records without noise; no figure is private, and the result says so.

    Args:
        real: the records that were mixed, anything `open_source` reads.
        features: of the mixtures, shape (T, d_X), in the encoder's coordinates.
        labels: soft labels, shape (T, d_Y); d_Y = 0 for none.
        schema: that of the release, or the path of one.
        target: the column of a table that the labels are of; of images it is the label column.
        noise_std: of a feature's noise.
        test: records that were not mixed, to score on; by default `real`, which flatters.

    Returns:
        `private`: false. `rows`. `fidelity`: `mean_entry`, the root mean square difference of the entries' means, in
        [0, 1] before mixing, and `classes`, the total variation of the labels' shares, null without labels. `utility`:
        null without labels, or `accuracy` of the classifier taught by mixtures, `real.accuracy` of the one taught by
        records, and `scored_on`. JSON-ready.

    Raises:
        SchemaError: a column of the schema is not in one of the tables.
        DataError: a table cannot be read, or has no rows.
    """
    schema = read_schema(schema)
    x, y = record_vectors(real, schema, target)
    shift = np.asarray(features, np.float64).mean(axis=0) - x.mean(axis=0)
    fidelity: dict[str, float | None] = {"mean_entry": float(np.sqrt(np.mean(shift**2))), "classes": None}
    utility = None
    if labels.shape[1]:
        fidelity["classes"] = distance(_shares(labels), _shares(y))
        scored_x, scored_y = (x, y) if test is None else record_vectors(test, schema, target)
        truth = scored_y.argmax(axis=1)

        def accuracy(train_x: np.ndarray, train_y: np.ndarray, noise: float) -> float:
            return float(np.mean(_least_squares(train_x, train_y, noise, scored_x).argmax(axis=1) == truth))

        utility = {
            "accuracy": accuracy(features, labels, noise_std),
            "real": {"accuracy": accuracy(x, y, 0.0)},
            "scored_on": "real" if test is None else "test",
            "classifier": "least squares",
        }
    rows = {"real": len(x), "mixtures": len(features)}
    return {"private": False, "rows": rows, "utility": utility, "fidelity": fidelity}


def record_vectors(source: object, schema: Schema, target: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return records as mixtures hold them before they are mixed: features (n, d_X) and labels (n, d_Y), float32.

    Raises:
        SchemaError: a column is not in the source.
        DataError: the source cannot be read, or has no rows.
    """
    records = PrivateData(open_source(source, csv=schema.reader.csv), dataclasses.replace(schema, unit=None))
    encoder = SplitEncoder.of(schema, target)
    parts = [encoder.encode(chunk) for chunk in records.coded()]
    if not sum(len(features) for features, _ in parts):
        raise DataError("Expected real rows to compare with, got none.")
    features, labels = (np.concatenate(part).astype(np.float32) for part in zip(*parts, strict=True))
    return features, labels


def _shares(labels: np.ndarray) -> np.ndarray:
    totals = np.clip(np.asarray(labels, np.float64).sum(axis=0), 0, None)
    return totals / max(float(totals.sum()), 1e-12)


def _least_squares(x: np.ndarray, y: np.ndarray, noise_std: float, scored: np.ndarray) -> np.ndarray:
    """Return scores of rows by class, from moments without the noise's part."""
    rows = np.asarray(x, np.float64)
    mean, label = rows.mean(axis=0), np.asarray(y, np.float64).mean(axis=0)
    centred = rows - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(rows))
    values = np.maximum(values - noise_std**2, 0.0)
    # how far noise moves an eigenvalue, as in papers/dpmix
    least = noise_std**2 * np.sqrt(rows.shape[1] / len(rows)) + 1e-5
    inverse = values / (values**2 + least**2)
    weights = vectors @ (inverse[:, None] * (vectors.T @ (centred.T @ (y - label) / len(rows))))
    return (scored - mean) @ weights + label
