"""What a release is worth to classifiers that train on it, and how well its clusters name the classes.

Reads real records without noise: the figures are NOT private.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.optimize import linear_sum_assignment

from sfumato.columns.kinds import LevelKind, TabularKind
from sfumato.desk.validation import INSIDE
from sfumato.errors import ConfigError, DataError
from sfumato.evaluate.coded_tables import CodedTable, FeatureMap, random_state, read_codes, table_kinds
from sfumato.extras import require_extra
from sfumato.maths.streams import public_stream
from sfumato.schema.schema import Schema, SchemaLike, read_schema

CLASSIFIERS = ("logistic_regression", "ada_boost", "gradient_boosting", "xgboost")

_DENSE_CELLS = 1 << 27  # 512 MiB of float32
_SCORES = ("auroc", "auprc", "accuracy")
TRAIN_ROWS = 10_000
"""Rows that reports and the command line let classifiers learn from: 10^5 rows of 50 columns take half a minute."""


def classifier_scores(
    train: object, test: object, *, schema: SchemaLike, target: str, positive: str | None = None, seed: int = 0
) -> dict[str, Any]:
    """Train four classifiers on one table and score them on another.

    Logistic regression (liblinear, one against the rest), AdaBoost (defaults), gradient boosting
    (max_features="sqrt", max_depth=8, min_samples_leaf=50, min_samples_split=200) and XGBoost
    (defaults). Level columns are one-hot over the schema's levels; numeric columns are
    standardised by the mean and deviation of `train`; see `FeatureMap` for missing values.

    A target of two categories is scored for its positive class: AUROC and average precision. One
    of more categories is scored by their means over the classes that occur in `test`, each
    against the rest. Accuracy is the share of rows whose most probable class is right. Rows
    without a label are left out of both tables.

    Privacy: none. It reads the records without noise; no figure is private.

    Args:
        train: rows to learn from, anything `open_source` reads.
        test: real rows that `train` was not made from.
        schema: a `Schema` or the path of one; the features are its released columns but for the target.
        target: a categorical, ordinal or boolean column.
        positive: the class to tell from all others; by default the last category of a target
            that has two. With it, a target of more categories is scored as one of two.
        seed: random state of the classifiers; the same seed gives the same scores.

    Returns:
        `auroc`, `auprc`, `accuracy`: means of the classifiers; `per_classifier`: name to the same.

    Raises:
        ConfigError: the target is no released level column, or `positive` is none of its labels; scikit-learn or
            xgboost is not installed.
        DataError: a table has no labelled rows, or cannot be read.

    Edge cases: one class in `train`, or no other columns → AUROC 0.5 and AUPRC the positive
    class's share, of any classifier. One class in `test` → the same.
    Reference: P3GM (Takagi et al. 2021), section VI; their code fits XGBoost as a regressor on
        half of the rows and codes categories as integers.
    """
    require_extra("evaluate", "train classifiers")
    schema = read_schema(schema)
    task = ClassificationTask.of(schema, target, positive)
    return train_and_score(read_codes(train, schema), read_codes(test, schema), task=task, seed=seed)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationTask:
    """The column to predict, and the columns to predict it from.

    Args:
        target: name of the target column.
        features: name to kind of the feature columns, in schema order.
        positive: code of the positive class of a binary task; None for a task of many classes.
        n_labels: codes from here on stand for a missing label.
    """

    target: str
    features: Mapping[str, TabularKind]
    positive: int | None
    n_labels: int

    @classmethod
    def of(cls, schema: Schema, target: str, positive: str | None) -> ClassificationTask:
        """Check target and positive class against the schema; reads no record."""
        kind = schema.of_kind(LevelKind).get(target)
        if kind is None:
            raise ConfigError(
                f"Expected target to be a released categorical, ordinal or boolean column, got {target=}."
            )
        labels = kind.labels
        if positive is None and kind.n_categories <= 2:
            positive = labels[kind.n_categories - 1]
        if positive is not None and positive not in labels:
            rule = f"Expected positive to be a label of {target!r}"
            raise ConfigError(f"{rule}, got positive={positive!r}. Choose one of {labels[:10]}.")
        return cls(
            target=target,
            features={name: kind for name, kind in table_kinds(schema).items() if name != target},
            positive=None if positive is None else labels.index(positive),
            n_labels=len(labels),
        )

    def with_labels(self, table: CodedTable) -> CodedTable:
        """The rows with a label of the schema."""
        known = table.columns[self.target] < self.n_labels
        if self.target in table.outside:
            known &= table.outside[self.target] == INSIDE
        labelled = table.keep(known)
        if not labelled.n_rows or (labelled.weights is not None and not labelled.weights.sum() > 0):
            raise DataError(
                f"Expected rows with a label of the schema in column {self.target!r} of {table.label}, got none."
            )
        return labelled

    def classes(self, table: CodedTable) -> np.ndarray:
        """The class of each row: 1 for positive and 0 for the rest, or the label's code."""
        codes = table.columns[self.target]
        return codes if self.positive is None else (codes == self.positive).astype(np.int32)


