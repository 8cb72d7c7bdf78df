"""Words outside a closed list, and missing cells, count for no label: no sample has one, and none is taken for it."""

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import norm

import sfumato
from fixtures import linked, two_tables
from sfumato import DPGM, P3GM, DPMix, MaxEntropy, NonPrivate, Schema
from sfumato.columns.booleans import Boolean
from sfumato.columns.kinds import Categorical, Image, LevelKind
from sfumato.errors import EstimateError
from sfumato.evaluate import evaluate, total_variation
from sfumato.lenses.chain import LabelledRows
from sfumato.release.samplers import build_sampler

N = 6_000
SHARES = {"ward": [0.2, 0.5, 0.3], "grade": [0.15, 0.2, 0.4, 0.25], "back": [0.35, 0.65], "dead": [0.7, 0.3]}
SCHEMA = Schema.from_dict({
    "rows": N,
    "columns": {
        "ward": {"kind": "categorical", "categories": ["east", "west", "north"]},
        "grade": {"kind": "ordinal", "categories": ["low", "fair", "good", "high"]},
        "back": "boolean",
        "age": {"kind": "integer", "lower": 0, "upper": 100},
        "dead": ["no", "yes"],
    },
})  # fmt: skip
LABELS = {name: list(kind.labels) for name, kind in SCHEMA.of_kind(LevelKind).items()}


