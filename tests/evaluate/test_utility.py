"""Classifier scores against a plain pandas and scikit-learn implementation, and at the edges."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from sfumato.errors import ConfigError, DataError
from sfumato.evaluate import classifier_scores, evaluate, utility
from sfumato.evaluate import coded_tables as features
from sfumato.evaluate.utility import CLASSIFIERS, score
from sfumato.schema.schema import Schema

JOBS = ["clerk", "cook", "pilot"]
COLUMNS = {
    "age": {"kind": "integer", "lower": 0, "upper": 128},
    "income": {"kind": "categorical", "categories": ["low", "high"]},
    "job": {"kind": "categorical", "categories": JOBS, "nullable": True},
    "score": {"kind": "continuous", "lower": -4, "upper": 4, "nullable": True},
    "member": {"kind": "boolean"},
    "empty": {"kind": "continuous", "lower": 0, "upper": 1, "nullable": True},
    "constant": {"kind": "continuous", "lower": 0, "upper": 1},
    "name": {"kind": "identifier"},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


def people(n: int, seed: int) -> pd.DataFrame:
    """Rows whose numbers are sums of few powers of two, so that scaling them is exact."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 129, n)
    job = rng.choice([*JOBS, None], n, p=[0.5, 0.3, 0.1, 0.1])
    score = np.round(np.clip(rng.normal(0, 1, n), -4, 4) * 64) / 64
    logit = (age - 64) / 20 + (job == "pilot") * 2 + score + rng.logistic(size=n)
    return pd.DataFrame(
        {
            "age": age,
            "income": np.where(logit > 1, "high", "low"),
            "job": pd.Series(job, dtype="str"),
            "score": np.where(rng.random(n) < 0.15, np.nan, score),
            "member": rng.random(n) < 0.5,
            "empty": np.nan,
            "constant": 0.1,
            "name": [f"n{i}" for i in range(n)],
        }
    )


TRAIN, TEST = people(1200, 1), people(600, 2)


def plain_features(train: pd.DataFrame, test: pd.DataFrame, target: str) -> list[np.ndarray]:
    """One-hot and standardised columns by pandas and StandardScaler, in schema order."""
    both = []
    for frame in (train, test):
        columns = []
        for name in ("age", "income", "job", "score", "member", "empty", "constant"):
            if name == target:
                continue
            kind = COLUMNS[name]
            if kind["kind"] in {"categorical", "boolean"}:
                labels = kind.get("categories", [False, True])
                columns += [(frame[name] == label).to_numpy(float) for label in labels]
                if kind.get("nullable"):
                    columns.append(frame[name].isna().to_numpy(float))
                continue
            if train[name].isna().all():
                values = np.zeros(len(frame))
            else:
                scaler = StandardScaler().fit(train[[name]].to_numpy())
                values = np.nan_to_num(scaler.transform(frame[[name]].to_numpy())[:, 0])
            columns.append(values)
            if kind.get("nullable"):
                columns.append(frame[name].isna().to_numpy(float))
        both.append(np.column_stack(columns))
    return both


def plain_probabilities(train, test, target, labels) -> dict[str, np.ndarray]:
    x_train, x_test = plain_features(train, test, target)
    logistic = LogisticRegression(solver="liblinear", max_iter=1000, random_state=0)
    models = {
        "logistic_regression": logistic if len(set(labels)) == 2 else OneVsRestClassifier(logistic),
        "ada_boost": AdaBoostClassifier(random_state=0),
        "gradient_boosting": GradientBoostingClassifier(
            max_features="sqrt",
            max_depth=8,
            min_samples_leaf=50,
            min_samples_split=200,
            random_state=0,
        ),
        "xgboost": XGBClassifier(random_state=0),
    }
    return {k: m.fit(x_train, labels).predict_proba(x_test) for k, m in models.items()}


def test_two_classes_against_scikit_learn():
    ours = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income")
    truth = (TEST["income"] == "high").to_numpy()
    plain = plain_probabilities(TRAIN, TEST, "income", (TRAIN["income"] == "high").astype(int))
    assert tuple(ours["per_classifier"]) == tuple(plain) == CLASSIFIERS
    for name, p in plain.items():
        scores = ours["per_classifier"][name]
        assert scores["auroc"] == pytest.approx(roc_auc_score(truth, p[:, 1]), abs=1e-6)
        assert scores["auprc"] == pytest.approx(average_precision_score(truth, p[:, 1]), abs=1e-6)
        assert scores["accuracy"] == pytest.approx(np.mean((p[:, 1] > 0.5) == truth), abs=1e-6)
        assert scores["auroc"] > 0.8  # there is something to learn
    for key in ("auroc", "auprc", "accuracy"):
        mean = np.mean([scores[key] for scores in ours["per_classifier"].values()])
        assert ours[key] == pytest.approx(mean)


