"""Findings verified on the records: agreement, its error rates, the charge, refusals before it."""

import json

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, Schema, create_ledger, read_ledger, verify_finding
from sfumato.cli.app import main
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import BudgetExceededError, ConfigError, EstimateError
from sfumato.privacy.ledger import Ledger
from sfumato.records.private import PrivateData

N = 6_000
SCHEMA = Schema(
    columns={
        "x": Integer(lower=0, upper=50),
        "z": Categorical(categories=("a", "b")),
        "y": Continuous(lower=-100, upper=200, resolution=0.1),
        "w": Categorical(categories=("no", "yes")),
    },
    rows=N,
)
FORMULA = "y ~ x + C(z)"


def table(slope=1.0, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 51, N), rng.choice(["a", "b"], N, p=[0.6, 0.4])
    y = slope * x + rng.normal(0, 20, N)
    w = np.where(rng.random(N) < 1 / (1 + np.exp(1 - 0.05 * x)), "yes", "no")
    return pd.DataFrame({"x": x, "z": z, "y": y.clip(-100, 200).round(1), "w": w})


@pytest.fixture(scope="module")
def release():
    return MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=3_000).fit(table(), schema=SCHEMA, seed=1)


def test_a_strong_finding_is_agreed_to(release):
    answer = verify_finding(release, table(), FORMULA, "x", epsilon=0.3, seed=0)
    assert answer.agrees
    assert answer.says == "above 0"
    assert answer.false_yes < 0.1
    assert answer.false_no < 1e-6
    assert not answer.private
    assert "NOT PRIVATE" in answer.summary()


def test_what_the_records_do_not_show_is_not_agreed_to(release):
    for slope in (0.0, -1.0):
        answer = verify_finding(release, table(slope), FORMULA, "x", epsilon=1.0, seed=0)
        assert not answer.agrees


def test_a_coefficient_that_is_nothing_is_agreed_to_be_nothing(release):
    answer = verify_finding(release, table(), FORMULA, "C(z)[T.b]", epsilon=1.0, seed=0)
    assert answer.says == "not significant"
    assert answer.agrees


def test_logistic_regressions_are_verified_too(release):
    answer = verify_finding(release, table(), "w ~ x", "x", epsilon=0.5, family="logit", seed=0)
    assert answer.agrees
    assert answer.says == "above 0"


def test_the_noise_is_that_of_the_answer(release):
    """Over seeds the coefficient misses by as much as is said: two thirds, and three halves, would be rejected."""
    from unittest import mock

    from sfumato import verification

    missed, stds = [], []

    def recording(fit, term, value, noise_std, budget, *, private):
        missed.append(value)
        stds.append(noise_std)
        return answer(fit, term, value, noise_std, budget, private=private)

    answer, data = verification._answer, table()
    with mock.patch.object(verification, "_answer", recording):
        for seed in range(40):
            verify_finding(release, data, FORMULA, "x", epsilon=0.5, seed=seed)
    ratio = np.std(missed) / stds[0]
    assert 0.72 < ratio < 1.4


@pytest.mark.parametrize("slope", [0.1, 0.2])
def test_near_where_it_is_asked_the_sum_is_what_the_records_miss(release, slope):
    """With next to no noise, the coefficient that is asked at and what is missed are least squares of the records."""
    import statsmodels.formula.api as smf

    from sfumato import verification
    from sfumato.measurements.cells import BaseCells

    data = table(slope, seed=3)
    fit = release.ols(FORMULA)
    query, scale = verification._influence(release, fit, "x", verification.LINEAR)
    codes = {name: kind.code(data[name].to_numpy(), missing=()) for name, kind in SCHEMA.columns.items()}
    total = query.scores(BaseCells(codes))[:, 0].sum() / verification.ONE * scale
    first = fit.references["z"]
    real = smf.ols(f"y ~ x + C(z, Treatment('{first}'))", data).fit()
    assert abs(verification._where(fit, "x")[1] + total - real.params["x"]) < 1.5 * real.bse["x"]


def test_it_is_charged_before_a_record_is_read(release, tmp_path, monkeypatch):
    ledger = tmp_path / "people.ledger"
    create_ledger(ledger, epsilon=0.5, delta=1e-4)
    verify_finding(release, table(), FORMULA, "x", epsilon=0.3, ledger=ledger)
    assert [fit.method for fit in read_ledger(ledger).fits] == ["verify-finding"]
    monkeypatch.setattr(PrivateData, "coded", lambda _: pytest.fail("a record was read"))
    with pytest.raises(BudgetExceededError):
        verify_finding(release, table(), FORMULA, "x", epsilon=0.6, ledger=ledger)
    assert len(read_ledger(ledger).fits) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"term": "nowhere"}, ConfigError, "one of the terms 'Intercept', 'x'"),
        ({"family": "gamma"}, ConfigError, "family"),
        ({"formula": "y ~ x * C(z)"}, EstimateError, "were not measured together"),
        ({"epsilon": 0.0}, ConfigError, "epsilon"),
        ({"formula": "y ~ nowhere"}, ConfigError, "got 'nowhere'"),
    ],
)
def test_what_cannot_be_verified_is_refused_before_any_charge(release, monkeypatch, arguments, error, message):
    monkeypatch.setattr(Ledger, "charge", lambda *_: pytest.fail("charged"))
    call = {"formula": FORMULA, "term": "x", "epsilon": 0.1, **arguments}
    with pytest.raises(error, match=message):
        verify_finding(release, table(), call.pop("formula"), call.pop("term"), **call)


def test_the_command(release, tmp_path, capsys):
    release.save(tmp_path / "r.sfm")
    table().to_csv(tmp_path / "t.csv", index=False)
    arguments = [str(tmp_path / "t.csv"), str(tmp_path / "r.sfm"), FORMULA, "x", "--epsilon", "0.3"]
    with pytest.raises(SystemExit, match="0"):
        main(["evaluate", "finding", *arguments, "--seed", "0", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["agrees"] is True
    assert answer["says"] == "above 0"
    assert 0 <= answer["false_no"] <= 1
    assert answer["disagreements"] == []