def records(words: float = 0.0, n: int = N) -> pd.DataFrame:
    """Columns that go with each other, and the part of their cells that is no label."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=n)
    codes = {
        name: np.searchsorted(np.cumsum(shares)[:-1], norm.cdf(0.8 * z + 0.6 * rng.normal(size=n)))
        for name, shares in SHARES.items()
    }
    frame = pd.DataFrame({name: np.array(LABELS[name])[code] for name, code in codes.items()})
    frame.insert(3, "age", np.clip(np.rint(50 + 15 * z), 0, 100).astype(int))
    for name in LABELS:
        gone = rng.random(n) < words
        frame[name] = frame[name].where(~gone, np.where(rng.random(n) < 0.5, "somewhere", None))
    return frame


def check_marginals(rows: pd.DataFrame, within: float) -> None:
    """No cell is blank, and every label has its share among labels."""
    assert not rows.isna().any(axis=None)
    for name, shares in SHARES.items():
        made = rows[name].astype(str).str.lower().value_counts(normalize=True)
        assert set(made.index) <= set(LABELS[name])
        np.testing.assert_allclose([made.get(label, 0.0) for label in LABELS[name]], shares, atol=within, err_msg=name)


METHODS = {
    "max-entropy": (lambda: MaxEntropy(epsilon=2.0), 0.04),
    "without noise": (lambda: MaxEntropy(epsilon=NonPrivate()), 0.03),
    "p3gm": (lambda: P3GM(epsilon=8.0, epochs=1, hidden=16, latent_dim=3), 0.06),
    "dpgm": (lambda: DPGM(epsilon=8.0, n_clusters=2, epochs=1), 0.06),
}


@pytest.mark.parametrize("target", [None, "dead"])
@pytest.mark.parametrize("words", [0.0, 0.3])
@pytest.mark.parametrize("method", METHODS)
def test_samples_have_labels_alone_in_their_shares(method, words, target):
    build, within = METHODS[method]
    release = build().fit(records(words), schema=SCHEMA, target=target, seed=3)
    rows = release.sample(5_000, seed=1)
    check_marginals(rows, within)
    pd.testing.assert_frame_equal(release.sample(10, seed=1), rows[:10])


def test_what_goes_together_does_so_in_samples():
    release = MaxEntropy(epsilon=4.0).fit(records(0.3), schema=SCHEMA, target="dead", seed=0)
    assert total_variation(records(), release.sample(N, seed=0), schema=SCHEMA, k=2) < 0.05
    given = release.sample(2_000, given={"back": True}, seed=0)
    whole = records()
    assert not given.isna().any(axis=None)
    assert abs((given["dead"] == "yes").mean() - (whole["dead"][whole["back"] == "true"] == "yes").mean()) < 0.06
    counted = release.sample(class_counts={"yes": 30, "no": 20}, seed=0)
    assert counted["dead"].value_counts().to_dict() == {"yes": 30, "no": 20}


@pytest.mark.parametrize("target", [None, "dead"])
def test_shares_are_those_among_labels(target):
    release = MaxEntropy(epsilon=4.0).fit(records(0.3), schema=SCHEMA, target=target, seed=5)
    for name, shares in SHARES.items():
        for label, share in zip(LABELS[name], shares, strict=True):
            answer = release.share({name: label})
            assert abs(answer.value - share) < 5 * answer.std_error
    pairs = release.crosstab("ward", "back", normalize=True)
    truth = records().groupby(["ward", "back"]).size() / N
    unsaid = [share for pair, share in truth.items() if pair not in pairs]  # what errors hide is left out
    assert max(unsaid, default=0) < 0.04
    assert sum(answer.value for answer in pairs.values()) + sum(unsaid) == pytest.approx(1, abs=0.02)
    assert not release.answers().query("kind == 'missing'").size
    check_marginals(pd.concat(release.replicates(8, n=2_000, seed=0)), 0.05)  # .03 to .07 of one of them


def test_a_table_of_words_alone_is_sampled():
    frame = records(0.3).assign(ward="somewhere", dead=None)
    for target in (None, "dead"):
        rows = MaxEntropy(epsilon=1.0).fit(frame, schema=SCHEMA, target=target, seed=0).sample(2_000, seed=0)
        assert not rows.isna().any(axis=None)
        assert rows["ward"].isin(LABELS["ward"]).all()


def test_mixtures_have_no_column_for_words():
    rows = (
        DPMix(epsilon=4.0, mixture_degree=4).fit(records(0.3), schema=SCHEMA, target="dead", seed=0).sample(5, seed=0)
    )
    labels = [f"{name}={label}" for name in LABELS for label in LABELS[name]]
    assert sorted(rows.columns) == sorted([*labels, "age"])


def _spoilt(column: pd.Series, words: float) -> pd.Series:
    return column.where(np.random.default_rng(1).random(len(column)) >= words, "unwell")


def _same_shares(one: pd.Series, other: pd.Series) -> None:
    assert not one.isna().any()
    assert one.value_counts(normalize=True).sub(other.value_counts(normalize=True), fill_value=0).abs().max() < 0.06


@pytest.mark.parametrize("words", [0.0, 0.3])
def test_linked_rows(words):
    frame = linked.visits(1_500)
    sexes = frame.groupby("patient")["sex"].first()
    given = frame.assign(
        state=_spoilt(frame["state"], words), sex=frame["patient"].map(_spoilt(sexes, words)).fillna("x")
    )
    release = sfumato.fit(given, linked.schema(units=1_500), epsilon=8.0, delta=1e-5, seed=0)
    rows = release.sample(1_500, seed=0)
    _same_shares(rows["state"], frame["state"])
    _same_shares(rows.groupby("patient")["sex"].first(), sexes)
    answer = release.share({"state": "a"})
    assert abs(answer.value - (frame["state"] == "a").mean()) < max(5 * answer.std_error, 0.03)


@pytest.mark.parametrize("words", [0.0, 0.3])
def test_two_tables_of_which_a_row_may_have_none_below(words):
    tables = two_tables.tables(1_500)
    given = {
        "persons": tables["persons"].assign(sex=_spoilt(tables["persons"]["sex"], words)),
        "visits": tables["visits"].assign(state=_spoilt(tables["visits"]["state"], words)),
    }
    release = sfumato.fit(given, two_tables.schema(1_500), epsilon=8.0, delta=1e-5, seed=0)
    made = release.sample(1_500, seed=0)
    _same_shares(made["visits"]["state"], tables["visits"]["state"])
    _same_shares(made["persons"]["sex"], tables["persons"]["sex"])
    share = len(set(made["visits"]["patient"])) / 1_500
    assert abs(share - len(set(tables["visits"]["patient"])) / 1_500) < 0.05
    answer = release.units.share({"sex": "f"})
    assert abs(answer.value - (tables["persons"]["sex"] == "f").mean()) < 5 * answer.std_error


class _Uneven:
    """A sampler of somebody else, which draws hidden levels too."""

    width, class_column, possible = 2, "dead", np.ones(3, dtype=bool)

    def rows(self, n, rng, classes=None):
        dead = rng.choice(3, n, p=[0.2, 0.3, 0.5]) if classes is None else classes
        return {"back": rng.choice(3, n, p=[0.1, 0.3, 0.6]), "dead": dead.astype(np.int32)}


def test_cells_without_a_label_are_dealt_anew():
    sampler = LabelledRows({"back": 2, "dead": 2}, _Uneven())
    assert sampler.possible.tolist() == [True, True, False]
    rows = sampler.rows(20_000, np.random.default_rng(0))
    assert np.bincount(rows["back"]) / 20_000 == pytest.approx([0.25, 0.75], abs=0.02)
    assert np.bincount(rows["dead"]) / 20_000 == pytest.approx([0.4, 0.6], abs=0.02)
    assert (sampler.rows(9, np.random.default_rng(0), np.zeros(9))["dead"] == 0).all()


def test_a_model_of_words_has_them_before_samples_leave_them_out():
    release = MaxEntropy(epsilon=4.0).fit(records(0.3), schema=SCHEMA, seed=0)
    plain = build_sampler(SCHEMA, release.sampler, release.parameters).rows(4_000, np.random.default_rng(0))
    assert Boolean().missing_code == 2
    assert np.mean(plain["back"] == 2) == pytest.approx(0.3, abs=0.04)


def test_replicates_keep_what_columns_have_to_do_with_each_other():
    rng = np.random.default_rng(0)
    one = np.where(rng.random(400) < 0.3, "somewhere", rng.choice(["x", "y", "w"], 400))
    labels = Categorical(categories=("x", "y", "w"))
    schema = Schema(columns={"one": labels, "same": labels}, rows=400)
    release = MaxEntropy(epsilon=50.0).fit(pd.DataFrame({"one": one, "same": one}), schema=schema, seed=0)
    for rows in (release.sample(2_000, seed=0), *release.replicates(2, n=2_000, seed=0)):
        assert (rows["one"] == rows["same"]).mean() > 0.98


def test_columns_that_follow_are_answered_among_rows_with_labels_too():
    text = """
