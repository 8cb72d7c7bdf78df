"""Estimates about all rows of linked units: what the records say without noise, and intervals with it."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fixtures import frail, linked, long_units, two_tables
from fixtures.costly import slow_after
from sfumato import MaxEntropy, NonPrivate
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.linked_rows import LinkedMeasurements, LinkedQuestions, questions_of
from sfumato.records.sequences import STEPS, Sequences, step_records

N = 2_000
SILENT = {"epsilon": NonPrivate(), "calibration_rows": 400}


@pytest.fixture(scope="module")
def noisy():
    """Of which one step of a unit counts whole."""
    return MaxEntropy(epsilon=1.0, delta=1e-6).fit(linked.visits(N, 1), schema=linked.schema(units=N), seed=1)


def of_two_tables():
    return two_tables.tables(N, 1), two_tables.schema(N), two_tables.joined(two_tables.tables(N, 1))


def of_one_table():
    return linked.visits(N, 1), linked.schema(units=N), linked.visits(N, 1)


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        (of_one_table, "sex"), (of_two_tables, None),
        *slow_after(0, [(of_one_table, None), (of_two_tables, "sex")]),  # each of the two is tried above
    ],
)  # fmt: skip
def test_without_noise_they_are_those_of_the_records(shape, target):
    records, schema, real = shape()
    release = replace(MaxEntropy(**SILENT), calibration_rows=2_000).fit(records, schema=schema, target=target, seed=1)
    for column in ("score", "day", "born"):
        assert release.mean(column).value == pytest.approx(real[column].mean(), rel=1e-3)
    assert release.count().value == pytest.approx(len(real), rel=1e-6)
    assert release.share({"state": "a"}).value == pytest.approx((real["state"] == "a").mean(), abs=1e-6)
    assert release.quantile("score").value == pytest.approx(real["score"].median(), abs=0.5)
    assert release.variance("score").value == pytest.approx(real["score"].var(), rel=0.01)
    of_women = real["score"][real["sex"] == "f"].mean()
    assert release.mean("score", by="sex")["f"].value == pytest.approx(of_women, rel=3e-3)
    between = release.mean("score", by="sex").difference("f", "m")
    by_sex = real["score"].groupby(real["sex"]).mean()
    assert between.value == pytest.approx(by_sex["f"] - by_sex["m"], rel=0.02)
    half = release.share({"score": (real["score"].median(), None)})
    assert abs(half.value - (real["score"] >= real["score"].median()).mean()) < 3 * half.parts["unmeasured"]
    assert release.correlation("score", "born").value == pytest.approx(real["score"].corr(real["born"]), abs=0.01)
    # units of like rows: as if there were as many records as units, not as rows
    by_unit = real.assign(off=real["score"] - real["score"].mean()).groupby("patient")["off"].sum()
    robust = np.sqrt((by_unit**2).sum()) / len(real)
    assert release.mean("score").std_error == pytest.approx(robust, rel=0.05)


def test_weighted_units_are_those_of_the_population():
    records, rng = linked.visits(N, 1), np.random.default_rng(0)
    weight = rng.uniform(0.5, 4.0, N)
    records["w"] = weight[records["patient"]] * np.where(records["sex"] == "f", 1.0, 0.5)
    document = {**linked.DOCUMENT, "weight": {"column": "w", "upper": 4.0}}
    document["unit"] = {**document["unit"], "units": N, "constant": ["sex", "born", "w"]}
    document["columns"] = {**document["columns"], "w": "identifier"}
    release = MaxEntropy(**SILENT).fit(records, schema=document, seed=1)
    assert release.count().value == pytest.approx(records["w"].sum(), rel=2e-3)
    for column in ("score", "day", "born"):
        assert release.mean(column).value == pytest.approx(np.average(records[column], weights=records["w"]), rel=2e-3)


def test_steps_are_counted_and_clipped_as_they_were_measured(noisy):
    measured = questions_of(noisy).measured
    assert isinstance(measured, LinkedMeasurements)
    part = measured.step_part
    assert part.room < part.most
    query = part.products.query
    entries = np.concatenate([e.whole[part.base.of(e.cells)] for e in query.features], axis=1)
    clipped = 0
    for unit in range(300):
        mine = part.sums.owners == unit
        if not mine.any():
            continue
        (w,) = set((part.row_counts[mine] * 1024).astype(int).tolist())
        y = entries[mine].astype(object)
        total = y.T @ y
        square = Fraction(int((total * total).sum()))
        most = 2 ** (2 * query.bits.entries + query.bits.weights)
        (u,) = set((part.clipping[mine] * 1024).tolist())
        assert u == int(u)
        assert Fraction(int(u)) ** 2 * square <= Fraction(most) ** 2
        assert u == w or Fraction(int(u) + 2) ** 2 * square > Fraction(most) ** 2
        clipped += u < w
    assert clipped


def test_steps_of_the_model_are_those_of_its_rows(noisy):
    """The same units through the code that makes the records of a fit."""
    measured = questions_of(noisy).measured
    part, tables = measured.step_part, measured.linked
    sizes = np.bincount(measured.sums.owners)
    chunks = list(step_records(tables, Sequences.joined(sizes, measured.free_codes, tables.constants)))
    for name in part.columns:
        records = np.concatenate([c[name][np.arange(c[name].shape[1]) < c[STEPS][:, None]] for c in chunks])
        assert np.array_equal(np.sort(records), np.sort(part.free_codes[name]), equal_nan=True), name
    found = measured_functions(part, cell_functions(part, ["state"]))
    assert found.functions.shape[0] == part.n_rows


def test_two_columns_need_every_step(noisy):
    with pytest.raises(EstimateError, match="'score' and 'sex' together"):
        noisy.mean("score", by="sex")
    for ask in (lambda: noisy.crosstab("sex", "state"), lambda: noisy.correlation("score", "day")):
        with pytest.raises(EstimateError, match=r"release\.units"):
            ask()
    with pytest.raises(ConfigError, match=r"release\.units"):
        noisy.mean("number of rows of patient")
    assert noisy.units.mean("score", by="sex")["f"].value > 0


@pytest.mark.parametrize("seed", slow_after(1, [6, 5]))
def test_the_share_of_a_class_among_all_rows_has_an_answer(seed):
    """Products by class, which the model shrinks as they are noise, are no sign that it is off."""
    records = linked.visits(N, 1_000)
    found = MaxEntropy(epsilon=1.0, delta=1e-6).fit(records, schema=linked.schema(units=N), target="sex", seed=seed)
    low, high = found.share({"sex": "f"}).interval()
    assert low < (records["sex"] == "f").mean() < high


def test_the_stated_noise_is_what_redrawn_noise_moves(noisy):
    asked = questions_of(noisy).estimator(("score",), "table")
    values, there = questions_of(noisy).numbers("score")
    stated = noisy.mean("score", target="table").parts["noise"]
    weights = [asked.calibration.redraw(np.random.default_rng(seed)) for seed in range(200)]
    means = [w @ values / (w @ there) for w in weights]
    assert np.std(means) == pytest.approx(stated, rel=0.2)


def test_units_of_many_rows_are_refused():
    most = 200
    frame = long_units.purchases(100, 1)
    frame = frame.loc[frame.index.repeat(60)].reset_index(drop=True)
    document = {**long_units.DOCUMENT, "unit": {**long_units.DOCUMENT["unit"], "max_rows": most, "units": 100}}
    release = MaxEntropy(epsilon=1.0, delta=1e-4, calibration_rows=100).fit(frame, schema=document, seed=1)
    with pytest.raises(EstimateError, match="fewer rows"):
        LinkedQuestions(release)


LAWS = {
    "visits": (
        linked.visits, lambda n: linked.schema(units=n), 2_000,
        lambda r: {"score": r.mean("score"), "day": r.mean("day"), "a": r.share({"state": "a"}),
                   "median": r.quantile("score"), "variance": r.variance("score")},
        lambda d: {"score": d["score"].mean(), "day": d["day"].mean(), "a": (d["state"] == "a").mean(),
                   "median": d["score"].median(), "variance": d["score"].var()},
    ),
    "purchases": (
        long_units.purchases, long_units.schema, 3_000,
        lambda r: {"amount": r.mean("amount"), "week": r.mean("week"), "web": r.share({"channel": "web"}),
                   "median": r.quantile("amount"), "missing": r.missing("amount")},
        lambda d: {"amount": d["amount"].mean(), "week": d["week"].mean(), "web": (d["channel"] == "web").mean(),
                   "median": d["amount"].median(), "missing": d["amount"].isna().mean()},
    ),
    "frail": (
        frail.visits, frail.schema, 2_000,
        lambda r: {"score": r.mean("score"), "day": r.mean("day"), "dead": r.share({"state": "dead"}),
                   "median": r.quantile("score"), "missing": r.missing("lab"), "lab": r.mean("lab")},
        lambda d: {"score": d["score"].mean(), "day": d["day"].mean(), "dead": (d["state"] == "dead").mean(),
                   "median": d["score"].median(), "missing": d["lab"].isna().mean(), "lab": d["lab"].mean()},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_intervals_cover(law):
    """60 draws and fits, of some no answer: an interval of 95 % covers fewer than 52 of 60 once in 3,000 times."""
    draw, schema, n, ask, truth = LAWS[law]
    true = truth(draw(200_000, 7))
    covered, fits = dict.fromkeys(true, 0), 0
    for seed in range(60):
        release = MaxEntropy(epsilon=1.0, delta=1e-6).fit(draw(n, 300 + seed), schema=schema(n), seed=seed)
        try:
            answers = ask(release)
        except EstimateError:
            continue
        fits += 1
        for name, answer in answers.items():
            low, high = answer.interval()
            covered[name] += low <= true[name] <= high
    assert fits >= (30 if law == "frail" else 54)
    assert min(covered.values()) >= fits - 8, covered


def moved(release, by: float):
    """The release with counts of steps that are off by so many of their noise's deviations, by turns up and down."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 10_000)
    measurements = [
        replace(m, value=m.value + by * m.noise_std * signs[: m.value.size].reshape(m.value.shape))
        if m.name.startswith("steps: ") and not m.symmetric
        else m
        for m in release.measurements
    ]
    return replace(release, measurements=tuple(measurements))


