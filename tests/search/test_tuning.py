"""A search for settings: what it costs, what it charges when, and that only the best leaves."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant

from fixtures import linked, tables
from sfumato import P3GM, DPMix, MaxEntropy, NonPrivate, create_ledger, load, read_ledger, tune
from sfumato.errors import BudgetExceededError, ConfigError
from sfumato.fitting import account as accounts
from sfumato.fitting.purposes import Facts
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import Verdict
from sfumato.privacy.plan import Plan
from sfumato.privacy.repetitions import Repetitions
from sfumato.search import pair_scores, tuning
from sfumato.search.tuning import Best

SCHEMA = tables.schema()
SHARES = (0.2, 0.4, 0.7)
DELTA = 1e-5
CANDIDATES = [MaxEntropy(epsilon=1.0, delta=DELTA, marginal_share=s, calibration_rows=500) for s in SHARES]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few samples to score; and three repetitions, which try the candidates in turn."""
    turn = iter(range(1_000))
    monkeypatch.setattr(pair_scores, "_SAMPLES", 2_000)
    monkeypatch.setattr(pair_scores, "_BLOCK", 2_000)
    monkeypatch.setattr(tuning, "drawn_repetitions", lambda law, noise: 3)
    monkeypatch.setattr(tuning, "drawn_candidate", lambda n, noise: next(turn) % n)


def search(candidates=CANDIDATES, data=None, **options):
    options = {"schema": SCHEMA, "seed": 0, "method": candidates} | options
    return tune(tables.frame() if data is None else data, **options)


def test_a_grid_is_its_candidates(monkeypatch):
    listed = [MaxEntropy(epsilon=1.0, delta=1e-6, marginal_share=share, level_groups=8) for share in (0.3, 0.5)]
    tried = []
    monkeypatch.setattr(tuning, "best_of", lambda data, candidates, schema, **options: tried.append(candidates))
    grid = {"marginal_share": [0.3, 0.5]}
    search(grid=grid, candidates="max-entropy", epsilon=1.0, delta=1e-6, settings={"level_groups": 8})
    search(grid=grid, candidates=MaxEntropy(epsilon=1.0, delta=1e-6, level_groups=8))
    search(listed)
    assert tried == [listed] * 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"method": [MaxEntropy(epsilon=1.0)], "epsilon": 1.0}, "beside candidates"),
        ({"method": [MaxEntropy(epsilon=1.0)], "grid": {"marginal_share": [0.3]}}, "beside candidates"),
        ({"method": "max-entropy", "grid": {"marginal_share": [0.3]}}, "Expected epsilon, got none"),
        ({"method": "max-entropy", "epsilon": 1.0, "grid": {"marginal_shar": [0.3]}}, "marginal_share"),
        ({"method": "max-entropy", "epsilon": 1.0, "grid": {"marginal_share": 0.3}}, "lists of values"),
        ({"method": "max-entropy", "epsilon": 1.0, "grid": {"purpose": "fidelity"}}, "lists of values"),
        ({"method": "max-entropy", "epsilon": 1.0, "settings": {"pose": 8}, "grid": {"pose": [4]}}, "in both"),
        ({"method": "gausian", "epsilon": 1.0}, "max-entropy, p3gm"),
    ],
)  # fmt: skip
def test_a_method_and_a_grid_are_read_before_anything_else(wrong, said):
    with pytest.raises(ConfigError, match=said):
        tune("absent.csv", "absent.yaml", **wrong)


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "people.ledger"
    create_ledger(path, epsilon=2.0, delta=DELTA)
    return path