def train_and_score(
    train: CodedTable, test: CodedTable, *, task: ClassificationTask, seed: int, rows: int | None = None
) -> dict[str, Any]:
    """As `classifier_scores`, from tables that were read with `read_codes`.

    Of a larger training table `rows` rows are drawn by `seed`, and `sample` is returned too: `rows`, `of`, how many
    there were, and `error`, by how much each score changes when a quarter of the drawn rows are learned from: where
    what is lost falls as one over the root of the rows, the sample loses as much against all rows there could be.
    """
    train, test = task.with_labels(train).population(seed), task.with_labels(test)
    if rows is None or train.n_rows <= rows:
        return _trained_scores(train, test, task, seed)
    scores, fewer = (_trained_scores(sample_rows(train, n, seed), test, task, seed) for n in (rows, rows // 4))
    error = {key: abs(scores[key] - fewer[key]) for key in _SCORES}
    return {**scores, "sample": {"rows": rows, "of": train.n_rows, "error": error}}


def sample_rows(table: CodedTable, rows: int | None, seed: int) -> CodedTable:
    """So many rows, drawn by the seed, the first of those that more rows would be; all where there are no more."""
    if rows is None or table.n_rows <= rows:
        return table
    return table.keep(np.sort(public_stream(seed).permutation(table.n_rows)[:rows]))


def _trained_scores(train: CodedTable, test: CodedTable, task: ClassificationTask, seed: int) -> dict[str, Any]:
    """Scores on labelled rows, by classifiers that learn from labelled rows."""
    features = FeatureMap.of(train, task.features)
    y_train, y_test = task.classes(train), task.classes(test)
    classes = np.union1d(y_train, y_test) if task.positive is None else np.arange(2)
    if features.width and len(np.unique(y_train)) > 1:
        probabilities = _probabilities(features, train, y_train, test, classes, seed)
    else:  # nothing to learn from: every row gets the shares of the training table
        shares = np.array([np.mean(y_train == label) for label in classes])
        constant = np.tile(shares, (test.n_rows, 1))
        probabilities = dict.fromkeys(CLASSIFIERS, constant)
    scored = [1] if task.positive is not None else None
    per_classifier = {name: score(classes, y_test, p, scored, test.weights) for name, p in probabilities.items()}
    means = {key: float(np.mean([scores[key] for scores in per_classifier.values()])) for key in _SCORES}
    return {**means, "per_classifier": per_classifier}


def score(
    classes: np.ndarray,
    y: np.ndarray,
    probabilities: np.ndarray,
    scored: list[int] | None,
    weights: np.ndarray | None = None,
) -> dict[str, float]:
    """Score class probabilities of shape (n, len(classes)) against the true classes, shape (n,).

    `scored` are the positions of the classes to average over; None means those that occur in y. Rows count by their
    `weights`, shape (n,), if there are any.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    auroc, auprc = [], []
    for i in range(len(classes)) if scored is None else scored:
        truth = y == classes[i]
        share = float(np.average(truth, weights=weights))
        if 0 < share < 1:
            auroc.append(float(roc_auc_score(truth, probabilities[:, i], sample_weight=weights)))
            auprc.append(float(average_precision_score(truth, probabilities[:, i], sample_weight=weights)))
        elif scored is not None or share:
            auroc.append(0.5)
            auprc.append(share)
    right = classes[np.argmax(probabilities, axis=1)] == y
    return {
        "auroc": float(np.mean(auroc)),
        "auprc": float(np.mean(auprc)),
        "accuracy": float(np.average(right, weights=weights)),
    }


def _probabilities(
    features: FeatureMap, train: CodedTable, y: np.ndarray, test: CodedTable, classes: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Class probabilities of the test rows by each classifier, shape (n, len(classes))."""
    sparse = features.matrix(train), features.matrix(test)
    present, labels = np.unique(y, return_inverse=True)
    columns = np.searchsorted(classes, present)
    # trees are several times faster on dense rows, liblinear on sparse
    narrow = [matrix.astype(np.float32) for matrix in sparse]
    is_small = max(train.n_rows, test.n_rows) * features.width <= _DENSE_CELLS
    trees = [matrix.toarray() for matrix in narrow] if is_small else narrow
    result = {}
    for name, model in _models(len(present), seed).items():
        x_train, x_test = sparse if name == "logistic_regression" else trees
        full = np.zeros((test.n_rows, len(classes)))
        full[:, columns] = _fit(model, x_train, labels).predict_proba(x_test)
        result[name] = full
    return result


def _fit(model: Any, x: Any, labels: np.ndarray) -> Any:  # noqa: ANN401
    """Fit a classifier; one that scikit-learn says cannot learn from these rows gives every row their shares."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import AdaBoostClassifier

    try:
        return model.fit(x, labels)
    except ValueError as error:
        # AdaBoost gives up where its first tree tells nothing of the label; by its rounding, so not always
        if not isinstance(model, AdaBoostClassifier) or "worse than random" not in str(error):
            raise
    return DummyClassifier(strategy="prior").fit(x, labels)


def _models(n_classes: int, seed: int) -> dict[str, Any]:
    from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from xgboost import XGBClassifier

    state = random_state(seed)
    logistic = LogisticRegression(solver="liblinear", max_iter=1000, random_state=state)
    boosting = GradientBoostingClassifier(
        max_features="sqrt", max_depth=8, min_samples_leaf=50, min_samples_split=200, random_state=state
    )
    linear = logistic if n_classes == 2 else OneVsRestClassifier(logistic)
    models = (linear, AdaBoostClassifier(random_state=state), boosting, XGBClassifier(random_state=state))
    return dict(zip(CLASSIFIERS, models, strict=True))


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