rows: 4000
columns:
  one: {kind: categorical, categories: [x, y, w]}
  two: {kind: categorical, categories: [p, q], nullable: true}
  age: {kind: integer, lower: 0, upper: 9}
rules:
  - {derived: two, from: one, map: {x: p, y: q, w: q}}
"""
    rng = np.random.default_rng(0)
    one = rng.choice(["x", "y", "w"], 4_000)
    frame = pd.DataFrame({"one": one, "two": np.where(one == "x", "p", "q"), "age": rng.integers(0, 10, 4_000)})
    frame.loc[rng.random(4_000) < 0.3, "one"] = "somewhere"
    release = MaxEntropy(epsilon=5.0).fit(frame, schema=Schema.from_dict(yaml.safe_load(text)), seed=0)
    assert abs(release.share({"two": "p"}).value - 1 / 3) < 0.04
    with pytest.raises(EstimateError, match="all but one value"):  # none is missing
        release.missing("two")
    assert abs((release.sample(4_000, seed=0)["two"] == "p").mean() - 1 / 3) < 0.04


def test_pictures_without_a_label_are_not_scored():
    kinds = {"x": Image(shape=(8, 8), lower=0, upper=1, dtype="float32"), "y": Categorical(categories=("u", "v"))}
    pictures = np.random.default_rng(0).random((30, 8, 8)).astype(np.float32)
    real = {"x": pictures, "y": np.array(["u", "v", "somewhere"] * 10)}
    made = {"x": pictures, "y": np.array(["u", "v", "u"] * 10)}
    found = evaluate(real, made, schema=Schema(columns=kinds), target="y")
    assert found["rows"]["real"] == 20
    assert found["fidelity"]["classes"] == pytest.approx(1 / 6)