def test_the_certificate_states_the_search_and_computes_again(tmp_path):
    release = search(target="income", seed=None)
    content = release.certificate.content
    assert content["private"]
    assert 0.999 < release.certificate.epsilon <= 1
    release.certificate.verify()
    score, *inner = content["events"]
    assert "repetitions" not in score
    assert {json.dumps(event["repetitions"]) for event in inner} == {'{"mean": 10.0, "shape": 1.0}'}
    # what somebody else would run
    fits = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(event["noise_multiplier"]) for event in inner])
    accountant = RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(score["noise_multiplier"]))
    accountant.compose(dp_event.RepeatAndSelectDpEvent(fits, 10, 1))
    assert accountant.get_epsilon(DELTA) == pytest.approx(content["epsilon"], rel=1e-12)
    assert len(content["search"]["candidates"]) == 3
    assert "Of all repetitions only this release was published" in content["assumptions"][0]
    release.save(tmp_path / "best.sfm")
    again = load(tmp_path / "best.sfm")
    again.certificate.verify()
    assert again.certificate.content["search"] == content["search"]
    assert len(again.sample(10)) == 10


def test_the_nearest_leaves_and_nothing_of_the_others(monkeypatch):
    distances, real = [], tuning.mean_distance
    monkeypatch.setattr(tuning, "mean_distance", lambda *a: distances.append(real(*a)) or distances[-1])
    release = search()
    found = release.certificate.content["search"]
    assert len(distances) == len(set(distances)) == 3
    assert found["squared_distance"] == min(distances)
    assert found["chosen"] == distances.index(min(distances))
    told = json.dumps(release.certificate.to_dict())
    assert not any(str(distance) in told for distance in distances if distance != min(distances))
    names = [measurement.name for measurement in release.measurements]
    assert len(names) == len(set(names)) == 4


def test_the_order_of_fits_is_total():
    """More criteria passed go first, then nearer fits; a distance that is no finite number goes last, in any order."""
    passed, missed = (
        Verdict(criterion="m", value=0.1, noise_std=0.01, relation="<=", threshold=0.1, passed=passed)
        for passed in (True, False)
    )
    ranked = [Best(0, distance, None, (), (passed,)) for distance in (-0.1, 0.2, np.nan)]
    ranked += [Best(0, distance, None, (), (missed,)) for distance in (0.1, np.inf)]
    for order in permutations(ranked):
        best = None
        for found in order:
            best = found if found.before(best) else best
        assert best is ranked[0]
    for i, one in enumerate(ranked):
        assert not any(other.before(one) for other in ranked[i:])


def test_units_of_one_row_have_a_finite_score(tmp_path):
    """Neither the records nor the samples have a step; nothing is shown of the repetitions but the best."""
    single = linked.visits(60, 1).groupby("patient").head(1).reset_index(drop=True)
    method = MaxEntropy(epsilon=20.0, delta=DELTA, calibration_rows=60)
    release = search([method], single, schema=linked.schema(units=60), n_public=60)
    assert np.isfinite(release.certificate.content["search"]["squared_distance"])
    release.save(tmp_path / "r.sfm")


def test_numpy_says_nothing_of_a_fit_that_is_scored():
    scores = pair_scores.scores_of(Facts(SCHEMA, None, 100))
    counts = np.ones(scores[0].statistic.layout.starts[-1])
    far = np.where(np.arange(counts.size) % 2, 1e200, -1e200)
    assert pair_scores.mean_distance(scores, [Noisy(far, 1.0)], [counts]) == np.inf


def test_noise_of_the_winner_is_that_of_its_share():
    events = search().certificate.content["events"]
    chosen = search().certificate.content["search"]["chosen"]
    squares = [event["noise_multiplier"] ** -2 for event in events[1:]]
    assert squares[0] / sum(squares) == pytest.approx(SHARES[chosen])


@pytest.mark.slow
def test_a_much_better_candidate_is_found():
    """At an ε where noise is small: one candidate sees hardly any of how columns go together."""
    pair = [replace(CANDIDATES[0], epsilon=50.0, marginal_share=share, calibration_rows=1_000) for share in (1e-5, 0.4)]
    for seed in range(2):
        release = search(pair, tables.frame(4_000), n_public=4_000, seed=seed)
        assert release.certificate.content["search"]["chosen"] == 1