def test_many_classes_against_scikit_learn():
    train, test = (frame.dropna(subset="job") for frame in (TRAIN, TEST))
    ours = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="job")  # drops the unlabelled
    labels = train["job"].map(JOBS.index).to_numpy()
    truth = np.eye(3)[test["job"].map(JOBS.index)]
    for name, p in plain_probabilities(train, test, "job", labels).items():
        scores = ours["per_classifier"][name]
        auroc = roc_auc_score(truth, p, average="macro")
        auprc = average_precision_score(truth, p, average="macro")
        assert scores["auroc"] == pytest.approx(auroc, abs=1e-6), name
        assert scores["auprc"] == pytest.approx(auprc, abs=1e-6), name
        accuracy = np.mean(np.argmax(p, axis=1) == np.argmax(truth, axis=1))
        assert scores["accuracy"] == pytest.approx(accuracy, abs=1e-6), name


@pytest.mark.slow
def test_positive_class():
    high = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income")
    low = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income", positive="low")
    again = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income", positive="high")
    assert again == high
    assert low["auroc"] == pytest.approx(high["auroc"], abs=0.02)
    assert low["auprc"] > high["auprc"] + 0.01  # the commoner class is the easier one

    pilots = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="job", positive="pilot")
    binary = {**COLUMNS, "job": {"kind": "categorical", "categories": ["other", "pilot"]}}
    recoded = [
        f.dropna(subset="job").assign(job=lambda g: g["job"].where(g["job"] == "pilot", "other")) for f in (TRAIN, TEST)
    ]
    schema = Schema.from_dict({"columns": binary})
    assert pilots == classifier_scores(*recoded, schema=schema, target="job")


def test_an_extra_other_label_does_not_make_two_classes_three():
    kind = {"kind": "categorical", "categories": ["low", "high"], "other": "unknown"}
    schema = Schema.from_dict({"columns": {**COLUMNS, "income": kind}})
    plain = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income")
    assert classifier_scores(TRAIN, TEST, schema=schema, target="income") == plain


def test_sparse_matrices_where_dense_ones_do_not_fit(monkeypatch):
    dense = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income")["per_classifier"]
    monkeypatch.setattr(utility, "_DENSE_CELLS", 0)
    sparse = classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income")["per_classifier"]
    assert sparse["logistic_regression"] == dense["logistic_regression"]
    for name in CLASSIFIERS:  # ties are broken otherwise, and xgboost takes a zero for missing
        assert sparse[name]["auroc"] == pytest.approx(dense[name]["auroc"], abs=0.01)


class TestOneClass:
    SHARE = float((TEST["income"] == "high").mean())

    @pytest.mark.parametrize("only", ["low", "high"])
    def test_in_training(self, only):
        train = TRAIN.assign(income=only)
        scores = classifier_scores(train, TEST, schema=SCHEMA, target="income")
        assert scores["auroc"] == 0.5
        assert scores["auprc"] == pytest.approx(self.SHARE)
        assert scores["accuracy"] == pytest.approx(self.SHARE if only == "high" else 1 - self.SHARE)
        assert tuple(scores["per_classifier"]) == CLASSIFIERS

    @pytest.mark.parametrize(("only", "share"), [("low", 0), ("high", 1)])
    def test_in_test(self, only, share):
        scores = classifier_scores(TRAIN, TEST.assign(income=only), schema=SCHEMA, target="income")
        assert (scores["auroc"], scores["auprc"]) == (0.5, share)

    def test_no_features(self):
        schema = Schema.from_dict({"columns": {"income": COLUMNS["income"]}})
        scores = classifier_scores(TRAIN, TEST, schema=schema, target="income")
        assert (scores["auroc"], scores["auprc"]) == (0.5, pytest.approx(self.SHARE))

    def test_a_class_of_several_that_training_lacks(self):
        train = TRAIN[TRAIN["job"] != "pilot"]
        scores = classifier_scores(train, TEST, schema=SCHEMA, target="job")
        share = float((TEST["job"].dropna() == "pilot").mean())
        y = TEST["job"].dropna().map(JOBS.index).to_numpy()
        blind = np.zeros((len(y), 3))
        blind[:, 0] = 1
        pilot = score(np.arange(3), y, blind, [2])
        assert (pilot["auroc"], pilot["auprc"]) == (0.5, pytest.approx(share))
        assert 0.3 < scores["auroc"] < 0.7

    def test_a_class_of_several_that_test_lacks_is_not_averaged(self):
        test = TEST[TEST["job"] != "pilot"]
        scores = classifier_scores(TRAIN, test, schema=SCHEMA, target="job")
        assert 0.4 < scores["auprc"] < 0.75  # two classes: a third of 0 would pull it below 0.4


