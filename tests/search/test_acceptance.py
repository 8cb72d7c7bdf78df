"""Criteria of acceptance: what a verdict measures, what it costs, and what leaves where none passes."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import special
from sklearn.metrics import roc_auc_score

from fixtures import tables
from fixtures.ruled import hospital, hospital_schema
from sfumato import MaxEntropy, create_ledger, load, read_ledger, tune
from sfumato.errors import ConfigError, NotAcceptedError, ReleaseError, SchemaError
from sfumato.evaluate import rule_breaks
from sfumato.io.sources import open_source
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.privacy.repetitions import Repetitions
from sfumato.records.private import PrivateData
from sfumato.schema.accept import read_criteria
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit
from sfumato.search import acceptance, pair_scores, tuning
from sfumato.search.acceptance import judges_of, verdicts_on, with_criteria
from sfumato.search.auroc import BINS, AurocTask, ScoreCounts, auroc_of
from sfumato.search.pair_scores import MarginalLayout
from sfumato.search.tuning import Search

ROWS = 4_000
DELTA = 1e-5
SCHEMA = replace(tables.schema(), rows=ROWS)
METHOD = MaxEntropy(epsilon=4.0, delta=DELTA, calibration_rows=500)
EASY = [{"marginal_error": 0.3}, {"pair_error": 0.5}, {"auroc": 0.6, "target": "income"}]
FINDING = {"finding": "logit: income ~ age", "term": "age", "sign": "positive", "significance": 0.05}
HARD = [{"marginal_error": 0.3}, {"auroc": 0.99999, "target": "income"}]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(pair_scores, "_SAMPLES", 2_000)
    monkeypatch.setattr(pair_scores, "_BLOCK", 2_000)
    monkeypatch.setattr(acceptance, "_SAMPLES", 1 << 14)


def search(accept, **options):
    options = {"schema": SCHEMA, "target": "income", "mean_repetitions": 1.0} | options
    return tune(tables.frame(ROWS), method=[METHOD], accept=accept, **options)


@dataclass
class Resampled:
    """A sampler of rows of a table."""

    rows_of: dict

    def rows(self, n, rng, classes=None):
        places = rng.integers(0, len(self.rows_of["income"]), n)
        return {name: column[places] for name, column in self.rows_of.items()}


def coded(frame, schema=SCHEMA):
    (rows,) = PrivateData(open_source(frame), schema).coded()
    return rows


def judged(criteria, sampler, frame, noise, *, multiplier=2.0, schema=SCHEMA):
    criteria = read_criteria(criteria)
    judges = judges_of(criteria, schema, ROWS)
    ledger = Ledger(
        Plan([Stage(name=judge.stage, noise_multiplier=multiplier, replace_distance=np.sqrt(2)) for judge in judges]),
        None,
    )
    return verdicts_on(judges, sampler, PrivateData(open_source(frame), schema), ledger, noise)


def distances(one, other, ways):
    """Total variation of every table of cells of these rows."""
    layout = MarginalLayout.of(SCHEMA, (), ways=ways)
    counts = []
    for rows in (one, other):
        total = np.zeros(layout.starts[-1])
        layout.count(total, rows)
        counts.append(total / len(rows["income"]))
    return np.add.reduceat(np.abs(counts[0] - counts[1]), layout.starts[:-1]) / 2


def test_a_verdict_is_the_worst_total_variation_of_the_records():
    frame, other = tables.frame(ROWS), tables.frame(ROWS, seed=3)
    other["sex"] = "f"
    sampler = Resampled(coded(other))
    found = judged([{"marginal_error": 0.1}, {"pair_error": 0.1}], sampler, frame, NoNoise())
    for ways, verdict in enumerate(found, 1):
        expected = distances(coded(frame), coded(other), ways)
        assert verdict.value == pytest.approx(expected.max(), abs=0.02)  # of 16,384 samples
        assert verdict.value > 0.3
        assert not verdict.passed
        assert verdict.noise_std == 0
    (one,) = judged([{"marginal_error": 0.1, "columns": ["age", "member"]}], sampler, frame, NoNoise())
    assert one.passed
    assert one.value < 0.05


def test_fewer_records_than_declared_are_no_error():
    """The declaration may be wrong: it is a unit of errors, not what records are compared with."""
    frame = tables.frame(ROWS // 2)
    (verdict,) = judged([{"marginal_error": 0.1}], Resampled(coded(frame)), frame, NoNoise())
    assert verdict.value < 0.02


def test_the_noise_of_verdicts_is_that_of_their_stages():
    frame = tables.frame(ROWS)
    sampler, noise = Resampled(coded(frame)), SeededNoise(1)
    (true,) = judged([{"marginal_error": 0.1}], sampler, frame, NoNoise())
    drawn = [judged([{"marginal_error": 0.1}], sampler, frame, noise, multiplier=40.0)[0] for _ in range(60)]
    assert {verdict.noise_std for verdict in drawn} == {40.0 / ROWS}
    z = (np.array([verdict.value for verdict in drawn]) - true.value) / (40.0 / ROWS)
    assert 0.7 < z.std() < 1.35
    assert abs(z.mean()) < 0.6


def test_units_of_several_records_have_so_many_times_the_noise():
    schema = replace(SCHEMA, unit=Unit(column="id", max_rows=3))
    frame = tables.frame(ROWS)
    assert "id" not in schema.released
    (verdict,) = judged([{"marginal_error": 0.1}], Resampled(coded(frame)), frame, SeededNoise(0), schema=schema)
    assert verdict.noise_std == pytest.approx(3 * 2.0 / ROWS)


class TestAuroc:
    def test_of_the_records_by_what_the_release_taught(self):
        frame, other = tables.frame(ROWS), tables.frame(20_000, seed=4)
        task = AurocTask.of(SCHEMA, read_criteria([{"auroc": 0.8, "target": "income"}])[0])
        taught = ScoreCounts.taught_by(task, [coded(other)])
        rows = coded(frame)
        scores = sum(w[c.cells(rows[c.name])] for c, w in zip(task.columns, taught.weights, strict=True))
        known = task.known(rows)
        exact = roc_auc_score(task.positives(rows)[known], scores[known])
        assert exact > 0.6
        (verdict,) = judged([{"auroc": 0.5, "target": "income"}], Resampled(coded(other)), frame, NoNoise())
        assert verdict.value == pytest.approx(exact, abs=0.02)
        assert verdict.passed

    def test_a_release_that_knows_nothing_of_the_target_fails(self):
        frame, other = tables.frame(ROWS), tables.frame(ROWS, seed=4)
        other["income"] = np.random.default_rng(0).permutation(other["income"])
        (verdict,) = judged([{"auroc": 0.6, "target": "income"}], Resampled(coded(other)), frame, NoNoise())
        assert not verdict.passed
        other["income"] = ">50K"
        (verdict,) = judged([{"auroc": 0.6, "target": "income"}], Resampled(coded(other)), frame, NoNoise())
        assert verdict.value == pytest.approx(0.5)

    def test_the_deviation_is_that_of_the_noise(self):
        rng = np.random.default_rng(0)
        exact = np.stack([np.linspace(300, 50, BINS), np.linspace(20, 200, BINS)])
        value, told = auroc_of(exact, 10.0)
        drawn = [auroc_of(exact + 10.0 * rng.standard_normal(exact.shape), 10.0)[0] for _ in range(2_000)]
        assert np.mean(drawn) == pytest.approx(value, abs=0.003)
        assert np.std(drawn) == pytest.approx(told, rel=0.1)

    @pytest.mark.parametrize(
        ("counts", "value"),
        [
            (np.eye(2, BINS) * 100, (0.0 + 1.0)),
            (np.full((2, BINS), 5.0), 0.5),
            (np.stack([np.zeros(BINS), np.ones(BINS)]), 0.5),
            (np.zeros((2, BINS)), 0.5),
        ],
    )
    def test_ends(self, counts, value):
        assert auroc_of(counts, 0.0)[0] == pytest.approx(value)

    def test_a_class_that_is_lost_in_noise_says_nothing(self):
        assert auroc_of(np.stack([np.full(BINS, 500.0), np.full(BINS, 2.0)]), 30.0) == (0.5, 0.5)


def test_what_passes_leaves_with_its_verdicts_and_computes_again(tmp_path):
    release = search(EASY)
    content = release.certificate.content
    assert content["private"]
    assert [event["stage"] for event in content["events"]][-3:] == [
        "accept 1: marginal_error", "accept 2: pair_error", "accept 3: auroc",
    ]  # fmt: skip
    verdicts = content["search"]["verdicts"]
    assert [verdict["criterion"] for verdict in verdicts] == [
        "marginal_error <= 0.3", "pair_error <= 0.5", "auroc for income >= 0.6",
    ]  # fmt: skip
    assert all(verdict["passed"] and verdict["noise_std"] > 0 for verdict in verdicts)
    assert 0.99 * 4 < release.certificate.epsilon <= 4
    release.save(tmp_path / "good.sfm")
    again = load(tmp_path / "good.sfm")
    again.certificate.verify()
    assert again.certificate.content["search"] == content["search"]
    assert again.schema.to_dict()["accept"] == EASY


def test_verdicts_are_charged_at_their_share():
    law = Repetitions(10)
    criteria = read_criteria(EASY)
    schema = replace(SCHEMA, accept=criteria)
    (plan,) = tuning.Search.of([METHOD], schema, "income", None, law, score_share=0.1, accept_share=0.3).plans
    squares = {stage.name: stage.noise_multiplier**-2 for stage in plan.parts[1]}
    total = sum(squares.values()) + plan.stages[0].noise_multiplier ** -2
    shares = [square / total for name, square in squares.items() if name.startswith("accept")]
    assert shares == pytest.approx([0.1] * 3)
    assert all(stage.repetitions == law for stage in plan.parts[1])
    without = tuning.Search.of([METHOD], SCHEMA, "income", None, law, score_share=0.1).plans[0]
    assert not any(stage.name.startswith("accept") for stage in without.stages)


def test_where_none_passes_the_verdicts_alone_leave_and_the_charge_stands(tmp_path):
    create_ledger(tmp_path / "people.ledger", epsilon=4.0, delta=DELTA)
    with pytest.raises(NotAcceptedError, match=r"The budget is spent, and nothing is released but") as caught:
        search(HARD, ledger=tmp_path / "people.ledger")
    (entry,) = read_ledger(tmp_path / "people.ledger").fits
    assert entry.status == "finished"
    assert read_ledger(tmp_path / "people.ledger").spent() > 3.9
    certificate = caught.value.certificate
    assert isinstance(certificate, Certificate)
    verdicts = certificate.content["search"]["verdicts"]
    assert [verdict["passed"] for verdict in verdicts] == [True, False]
    assert "auroc for income >= 0.99999: FAILED" in str(caught.value)
    assert "marginal_error <= 0.3: passed" in str(caught.value)
    assert vars(caught.value) == {"certificate": certificate}, "the fit itself would be a release"


@pytest.mark.slow
def test_fits_that_pass_more_go_before_nearer_ones(monkeypatch):
    """Of three fits the second is nearest, but only the third passes."""
    distances, passed = iter([0.3, 0.1, 0.2]), iter([False, False, True])
    monkeypatch.setattr(tuning, "drawn_repetitions", lambda law, noise: 3)
    monkeypatch.setattr(tuning, "mean_distance", lambda *_: next(distances))
    real = tuning.verdicts_on

    def set_apart(*arguments):
        (verdict,) = real(*arguments)
        return (replace(verdict, passed=next(passed)),)

    monkeypatch.setattr(tuning, "verdicts_on", set_apart)
    release = search([{"marginal_error": 0.3}], mean_repetitions=3.0)
    assert release.certificate.content["search"]["squared_distance"] == 0.2
    assert len(release.certificate.content["search"]["verdicts"]) == 1


def test_a_certificate_whose_verdicts_contradict_their_values_is_refused():
    content = json.loads(json.dumps(search(EASY, seed=1).certificate.to_dict()))
    Certificate.from_dict(content)
    content["search"]["verdicts"][0]["value"] = 0.9
    with pytest.raises(ReleaseError, match="verdicts that do not follow"):
        Certificate.from_dict(content)


def test_a_release_without_a_verdict_on_each_criterion_is_refused():
    release = search(EASY, seed=1)
    release.check()
    searched = release.certificate.search
    for verdicts in ((), searched.verdicts[:-1], searched.verdicts[::-1]):
        certificate = replace(release.certificate, search=replace(searched, verdicts=verdicts))
        with pytest.raises(ReleaseError, match="a passed verdict on each criterion"):
            replace(release, certificate=certificate).check()
    with pytest.raises(ReleaseError, match="a passed verdict on each criterion"):
        replace(release, schema=replace(release.schema, accept=())).check()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"accept": [{"marginal_error": 0.0005}]}, "that noise leaves something of"),
        ({"accept": EASY, "accept_share": 0.95}, "room for the fit"),
        ({"accept": EASY, "accept_share": 1.0}, "accept_share"),
        ({"accept": [{**FINDING, "term": "sex"}]}, "one of the terms"),
        ({"accept": [{**FINDING, "finding": "ols: age ~ nowhere"}]}, "nowhere"),
        ({"accept": EASY, "schema": replace(SCHEMA, accept=read_criteria(EASY))}, "got both"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_a_charge(tmp_path, options, said):
    create_ledger(tmp_path / "people.ledger", epsilon=5.0, delta=DELTA)
    with pytest.raises((ConfigError, SchemaError), match=said):
        search(**options, ledger=tmp_path / "people.ledger")
    assert not read_ledger(tmp_path / "people.ledger").fits


def test_a_finding_is_the_answer_of_the_release_and_costs_nothing():
    asked = [FINDING, {**FINDING, "term": "C(sex)[T.m]", "finding": "logit: income ~ age + C(sex)"}]
    plan = Search.of(
        [METHOD], with_criteria(SCHEMA, read_criteria(asked)), "income", None, Repetitions(1), score_share=0.1
    ).plans[0]  # fmt: skip
    assert not [stage.name for stage in plan.stages if stage.name.startswith("accept")]
    release = search([FINDING, {"marginal_error": 0.3}], seed=3)
    judged, own = release.certificate.search.verdicts
    fit = release.logit("income ~ age")
    assert own.value == pytest.approx(special.ndtr(fit.tvalues["age"]), abs=1e-9)
    assert own.value >= own.threshold == 0.975
    assert (own.noise_std, own.passed) == (0.0, True)
    assert judged.criterion.startswith("marginal_error")
    with pytest.raises(NotAcceptedError) as refused:
        search([{**FINDING, "sign": "negative"}], seed=3)
    [verdict] = refused.value.certificate.search.verdicts
    assert verdict.value == pytest.approx(1 - own.value, abs=0.05)


def test_what_a_release_does_not_answer_is_no_finding():
    unmeasured = {"finding": "ols: age ~ C(sex) * C(grade)", "term": "C(sex)[T.m]", "sign": "positive"}
    with pytest.raises(NotAcceptedError) as refused:
        search([unmeasured], target=None, seed=0)
    assert [verdict.value for verdict in refused.value.certificate.search.verdicts] == [0.0]


def test_a_fit_does_not_pass_over_criteria():
    with pytest.raises(ConfigError, match=r"without `accept`.*--repetitions 1"):
        METHOD.fit(tables.frame(ROWS), schema=replace(SCHEMA, accept=read_criteria(EASY)))


@pytest.mark.slow
@pytest.mark.audit
def test_rules_are_kept_and_criteria_speak_of_what_is_free():
    """No record is asked about rules: each sampled row keeps them. What rules compute is judged by its parts."""
    document = hospital_schema(rows=2_000).to_dict()
    document["accept"] = [{"rules_broken": 0}, {"marginal_error": 0.9, "columns": ["sex", "age"]}]
    candidates = [MaxEntropy(epsilon=3.0, delta=1e-5)]
    release = tune(
        hospital(2_000),
        method=candidates,
        schema=Schema.from_dict(document),
        target="back",
        seed=0,
        mean_repetitions=1.0,
    )
    judged, kept = release.certificate.search.verdicts
    assert (kept.criterion, kept.value, kept.passed) == ("rules_broken <= 0", 0.0, True)
    assert judged.passed
    assert rule_breaks(release.sample(500, seed=0), schema=release.schema).any_rule == 0
    document["accept"] = [{"marginal_error": 0.9, "columns": ["total"]}]
    with pytest.raises(ConfigError, match="'total': it follows from others"):
        tune(hospital(2_000), method=candidates, schema=Schema.from_dict(document))
