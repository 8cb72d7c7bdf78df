"""Scores of linked rows: those of a plain computation by pandas, and what they tell apart."""

import numpy as np
import pandas as pd
import pytest

from fixtures.command_line import call
from fixtures.linked import apart, figures, in_order, schema, visits
from sfumato import MaxEntropy, NonPrivate
from sfumato.errors import ConfigError, DataError
from sfumato.evaluate import evaluate
from sfumato.report import write_report

__all__ = ["call"]

N = 800


@pytest.fixture(scope="module")
def frame():
    return visits(N)


@pytest.fixture(scope="module")
def other():
    """The same law, less of it: other patients, who are seen more rarely and at random."""
    found = visits(N, seed=1)
    found["day"] = np.random.default_rng(0).integers(0, 1500, len(found))
    return found


def scores_of(real, synthetic):
    return evaluate(real, synthetic, schema=schema(units=N))


def test_figures_are_those_of_pandas(frame, other):
    found = scores_of(frame, other)
    real, made = figures(in_order(frame)), figures(in_order(other))
    linked = found["linked"]
    assert found["private"] is False
    assert found["units"] == {"real": N, "synthetic": N}
    assert linked["rows_a_unit"]["real"] == pytest.approx(real["rows"])
    assert linked["numbers"]["score"]["before"]["real"] == pytest.approx(real["correlation"])
    assert linked["numbers"]["score"]["before"]["synthetic"] == pytest.approx(made["correlation"], abs=0.002)  # ties
    assert linked["gap"]["real"] == pytest.approx(real["gap"])
    assert linked["gap"]["synthetic"] == pytest.approx(made["gap"])
    assert linked["gap"]["tvd"] > 0.3
    assert linked["labels"]["state"] == pytest.approx(apart(real, made), abs=0.002)
    assert linked["gap"]["back"] == 0
    assert linked["constants_vary"] == {"real": 0, "synthetic": 0}


def test_the_part_between_units_is_that_of_analysis_of_variance(frame):
    between = scores_of(frame, frame)["linked"]["numbers"]["score"]["between"]
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    few = in_order(frame)
    groups = few.groupby("patient")["score"]
    table = anova_lm(smf.ols("score ~ C(patient)", few[few["patient"] < 200]).fit())
    mean_squares = table["mean_sq"]
    sizes = groups.size()
    # of all patients, by pandas alone
    within = float(((few["score"] - groups.transform("mean")) ** 2).sum()) / (len(few) - N)
    outer = float((sizes * (groups.mean() - few["score"].mean()) ** 2).sum()) / (N - 1)
    typical = (len(few) - (sizes**2).sum() / len(few)) / (N - 1)
    assert between["real"] == pytest.approx((outer - within) / (outer + (typical - 1) * within))
    assert mean_squares["C(patient)"] > mean_squares["Residual"]
    assert between["real"] == between["synthetic"]


def test_a_table_beside_itself_has_no_distance_in_any_order_of_rows(frame):
    found = scores_of(frame, frame.sample(frac=1, random_state=3))
    linked = found["linked"]
    assert found["fidelity"]["tvd_1way"] == found["fidelity"]["tvd_2way"] == 0
    assert linked["rows_a_unit"]["tvd"] == linked["gap"]["tvd"] == linked["labels"]["state"] == 0
    assert linked["first_rows"] == {"tvd_1way": 0, "tvd_2way": 0}


def test_rows_whose_persons_were_shuffled_are_told_apart(frame):
    """What a release of single rows loses: every row is right, no person is."""
    loose = frame.assign(patient=np.random.default_rng(0).permutation(frame["patient"].to_numpy()))
    found = scores_of(frame, loose)
    assert found["fidelity"]["tvd_2way"] == 0
    linked = found["linked"]
    assert abs(linked["numbers"]["score"]["before"]["synthetic"]) < 0.1
    assert linked["numbers"]["score"]["between"]["synthetic"] < 0.1
    assert linked["labels"]["state"] > 0.2
    assert linked["constants_vary"]["synthetic"] > 0.7


def test_units_of_one_row_and_missing_numbers(frame):
    first = in_order(frame).groupby("patient").head(1)
    linked = scores_of(frame, first)["linked"]
    assert linked["gap"] is None
    assert linked["labels"] == {}
    assert linked["numbers"]["score"]["before"] is None
    with pytest.raises(DataError, match="got none with a unit"):
        scores_of(frame, frame.assign(patient=None))
    with pytest.raises(ConfigError, match="no test rows beside linked rows"):
        evaluate(frame, frame, schema=schema(units=N), test=frame)


@pytest.mark.slow
def test_command_and_pages(frame, tmp_path, call):
    release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=schema(units=N))
    release.save(tmp_path / "r.sfm")
    frame.to_csv(tmp_path / "real.csv", index=False)
    done = call("evaluate", "table", tmp_path / "real.csv", tmp_path / "r.sfm")
    assert done.code == 0, done.err
    assert "score: correlation with the row before" in done.out
    assert "state: row before and row, total variation" in done.out
    write_report(release, tmp_path / "public.html")
    write_report(release, tmp_path / "private.html", real=frame)
    public, private = ((tmp_path / f"{name}.html").read_text() for name in ("public", "private"))
    for page in (public, private):
        assert "Linked rows" in page
        assert "Synthetic unit 10, " in page
        assert len(page) < 1 << 20
    assert "Real unit" not in public
    assert "Real unit 10, " in private
    assert "NOT PRIVATE" in private


def test_dates_and_no_order():
    from sfumato import Schema

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": np.repeat(np.arange(100), 3), "x": rng.random(300), "on": "2024-01-05"})
    columns = {
        "who": "identifier",
        "x": {"kind": "continuous", "lower": 0, "upper": 1},
        "on": {"kind": "datetime", "lower": "2024-01-01", "upper": "2024-12-31"},
    }
    unit = {"column": "who", "max_rows": 3, "units": 100}
    dated = Schema.from_dict({"unit": {**unit, "order": "on"}, "columns": columns})
    assert evaluate(frame, frame, schema=dated)["linked"]["gap"]["real"] == 0
    shared = Schema.from_dict({"unit": {**unit, "constant": ["on"]}, "columns": columns})
    assert evaluate(frame, frame, schema=shared)["linked"]["gap"] is None


@pytest.mark.slow
def test_two_tables(tmp_path):
    """Persons without visits count: in the number of rows, and as a first row that is missing."""
    from fixtures import two_tables

    real = two_tables.tables(600)
    release = MaxEntropy(epsilon=NonPrivate()).fit(real, schema=two_tables.schema(600))
    found = evaluate(real, release.sample(600, seed=0), schema=release.schema)["linked"]
    both = found["rows_a_unit"]
    assert both["real"] == pytest.approx(both["synthetic"], abs=0.3)
    assert both["tvd"] < 0.1
    assert found["first_rows"]["tvd_1way"] < 0.1
    same = evaluate(real, real, schema=release.schema)["linked"]
    assert same["rows_a_unit"]["tvd"] == same["first_rows"]["tvd_2way"] == 0
    write_report(release, tmp_path / "two.html", real=real)
    assert "Real unit 1, " in (tmp_path / "two.html").read_text()
