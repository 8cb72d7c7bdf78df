"""The ε that a risk needs: the trade-off curve, turned round."""

import time

import pytest

from fixtures import tables
from sfumato import P3GM, Advantage, BuyCount, MaxEntropy, TruePositiveRate, fit
from sfumato.errors import ConfigError
from sfumato.privacy.risk import trade_off

METHOD = MaxEntropy(epsilon=1.0)


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
        METHOD.at_risk(Advantage(0.1), tables.schema(), n_public=BuyCount())
    assert MaxEntropy(epsilon=1.0, delta=1e-6).at_risk(Advantage(0.1), tables.schema(), n_public=BuyCount())


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