def test_standardisation_is_that_of_the_training_table():
    kinds = {name: SCHEMA.columns[name] for name in ("score", "constant", "job")}
    read = utility.read_codes
    train = read(TRAIN, SCHEMA)
    test = read(TEST.assign(score=TEST["score"] + 1), SCHEMA)
    fitted = features.FeatureMap.of(train, kinds)
    ours, theirs = fitted.matrix(train).toarray(), fitted.matrix(test).toarray()
    assert ours.shape == (1200, fitted.width) == (1200, 2 + 1 + 4)
    known = TRAIN["score"].notna().to_numpy()
    assert ours[known, 0].mean() == pytest.approx(0, abs=1e-12)
    assert ours[known, 0].std() == pytest.approx(1)
    np.testing.assert_array_equal(ours[~known, 0], 0)
    np.testing.assert_array_equal(ours[:, 1], ~known)
    np.testing.assert_array_equal(ours[:, 2], 0)  # a constant is 0 to the last bit
    np.testing.assert_array_equal(ours[:, 3:].sum(axis=1), 1)
    assert theirs[:, 0].mean() > 0.5


@pytest.mark.parametrize(
    ("target", "positive", "message"),
    [
        ("age", None, "target='age'"),
        ("name", None, "target='name'"),
        ("absent", None, "target='absent'"),
        ("income", "middle", "positive='middle'"),
    ],
)
def test_targets_outside_their_domain(target, positive, message):
    for call in (classifier_scores, evaluate):
        with pytest.raises(ConfigError, match=message):
            call(TRAIN, TEST, schema=SCHEMA, target=target, positive=positive)


def test_no_labelled_rows():
    unlabelled = TEST.assign(job=pd.Series([None] * len(TEST), dtype="str"))
    with pytest.raises(DataError, match="label of the schema in column 'job'"):
        classifier_scores(TRAIN, unlabelled, schema=SCHEMA, target="job")


class TestEvaluate:
    def test_keys_and_that_real_is_the_real_table(self):
        synthetic = people(900, 3).assign(income=lambda f: f["income"].sample(frac=1, random_state=0).to_numpy())
        result = evaluate(TRAIN, synthetic, schema=SCHEMA, test=TEST, target="income")
        assert json.loads(json.dumps(result)) == result
        assert result["private"] is False
        assert result["rows"] == {"real": 1200, "synthetic": 900, "test": 600}
        distances = {"tvd_1way", "tvd_2way", "tvd_3way", "k_marginal", "correlations", "log_likelihood"}
        assert set(result["fidelity"]) == {*distances, "rules"}
        assert 0 < result["fidelity"]["tvd_1way"] < result["fidelity"]["tvd_2way"] < 1
        scores = result["utility"]
        assert set(scores) == {
            "auroc",
            "auprc",
            "accuracy",
            "per_classifier",
            "real",
            "scored_on",
            "clustering",
            "sample",
        }
        assert scores["sample"] is None
        assert scores["scored_on"] == "test"
        assert scores["real"] == classifier_scores(TRAIN, TEST, schema=SCHEMA, target="income")
        del scores["real"], scores["scored_on"], scores["clustering"], scores["sample"]
        assert scores == classifier_scores(synthetic, TEST, schema=SCHEMA, target="income")
        assert scores["auroc"] < 0.65  # labels were shuffled

    def test_without_test_rows_and_without_target(self):
        result = evaluate(TRAIN, TEST, schema=SCHEMA, target="income")
        assert result["utility"]["scored_on"] == "real"
        assert result["rows"] == {"real": 1200, "synthetic": 600}
        assert result["utility"]["real"]["auroc"] > result["utility"]["auroc"]
        assert evaluate(TRAIN, TEST, schema=SCHEMA)["utility"] is None

    def test_one_column(self):
        schema = Schema.from_dict({"columns": {"income": COLUMNS["income"]}})
        result = evaluate(TRAIN, TEST, schema=schema, target="income")
        assert result["fidelity"]["tvd_2way"] is None

    def test_a_bad_target_is_refused_before_anything_is_read(self, tmp_path):
        with pytest.raises(ConfigError):
            evaluate(tmp_path / "absent.csv", tmp_path / "absent.csv", schema=SCHEMA, target="age")

    def test_importing_it_loads_no_learning_library(self):
        heavy = "{'sklearn', 'xgboost', 'torch'} & set(sys.modules)"
        code = f"import sys, sfumato.evaluate; sys.exit(bool({heavy}))"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("seed", [0, 2**32, 2**63 - 1])
def test_features_that_tell_nothing(seed):
    """Where AdaBoost gives up, by how its first tree rounds, every row gets the shares of the training table."""
    schema = Schema.from_dict({"columns": {"k": {"kind": "integer", "lower": 0, "upper": 3}, "t": {"kind": "boolean"}}})
    for n in (2, 3, 10, 100):
        frame = pd.DataFrame({"k": 1, "t": [True, False] * n})
        found = classifier_scores(frame, frame, schema=schema, target="t", seed=seed)
        assert found["auroc"] == 0.5
        assert found["auprc"] == 0.5