def test_a_model_that_misses_its_measurements_has_no_answer(noisy):
    assert questions_of(noisy).estimator(("score",), "table").calibration.surprise < 0.8
    questions = questions_of(moved(noisy, 8.0))
    with pytest.raises(EstimateError, match=r"agrees with its measurements.*'score'.*release\.units"):
        questions.estimator(("score",), "table")


def test_a_model_that_is_further_off_than_usual_counts_less(noisy, monkeypatch):
    errors = []
    for usual in (0.8, 0.0):
        monkeypatch.setattr("sfumato.inference.linked_rows._USUAL_SURPRISE", usual)
        errors.append(LinkedQuestions(noisy).mean("score", None, "population").std_error)
    assert errors[1] > 1.05 * errors[0]


def test_rows_beyond_the_bound_are_said(noisy):
    found = re.search(r"Of a unit at most 6 rows count: about ([\d.]+) % of the units", noisy.mean("score").rests_on)
    assert 7 < float(found[1]) < 14
    assert "Of a unit" not in noisy.units.mean("score").rests_on


def test_of_units_of_one_row_it_is_said():
    schema = frail.schema(N)
    schema["unit"] = {**schema["unit"], "max_rows": 1}
    release = MaxEntropy(epsilon=3.0, delta=1e-6).fit(frail.visits(N, 1), schema=schema, seed=1)
    assert release.mean("score").rests_on.startswith("Of a unit one row counts. ")


def test_a_number_of_rows_that_was_not_counted_by_itself_has_no_share(noisy, monkeypatch):
    questions = LinkedQuestions(noisy)
    monkeypatch.setattr(type(questions.measured.unit_part), "counts", lambda self, name: None)
    assert questions._row_note == "Of a unit at most 6 rows count. "
