"""The audit: its bounds, that its attacker gets all there is, that it clears a correct method and catches a bug."""

import json

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from statsmodels.stats.proportion import proportion_confint

from sfumato import DPMix, EstimateCount, IndependentItems, MaxEntropy, NonPrivate
from sfumato.audit import attack, audit
from sfumato.audit.attack import epsilon_above, gaussian_epsilon, proportion_above, proportion_below, shift_above
from sfumato.audit.shadow import Shadow, corners
from sfumato.errors import ConfigError
from sfumato.lenses.chain import plain_schema
from sfumato.mechanisms.mixing import FixedDegreeMixing, SubsetMixing
from sfumato.mechanisms.noise import SeededNoise
from sfumato.methods.tables.cell_counts import CELL_STEP, RUN_STEP
from sfumato.schema.schema import Schema

SCHEMA_TEXT = """\
rows: 1000
columns:
  a: boolean
  b: {kind: integer, lower: 0, upper: 9}
"""
SCHEMA = Schema.from_dict(
    {"rows": 1000, "columns": {"a": {"kind": "boolean"}, "b": {"kind": "integer", "lower": 0, "upper": 9}}}
)
PAIR = Schema.from_dict({"rows": 1000, "columns": {"a": {"kind": "boolean"}, "b": {"kind": "boolean"}}})
MIXED = Schema.from_dict(
    {
        "rows": 500,
        "columns": {
            "grade": {"kind": "ordinal", "categories": ["a", "b", "c"], "nullable": True},
            "day": {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31"},
            "x": {"kind": "continuous", "lower": 0, "upper": 1},
            "label": {"kind": "boolean"},
        },
    }
)


class LittleNoise:
    """The planted bug: three tenths of the noise that was charged."""

    def __init__(self, seed):
        self.inner = SeededNoise(seed)
        self.private, self.silent = False, False

    def gaussian(self, shape, noise_std):
        return 0.3 * self.inner.gaussian(shape, noise_std)

    def rounded_gaussian(self, shape, noise_std, step):
        return np.rint(0.3 * self.inner.rounded_gaussian(shape, noise_std, step)).astype(np.int64)


class TestBounds:
    @pytest.mark.parametrize(("successes", "trials"), [(0, 20), (3, 20), (20, 20), (411, 1000)])
    def test_clopper_pearson(self, successes, trials):
        low, high = proportion_confint(successes, trials, alpha=0.02, method="beta")
        assert proportion_above(successes, trials, 0.01) == pytest.approx(low)
        assert proportion_below(successes, trials, 0.01) == pytest.approx(high)

    def test_from_rates_to_epsilon(self):
        assert epsilon_above(0.5, 0.1, 0.0) == pytest.approx(np.log(5))
        assert epsilon_above(0.9, 0.5, 0.0) == pytest.approx(np.log(5))  # by the other error
        assert epsilon_above(0.1, 0.5, 1e-5) == 0
        assert epsilon_above(0.0, 0.0, 1e-5) == 0
        assert epsilon_above(0.2, 0.1, 0.1) == pytest.approx(0)

    @pytest.mark.parametrize("shift", [0.05, 0.3, 1.0, 3.0])
    def test_gaussian_epsilon_is_that_of_dp_accounting(self, shift):
        accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-3)
        accountant.compose(dp_event.GaussianDpEvent(1 / shift))
        assert gaussian_epsilon(shift, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), abs=2e-3)

    def test_edges(self):
        assert gaussian_epsilon(0.0, 1e-5) == 0
        assert gaussian_epsilon(1e-9, 1e-5) == 0
        assert gaussian_epsilon(60.0, 1e-5) == 100
        assert shift_above(0.2, 0.4) == 0
        assert shift_above(0.5, 0.02275013194817921) == pytest.approx(2.0)


