"""Weighted statistics: in whole numbers, as many rows as a weight says, and fits of them."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases import table_grid, table_moments, weighted_moments, weighted_rows, with_a_constant
from harness.privacy import FakeRecords, contribution, join
from sfumato import DPMix, MaxEntropy, NonPrivate, Schema, Weight, load
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import ConfigError, EstimateError, ReleaseError
from sfumato.lenses.weights import WEIGHT_BITS, whole_weights
from sfumato.mechanisms.contributions import MOST_ROWS
from sfumato.methods.tables.cell_counts import CELL_STEP, ENDING_STEP, RUN_STEP, VALUE_STEP, CellCounts
from sfumato.methods.tables.feature_moments import MomentBits, PairCounts, TableMoments
from sfumato.methods.tables.weighted import WeightedCounts, weight_bits
from sfumato.records.engine import ROWS_AT_ONCE, reduce


@given(st.floats())
def test_any_weight_is_a_whole_number_within_its_bound(weight):
    [k] = whole_weights({"w": np.array([weight])}, "w")
    assert 0 <= k <= 1 << WEIGHT_BITS
    if 0 <= weight <= 1:
        assert abs(k / 2**WEIGHT_BITS - weight) <= 2.0 ** -(WEIGHT_BITS + 1)


@pytest.mark.parametrize("record", weighted_rows(3))
def test_a_counted_record_is_as_long_as_its_weight_says_exactly(record):
    statistic = WeightedCounts(table_grid(), column="w")
    total = statistic.zero()
    statistic.add(total, record)
    k = int(whole_weights(record, "w")[0])
    norm = sum(Fraction(n) ** 2 * Fraction(step) ** 2 for n, step in zip(total, statistic.step, strict=True))
    columns, valued = len(statistic.grid.columns), len(statistic.valued)
    assert valued
    squares = columns * (Fraction(RUN_STEP) ** 2 + Fraction(CELL_STEP) ** 2)
    squares += valued * (Fraction(VALUE_STEP) ** 2 + Fraction(ENDING_STEP) ** 2)
    assert norm == Fraction(k, 1 << WEIGHT_BITS) ** 2 * squares


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("clip_norm", [0.3, 1.0, 40.0])
def test_no_product_is_longer_than_its_clip_exactly(clip_norm, constant):
    statistic = weighted_moments(clip_norm, "member")
    statistic = with_a_constant(statistic) if constant else statistic
    rows = join(weighted_rows(30))
    cells = statistic.cells(rows)
    most = 1 << (2 * statistic.bits.entries + statistic.bits.weights)
    for i, v in enumerate(statistic.counted(rows, statistic.clipping(cells))):
        y = np.concatenate([whole[column[i]] for whole, column in zip(statistic.whole, cells, strict=True)])
        assert v == int(v) >= 0
        assert int(v) * sum(int(entry) ** 2 for entry in y) <= most


@pytest.mark.parametrize("length", [0.2, 1.0, 3.0, 40.0])
def test_what_leads_is_clipped_by_itself_and_then_weighted_exactly(length):
    """v = ⌊(g·k + 2^19)/2^20⌋ of g of z alone, in the matrix of the record's class."""
    statistic = weighted_moments(1.0, "member", length=length)
    leading, bits = statistic.leading, statistic.bits
    for record in weighted_rows(30):
        total, cells = statistic.zero(), statistic.cells(record)
        statistic.add(total, record)
        own = [statistic._whole(values)[cells[j][0]] for j, values in zip(leading.columns, leading.values, strict=True)]
        z = [int(entry) for entry in np.concatenate(own)]
        squares = sum(entry**2 for entry in z)
        g = min(1 << bits.weights, (1 << 2 * bits.entries + bits.weights) // max(squares, 1))
        v = (g * int(whole_weights(record, "w")[0]) + (1 << WEIGHT_BITS - 1)) >> WEIGHT_BITS
        assert v * squares <= 1 << (2 * bits.entries + bits.weights)
        expected = np.zeros((3, statistic.dimension, statistic.dimension))
        expected[record["member"][0]][: len(z), : len(z)] = [[v * a * b for b in z] for a in z]
        np.testing.assert_array_equal(total[1:], expected)


@given(n=st.integers(1, MOST_ROWS))
def test_sums_fit_into_64_bits(n):
    bits = weight_bits(n)
    product = 2 * bits.entries + bits.weights
    assert product + ROWS_AT_ONCE.bit_length() - 1 <= 53
    assert 8 * n * 2**product <= 2**63
    assert WEIGHT_BITS + (MOST_ROWS - 1).bit_length() < 63
    assert bits.weights + WEIGHT_BITS <= 53
    assert bits.weights >= 6


def test_rows_of_the_largest_weight_are_unweighted_rows():
    rows = join([row for row in weighted_rows(20) if row["w"][0] == 1.0])
    plain = {name: column for name, column in rows.items() if name != "w"}
    weighted, counted = WeightedCounts(table_grid(), column="w"), CellCounts(table_grid())
    for ours, theirs in zip(
        weighted.split(reduce(weighted, FakeRecords([rows])).open_in_mechanism()),
        counted.split(reduce(counted, FakeRecords([plain])).open_in_mechanism()),
        strict=True,
    ):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    moments = weighted_moments(1.0, "member")
    same = TableMoments(moments.grid, moments.vectors, 1.0, moments.leading, bits=moments.bits)
    ours, theirs = (reduce(s, FakeRecords([rows])).whole_in_mechanism() for s in (moments, same))
    np.testing.assert_array_equal(ours, theirs)


def test_two_rows_of_half_the_weight_are_one():
    for row in weighted_rows(20):
        whole, half = {**row, "w": np.ones(1)}, {**row, "w": np.full(1, 0.5)}
        statistic = WeightedCounts(table_grid(), column="w")
        np.testing.assert_array_equal(2 * contribution(statistic, half), contribution(statistic, whole))


@pytest.mark.parametrize("constant", [False, True])
def test_counts_of_pairs_have_the_bits_of_products(constant):
    statistic, rows = weighted_moments(0.8), join(weighted_rows(60))
    statistic = with_a_constant(statistic) if constant else statistic
    pairs = PairCounts.of(statistic)
    counted, multiplied = pairs.zero(), statistic.zero()
    pairs.add(counted, rows)
    statistic.add(multiplied, rows)
    np.testing.assert_array_equal(pairs.expanded(counted.astype(np.int64)), multiplied.astype(np.int64))


def test_bits_of_unweighted_moments_stay():
    assert table_moments(1.0).bits == MomentBits(15, 6)
    assert weight_bits(1_000) == MomentBits(12, 12)


# --- fits

N, BOUND = 3_000, 8.0


def sample(n=N, seed=0):
    """Rows of two groups, of which one is drawn three times too often; weights put that right."""
    rng = np.random.default_rng(seed)
    b = rng.random(n) < 0.6
    x = rng.normal(size=n) + 1.5 * b
    return pd.DataFrame({"x": np.clip(x, -4, 6), "g": np.where(b, "b", "a"), "w": np.where(b, 2.0, 6.0)})


def weighted_schema(**weight):
    columns = {
        "x": Continuous(lower=-4, upper=6), "g": Categorical(categories=("a", "b")),
        "w": Continuous(lower=0, upper=BOUND),
    }  # fmt: skip
    return Schema(columns=columns, rows=N, weight=Weight(column="w", **weight))


@pytest.fixture(scope="module")
def exact():
    return MaxEntropy(epsilon=NonPrivate(), calibration_rows=5_000).fit(sample(), schema=weighted_schema())


@pytest.fixture(scope="module")
def noisy():
    return MaxEntropy(epsilon=3.0).fit(sample(), schema=weighted_schema())


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize("target", [None, "g"])
def test_without_noise_answers_are_those_of_the_weighted_table(target):
    frame = sample()
    release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=weighted_schema(), target=target)
    weights, b = frame.w.to_numpy(), (frame.g == "b").to_numpy()
    assert release.count(target="table").value == pytest.approx(weights.sum(), rel=5e-4)
    assert release.count({"g": "b"}, target="table").value == pytest.approx(weights[b].sum(), rel=5e-4)
    assert release.share({"g": "b"}, target="table").value == pytest.approx(np.average(b, weights=weights), abs=5e-4)
    assert release.mean("x", target="table").value == pytest.approx(np.average(frame.x, weights=weights), abs=0.03)
    table = release.mean("x", by="g", target="table")
    assert table["b"].value == pytest.approx(frame.x[b].mean(), abs=0.03)