def test_all_is_charged_before_the_first_repetition_and_once(ledger, monkeypatch):
    seen, run = [], MaxEntropy.run

    def looking(self, fit):
        seen.append([(entry.method, entry.status, entry.plan.repetitions) for entry in read_ledger(ledger).fits])
        return run(self, fit)

    monkeypatch.setattr(MaxEntropy, "run", looking)
    reduced = []
    monkeypatch.setattr(
        accounts, "reduce", lambda *a, real=accounts.reduce: reduced.append(len(read_ledger(ledger).fits)) or real(*a)
    )
    release = search(ledger=ledger, seed=None)
    assert seen == [[("tune", "running", Repetitions(10))]] * 3
    assert set(reduced) == {1}, "no pass over the records before the ledger is charged"
    (entry,) = read_ledger(ledger).fits
    assert entry.status == "finished"
    state = read_ledger(ledger)
    assert state.spent() == pytest.approx(release.certificate.epsilon, abs=1e-6)
    with pytest.raises(BudgetExceededError):
        search([replace(candidate, epsilon=1.9) for candidate in CANDIDATES], ledger=ledger, seed=None)
    assert len(seen) == 3


def test_a_repetition_that_fails_ends_the_search_and_the_charge_stands(ledger, monkeypatch):
    def failing(self, fit):
        if self.marginal_share == SHARES[1]:
            raise ConfigError("Expected something else.")
        return run(self, fit)

    run = MaxEntropy.run
    monkeypatch.setattr(MaxEntropy, "run", failing)
    with pytest.raises(ConfigError, match=r"^Expected something else\.$"):
        search(ledger=ledger, seed=None)
    (entry,) = read_ledger(ledger).fits
    assert entry.status == "failed"
    assert read_ledger(ledger).spent() > 0.99


def test_a_loop_of_the_same_repetitions_costs_more():
    plans = tuning.Search.of(CANDIDATES, SCHEMA, None, None, Repetitions(10), score_share=0.1).plans
    once, repeated = plans[0].parts
    loop = Plan([*once, *(replace(stage, repetitions=None, count=10) for stage in repeated)])
    assert account(plans[0], DELTA).epsilon <= 1 < 1.3 < account(loop, DELTA).epsilon


NETWORK = P3GM(epsilon=1.0, latent_dim=3)


def plans(*candidates):
    return tuning.Search.of(candidates, SCHEMA, None, 20_000, Repetitions(5), score_share=0.1).plans


def test_candidates_that_sample_have_to_sample_alike():
    with pytest.raises(ConfigError, match="cost alike"):
        plans(NETWORK, replace(NETWORK, epochs=2.0))


@pytest.mark.slow
def test_candidates_that_sample():
    two = plans(NETWORK, replace(NETWORK, learning_rate=1e-4))
    assert two[0].stages == two[1].stages
    assert 0.99 < account(two[0], 5e-6).epsilon <= 1


@pytest.mark.parametrize(
    ("candidates", "options", "said"),
    [
        ([], {}, "one or more methods"),
        ([MaxEntropy], {}, "one or more methods"),
        ([MaxEntropy(epsilon=NonPrivate())], {}, "without"),
        ([CANDIDATES[0], replace(CANDIDATES[0], epsilon=2.0)], {}, "one epsilon"),
        ([DPMix(epsilon=1.0)], {}, "dpmix"),
        (CANDIDATES, {"schema": tables.image_schema()}, "images"),
        (CANDIDATES, {"schema": replace(SCHEMA, rows=None)}, "number of rows"),
        (CANDIDATES, {"mean_repetitions": 0.5}, "mean_repetitions"),
        (CANDIDATES, {"shape": float("inf")}, "shape"),
        (CANDIDATES, {"score_share": 1.0}, "score_share"),
        (CANDIDATES, {"ledger": "people.ledger"}, "seed"),
    ],
)
def test_bad_searches_are_refused_before_a_record_is_read(candidates, options, said):
    with pytest.raises(ConfigError, match=said):
        search(candidates, **options)


def test_a_seed_marks_the_release_and_repeats_it():
    first, second = search(), search()
    assert not first.certificate.private
    assert first.certificate.content["search"]["squared_distance"] == pytest.approx(
        second.certificate.content["search"]["squared_distance"]
    )
    assert PrivacyBudget(1.0, DELTA).delta == first.certificate.delta