def shadow_of(schema, epsilon=4.0, target=None):
    return attack._shadow(MaxEntropy(epsilon=epsilon), schema, target, None)


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "target"), [(SCHEMA, None), (MIXED, "label")])
def test_the_attacker_gets_all_there_is(schema, target):
    """The log-likelihood ratio is N(±μ²/2, μ²), with μ² at most the sum of 1/σ² of the stages, and near it."""
    shadow = shadow_of(schema, target=target)
    attacker = attack._strongest(shadow, schema)
    most = sum(stage.noise_multiplier**-2 for stage in shadow.plan.stages)
    scores = [
        np.array(
            [attacker.scores(shadow.measure(rows, SeededNoise(100 * side + i)), planted=not side)[0] for i in range(40)]
        )
        for side, rows in enumerate((attacker.present, attacker.absent))
    ]
    spread = 5 * np.sqrt(most / 40)  # five deviations of a mean
    assert abs(scores[0].mean() - most / 2) < spread
    assert abs(scores[1].mean() + most / 2) < spread
    assert scores[0].mean() - scores[1].mean() > 0.3 * most
    assert np.concatenate(scores).std() < 2 * np.sqrt(most)


def test_a_replay_releases_what_was_released():
    shadow: Shadow = shadow_of(SCHEMA)
    canary = corners(SCHEMA)[1]
    released = shadow.measure(canary, SeededNoise(3))
    again = shadow.replay(canary, released)
    for first, second in zip(released, again, strict=True):
        np.testing.assert_array_equal(first.released, second.released)
        np.testing.assert_array_equal(first.exact, second.exact)
    counts = released[0].exact * released[0].unit * shadow.plan.stages[0].noise_multiplier * np.sqrt(2)
    # a run and a cell in each of two columns, in units of the norm of a column's
    assert counts.sum() == pytest.approx(2 * (RUN_STEP + CELL_STEP) / np.hypot(RUN_STEP, CELL_STEP))


def test_images_can_be_audited():
    kinds = {"x": {"kind": "image", "shape": [4, 4]}, "y": {"kind": "categorical", "categories": ["0", "1"]}}
    schema = Schema.from_dict({"rows": 100, "columns": kinds})
    found = audit(MaxEntropy(epsilon=1.0), schema, fits=20, seed=0)
    assert found["holds"]


@pytest.mark.slow
def test_a_correct_method_is_cleared_and_a_bug_is_caught(monkeypatch):
    method = MaxEntropy(epsilon=4.0)
    found = audit(method, PAIR, fits=160, confidence=0.95, seed=0)
    assert json.loads(json.dumps(found)) == found
    assert found["holds"]
    assert found["private"] is True
    assert found["epsilon_certified"] == pytest.approx(4, abs=1e-3)
    monkeypatch.setattr(attack, "SeededNoise", LittleNoise)
    caught = audit(method, PAIR, fits=160, confidence=0.95, seed=0)
    assert not caught["holds"]
    assert caught["epsilon_lower_gaussian"] > 4


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_twenty_audits(epsilon, monkeypatch):
    """Acceptance: no lower bound above the certified ε in 20 audits at 0.999; the planted bug caught in at least 19."""
    method = MaxEntropy(epsilon=epsilon)
    for seed in range(20):
        assert audit(method, PAIR, fits=1_600, seed=seed)["holds"]
    monkeypatch.setattr(attack, "SeededNoise", LittleNoise)
    assert sum(not audit(method, PAIR, fits=1_600, seed=seed)["holds"] for seed in range(20)) >= 19