def test_samples_are_rows_of_the_weighted_population(exact):
    rows, frame = exact.sample(20_000, seed=1), sample()
    assert list(rows.columns) == ["x", "g"]
    assert (rows.g == "b").mean() == pytest.approx(np.average(frame.g == "b", weights=frame.w), abs=0.02)
    assert abs((frame.g == "b").mean() - (rows.g == "b").mean()) > 0.2


def test_errors_of_drawing_are_those_of_linearisation(exact):
    """The variance of Hansen and Hurwitz: Σ w²z² less what is common to all, z the influence values."""
    frame = sample()
    w, b, n = frame.w.to_numpy(), (frame.g == "b").to_numpy().astype(float), len(frame)
    for asked, z in (
        (exact.count({"g": "b"}, target="population"), b),
        (exact.count(target="population"), np.ones(n)),
        (exact.share({"g": "b"}), (b - np.average(b, weights=w)) / w.sum()),
        (exact.mean("x"), (frame.x - np.average(frame.x, weights=w)) / w.sum()),
    ):
        expected = np.sqrt(((w * z) ** 2).sum() - (w * z).sum() ** 2 / n)
        assert asked.parts["sampling"] == pytest.approx(expected, rel=0.06)


@pytest.mark.slow
def test_a_public_total_is_exact_and_makes_totals_surer():
    frame = sample()
    total = float(frame.w.sum())
    known = MaxEntropy(epsilon=3.0).fit(frame, schema=weighted_schema(total=total))
    count = known.count()
    assert count.value == pytest.approx(total)
    assert count.std_error < 1e-6 * total
    b = float(frame.w[frame.g == "b"].sum())
    asked = known.count({"g": "b"})
    assert abs(asked.value - b) < 4.5 * asked.std_error


