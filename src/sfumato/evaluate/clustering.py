"""Clustering accuracy: how well clusters name the classes.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from sfumato.errors import ConfigError
from sfumato.evaluate.coded_tables import CodedTable, FeatureMap, random_state
from sfumato.evaluate.utility import ClassificationTask, sample_rows


def clustering_accuracy(labels: np.ndarray, clusters: np.ndarray) -> float:
    """Share of records whose cluster stands for their label, under the best one-to-one map of clusters to labels.

        max over one-to-one u of (1/n)·#{i: labels[i] = u(clusters[i])}

    Privacy: none. It reads the records without noise.

    Args:
        labels: true classes, shape (n,), n at least 1.
        clusters: clusters, shape (n,).

    Returns:
        A number in (0, 1]; clusters beyond the number of labels match nothing.

    Raises:
        ConfigError: the shapes differ, or there is nothing to compare.
    Reference: Kuhn 1955, through `scipy.optimize.linear_sum_assignment`.
    """
    labels, clusters = np.asarray(labels), np.asarray(clusters)
    if labels.ndim != 1 or labels.shape != clusters.shape or not len(labels):
        raise ConfigError("Expected labels and clusters of the same shape (n,), with n at least 1.")
    return _best_share(labels, clusters, None)


def _best_share(labels: np.ndarray, clusters: np.ndarray, weights: np.ndarray | None) -> float:
    _, rows = np.unique(labels, return_inverse=True)
    _, columns = np.unique(clusters, return_inverse=True)
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1 if weights is None else weights)
    best = linear_sum_assignment(table, maximize=True)
    return float(table[best].sum() / table.sum())


def cluster_and_score(
    train: CodedTable, test: CodedTable, *, task: ClassificationTask, seed: int, rows: int | None = None
) -> float | None:
    """Clustering accuracy on `test` of k-means with one centre per class, fitted to the features of `train`.

    Of a larger training table `rows` rows are drawn by `seed`, those that classifiers learn from.

    Null where there are no other columns, or fewer rows than classes.
    """
    from sklearn.cluster import KMeans

    train, test = sample_rows(task.with_labels(train).population(seed), rows, seed), task.with_labels(test)
    features = FeatureMap.of(train, task.features)
    classes = task.n_labels
    if not features.width or train.n_rows < classes:
        return None
    model = KMeans(classes, n_init=4, random_state=random_state(seed))  # type: ignore[arg-type] - its stubs know only "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than classes: some clusters are then empty
        clusters = np.asarray(model.fit(features.matrix(train)).predict(features.matrix(test)))
    return _best_share(test.columns[task.target], clusters, test.weights)


def clustering(
    tables: dict[str, CodedTable], held_out: CodedTable, *, task: ClassificationTask, seed: int, rows: int | None = None
) -> dict[str, Any]:
    """Scores of `synthetic` and `real` of `tables`."""
    return {name: cluster_and_score(table, held_out, task=task, seed=seed, rows=rows) for name, table in tables.items()}