@pytest.mark.parametrize(
    ("make", "schema", "said"),
    [
        (lambda: MaxEntropy(epsilon=NonPrivate()), SCHEMA, "got one without"),
        (lambda: "max-entropy", SCHEMA, "synthesizer to be a method"),
        (lambda: DPMix(epsilon=1.0, mixture_degree=10, mixing=SubsetMixing()), SCHEMA, "Poisson"),
        (lambda: DPMix(epsilon=1.0, mixture_degree=10, mixing=FixedDegreeMixing()), SCHEMA, "fixed degrees"),
        (
            lambda: MaxEntropy(epsilon=1.0),
            Schema.from_dict(
                {
                    "rows": 9,
                    "unit": {"column": "p", "max_rows": 2},
                    "columns": {"p": {"kind": "identifier"}, "a": {"kind": "boolean"}},
                }
            ),
            "unit is the row",
        ),
        (
            lambda: IndependentItems(epsilon=1.0),
            Schema.from_dict({"rows": 9, "columns": {"s": {"kind": "set", "items": ["a", "b"], "max_length": 2}}}),
            "Column .s.: .*sets of items",
        ),
    ],
)
def test_what_cannot_be_audited(make, schema, said):
    with pytest.raises(ConfigError, match=said):
        audit(make(), schema, fits=20)


def test_rows_are_declared():
    schema = Schema.from_dict({"columns": {"a": {"kind": "boolean"}}})
    for given in (None, EstimateCount()):
        with pytest.raises(ConfigError, match="declared number of rows"):
            audit(MaxEntropy(epsilon=1.0, delta=1e-5), schema, n_public=given, fits=20)


def test_arguments():
    for wrong in ({"fits": 5}, {"confidence": 1.0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            audit(MaxEntropy(epsilon=1.0), SCHEMA, **wrong)


class TestCommand:
    @pytest.fixture
    def schema(self, tmp_path):
        path = tmp_path / "schema.yaml"
        path.write_text(SCHEMA_TEXT, encoding="utf-8")
        return path

    def test_json_and_table(self, schema, call):
        found = call("evaluate", "method", "--schema", schema, "--epsilon", 1, "--fits", 20, "--json").json
        assert found["holds"]
        assert found["fits"] == 20
        result = call("evaluate", "method", "--schema", schema, "--epsilon", 1, "--fits", 20)
        assert (result.code, "certified, at most" in result.out) == (0, True)

    @pytest.mark.slow
    def test_a_method_that_samples(self, schema, call):
        found = call(
            "evaluate",
            "method",
            "--schema",
            schema,
            "--epsilon",
            4,
            "--method",
            "dpmix",
            "--rows",
            60,
            "--fits",
            20,
            "--json",
        )
        assert found.json["holds"]

    def test_a_broken_bound_fails(self, schema, call, monkeypatch):
        monkeypatch.setattr(attack, "SecureNoise", lambda: LittleNoise(0))
        monkeypatch.setattr(attack, "_bounds", lambda *_: {"epsilon_lower": 9.0, "epsilon_lower_gaussian": 9.0})
        result = call("evaluate", "method", "--schema", schema, "--epsilon", 1, "--fits", 20)
        assert result.code == 1
        assert "Do not use it" in result.err

    def test_wrong_calls(self, schema, call):
        assert call("evaluate", "method", "--schema", schema).code == 2
        assert call("evaluate", "method", "--schema", schema, "--epsilon", 1, "--fits", 3).code == 2


WEIGHTED = {
    "rows": 500,
    "weight": {"column": "w", "upper": 4},
    "columns": {"w": "identifier", "a": "boolean", "x": {"kind": "continuous", "lower": 0, "upper": 1}},
}
RULED = {
    "rows": 500,
    "columns": {name: {"kind": "integer", "lower": 0, "upper": 9} for name in ("first", "last", "days")},
    "rules": [{"order": ["first", "last"]}, {"difference": {"days": ["last", "first"]}}],
}


@pytest.mark.parametrize("document", [WEIGHTED, RULED], ids=["a weight", "rules"])
def test_what_is_measured_is_planted(document):
    method = MaxEntropy(epsilon=1.0, delta=1e-5, calibration_rows=60)
    found = audit(method, Schema.from_dict(document), fits=20, seed=0)
    assert found["holds"]
    schema = Schema.from_dict(document)
    assert [set(corner) for corner in corners(schema)] == [set(plain_schema(schema).released)] * 2