def test_a_total_that_measurements_contradict_is_refused():
    release = MaxEntropy(epsilon=3.0).fit(sample(), schema=weighted_schema(total=2.0 * sample().w.sum()))
    with pytest.raises(EstimateError, match="far from it"):
        release.mean("x")


def test_noise_is_in_the_unit_of_weights(noisy):
    """A release states, in weights, the noise that was drawn for parts of the bound."""
    first = noisy.measurements[0]
    sigma = noisy.certificate.events[0].noise_multiplier
    columns = 3  # the weight is the third
    assert first.noise_std == pytest.approx(sigma * np.sqrt(columns * (RUN_STEP**2 + CELL_STEP**2)) / RUN_STEP * BOUND)
    truth = sample().w.sum()
    total = noisy.count()
    assert abs(total.value - truth) < 5 * total.std_error < 0.2 * truth


def test_a_release_comes_back_and_says_that_it_is_weighted(noisy, tmp_path):
    noisy.save(tmp_path / "r.sfm")
    again = load(tmp_path / "r.sfm")
    assert again.certificate.weight.column == "w"
    assert again.certificate.to_dict()["weight"] == {"column": "w", "upper": BOUND}
    assert again.mean("x").value == noisy.mean("x").value
    assert "Rows weighted by 'w'." in again.mean("x").rests_on
    assert any("fact of that row" in said for said in again.certificate.assumptions)
    noisy.report(tmp_path / "page.html")
    assert "Rows are weighted by" in (tmp_path / "page.html").read_text()


def test_a_certificate_of_other_weights_is_refused(noisy):
    import dataclasses

    other = dataclasses.replace(noisy, certificate=dataclasses.replace(noisy.certificate, weight=None))
    with pytest.raises(ReleaseError, match="weights that the schema names"):
        other.check()


