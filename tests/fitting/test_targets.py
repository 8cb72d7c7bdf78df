"""The ε that a target needs: the forecast of an error, and the trade-off curve of a risk, turned round."""

import time

import pandas as pd
import pytest

from fixtures import tables
from sfumato import P3GM, Advantage, EstimateCount, MaxEntropy, TruePositiveRate, create_ledger, fit, read_ledger
from sfumato.errors import BudgetExceededError, ConfigError
from sfumato.fitting.purposes import Facts
from sfumato.privacy.accounting import account_of_fits
from sfumato.privacy.risk import trade_off
from sfumato.schema.schema import read_schema

FULL_EFFORT = True  # costs are held to exact figures

METHOD = MaxEntropy(epsilon=1.0)


def forecast(schema, epsilon, target, rows):
    method = MaxEntropy(epsilon=epsilon)
    plan = method.plan(schema, target=target, n_public=rows)
    return method.one_way_error(plan, Facts(schema, target, rows))


def test_the_schema_may_be_a_path(tmp_path):
    tables.schema().save(tmp_path / "s.yaml")
    found, expected = (METHOD.epsilon_for(s, target_error=0.01) for s in (tmp_path / "s.yaml", tables.schema()))
    assert found == expected
    with pytest.raises(ConfigError, match="schema"):
        METHOD.epsilon_for(5, target_error=0.01)


@pytest.mark.parametrize("error", [0.02, 0.001])
@pytest.mark.parametrize("target", [None, "income"])
def test_the_forecast_at_that_epsilon_is_the_error(error, target):
    epsilon = METHOD.epsilon_for(tables.schema(), target_error=error, target=target, n_public=20_000)
    got = forecast(tables.schema(), epsilon, target, 20_000)
    assert 0.98 * error < got <= error


def test_images():
    epsilon = METHOD.epsilon_for(tables.image_schema(), target_error=0.01, n_public=2_000)
    assert 0.0098 < forecast(tables.image_schema(), epsilon, None, 2_000) <= 0.01


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_it_inverts_the_forecast(epsilon):
    error = forecast(tables.schema(), epsilon, None, 20_000)
    start = time.process_time()
    found = METHOD.epsilon_for(tables.schema(), target_error=error, n_public=20_000)
    assert time.process_time() - start < 30
    assert epsilon <= found < 1.02 * epsilon


def test_the_printed_figure_is_this_one():
    error = forecast(tables.schema(), 1.0, "income", 20_000)
    stage = METHOD.describe_plan(tables.schema(), target="income", n_public=20_000)["stages"][0]
    assert f"±{error:.2g}" in stage["forecast"]


def test_an_easy_target_needs_little():
    assert METHOD.epsilon_for(tables.schema(), target_error=0.9, n_public=10**7) == 0.01


@pytest.mark.parametrize("error", [0, 1, -0.1, float("nan"), "0.1", None])
def test_no_error(error):
    with pytest.raises(ConfigError, match="target_error"):
        METHOD.epsilon_for(tables.schema(), target_error=error)


def test_out_of_reach():
    with pytest.raises(ConfigError, match="more rows"):
        METHOD.epsilon_for(tables.schema(), target_error=1e-6)


def test_a_bought_number_of_rows():
    with pytest.raises(ConfigError, match="declared"):
        METHOD.epsilon_for(tables.schema(), target_error=0.01, n_public=EstimateCount())


@pytest.mark.parametrize(
    "risk", [Advantage(0.1), Advantage(0.01), TruePositiveRate(0.1), TruePositiveRate(0.6, fpr=0.01)]
)
def test_the_plan_at_that_epsilon_keeps_the_risk(risk):
    method = METHOD.at_risk(risk, tables.schema(), n_public=20_000)
    figure = risk.of(trade_off(method.plan(tables.schema(), n_public=20_000)))
    assert 0.998 * risk.most < figure <= risk.most


def test_samples_and_a_small_risk_take_seconds():
    began = time.process_time()
    method = P3GM(epsilon=1.0).at_risk(Advantage(0.02), tables.schema(), n_public=20_000)
    figure = trade_off(method.plan(tables.schema(), n_public=20_000)).advantage
    assert 0.99 * 0.02 < figure <= 0.02
    assert time.process_time() - began < 60


def test_a_bought_number_of_rows_needs_a_delta():
    with pytest.raises(ConfigError, match="delta"):
        METHOD.at_risk(Advantage(0.1), tables.schema(), n_public=EstimateCount())
    assert MaxEntropy(epsilon=1.0, delta=1e-6).at_risk(Advantage(0.1), tables.schema(), n_public=EstimateCount())


def test_what_nobody_can_keep_is_refused():
    with pytest.raises(ConfigError, match="Allow more risk"):
        MaxEntropy(epsilon=1.0, delta=4e-5).at_risk(Advantage(1e-6), tables.schema(), n_public=20_000)
    with pytest.raises(ConfigError, match=r"Advantage\(0.1\)"):
        METHOD.at_risk(0.1, tables.schema(), n_public=20_000)


def test_a_fit_takes_a_risk_in_place_of_an_epsilon():
    frame, schema = tables.frame(400), tables.schema()
    release = fit(frame, schema, risk=Advantage(0.2), delta=1e-6, n_public=400)
    assert 0.199 < release.certificate.advantage() <= 0.2
    assert release.certificate.risk(0.05) > 0.05
    with pytest.raises(ConfigError, match="either risk or epsilon"):
        fit(frame, schema, risk=Advantage(0.2), epsilon=1.0, n_public=400)


@pytest.mark.parametrize("method", [MaxEntropy(epsilon=1.0, delta=1e-6), P3GM(epsilon=1.0, delta=1e-6)])
def test_releases_of_the_same_people_share_a_budget(method):
    """Their account together is just below; a ledger of that budget takes all of them, and no more."""
    one = method.for_releases(5, tables.schema(), n_public=20_000)
    plan = one.plan(tables.schema(), n_public=20_000)
    together = account_of_fits([plan] * 5, 1e-6, plan.neighbours)
    assert 0.995 < together.epsilon <= 1.0
    assert one.epsilon < 0.5


def test_a_ledger_pays_for_all_of_them(tmp_path):
    schema, frame = {"columns": {"age": (0, 99)}, "rows": 400}, pd.DataFrame({"age": range(400)}) % 100
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    one = method.for_releases(3, read_schema(schema))
    ledger = tmp_path / "l"
    create_ledger(ledger, epsilon=1.0, delta=1e-6)
    assert read_ledger(ledger).further() is None
    for more in (2, 1, 0):
        one.fit(frame, schema=schema, ledger=ledger)
        assert read_ledger(ledger).further() == more
    with pytest.raises(BudgetExceededError):
        one.fit(frame, schema=schema, ledger=ledger)


@pytest.mark.parametrize("releases", [1, 0, 2.5, "5"])
def test_numbers_of_releases_that_are_none(releases):
    with pytest.raises(ConfigError, match="releases"):
        METHOD.for_releases(releases, tables.schema(), n_public=20_000)


def test_many_releases_of_little():
    with pytest.raises(ConfigError, match="fewer releases"):
        MaxEntropy(epsilon=0.002, delta=1e-6).for_releases(1_000, tables.schema(), n_public=20_000)