def test_answers_replicates_and_tables_leave_the_weight_out(noisy):
    from sfumato.publish.noisy_tables import noisy_tables

    answers = noisy.answers()
    assert not {"w"} & {*answers["first"], *answers["second"]}
    for table in noisy.replicates(2, n=50, seed=1):
        assert list(table.columns) == ["x", "g"]
    assert set(noisy_tables(noisy).counts["column"].to_pylist()) == {"x", "g"}
    with pytest.raises(ConfigError, match="'w', the weight"):
        noisy.mean("w")
    with pytest.raises(ConfigError):
        noisy.sample(3, given={"w": 2.0})


@pytest.mark.slow
def test_rules_units_and_bought_rows_beside_weights():
    frame = sample(600).assign(
        first=lambda f: np.arange(len(f)) % 7,
        last=lambda f: np.arange(len(f)) % 7 + 2,
        person=lambda f: np.arange(len(f)) // 2,
    )
    document = weighted_schema().to_dict()
    document["columns"] |= {
        "first": {"kind": "integer", "lower": 0, "upper": 9}, "last": {"kind": "integer", "lower": 0, "upper": 9},
        "person": {"kind": "identifier"},
    }  # fmt: skip
    document |= {"rules": [{"order": ["first", "last"]}], "unit": {"column": "person", "max_rows": 2}, "rows": 600}
    release = MaxEntropy(epsilon=5.0).fit(frame, schema=document)
    rows = release.sample(200, seed=1)
    assert (rows["first"] <= rows["last"]).all()
    assert release.count().value == pytest.approx(frame.w.sum(), rel=0.5)
    open_x = {
        **weighted_schema().to_dict(),
        "columns": {**weighted_schema().to_dict()["columns"], "x": {"discover": True, "kind": "continuous"}},
    }
    found = MaxEntropy(epsilon=5.0).fit(sample(), schema=open_x)
    assert list(found.sample(5).columns) == ["x", "g"]


def test_odd_weights_fit():
    """No row, no weight, all of it missing: never an error that tells of a record."""
    for frame in (sample(0), sample(40).assign(w=0.0), sample(40).assign(w=np.nan), sample(40).assign(w=-1.0)):
        release = MaxEntropy(epsilon=1.0, calibration_rows=50).fit(frame, schema=weighted_schema())
        assert len(release.sample(3)) == 3


def test_other_methods_refuse_before_anything_is_spent():
    columns = {"x": Integer(lower=0, upper=9), "w": Continuous(lower=0, upper=2)}
    frame = pd.DataFrame({"x": [1, 2], "w": [1.0, 1.0]})
    with pytest.raises(ConfigError, match="without weight for the method dpmix, got weights in 'w'"):
        DPMix(epsilon=1.0).fit(frame, schema=Schema(columns=columns, weight="w", rows=2))


@pytest.mark.parametrize(
    ("bound", "total", "mean", "counted"),
    [(4, None, "1", 6_400), (40, None, "1", 640), (400, None, "100", 6_400), (0.8, None, "0.2", 6_400),
     (40, 64_000, "2.5", 1_600), (4, 102_400, "4", 25_600)],
)  # fmt: skip
def test_a_forecast_says_which_weights_it_assumes(bound, total, mean, counted):
    """Rows whose weights average a part of the bound are as few rows of the largest weight, beside one noise."""
    columns = {"x": (0, 1), "z": ["a", "b"], "w": {"kind": "continuous", "lower": 0, "upper": bound}}
    questions = [{"ols": "x ~ z"}, {"table": ["z", "x"]}]

    def forecast(**facts) -> tuple[str, str]:
        described = MaxEntropy(epsilon=1.0, delta=1e-6).description(Schema.from_dict({"columns": columns, **facts}))
        return described.stages[0].forecast, described.stages[-1].forecast

    weight = {"column": "w", **({} if total is None else {"total": total})}
    share, questions_said = forecast(rows=25_600, weight=weight, questions=questions)
    assumed = f", assuming that weights average {mean}, of at most {bound}"
    assert share.endswith(assumed)
    assert questions_said.endswith(assumed)
    plain, _ = forecast(rows=counted, questions=questions)
    assert share.removesuffix(assumed) == plain
    assert "assuming" not in plain
    alike = max(1, round(counted**2 / 25_600))
    own = forecast(rows=alike, questions=questions)[1].split(";")[0].partition("(")[0]
    assert own == questions_said.split(";")[0].partition("(")[0]
