"""A release as the prior of the next: nothing without noise, less error where it is right, none more where wrong."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato import MaxEntropy, NonPrivate, Release, Schema
from sfumato.columns import Categorical, Integer
from sfumato.errors import ConfigError, ReleaseError, SchemaError
from sfumato.evaluate import total_variation
from sfumato.maths.constants import PRIOR
from sfumato.maths.shrinkage import shrunk, toward
from sfumato.methods.tables import prior_rows
from sfumato.methods.tables.prior_rows import PriorRows, _joint
from sfumato.privacy.certificate import measured_elsewhere

N = 4_000
LETTERS = tuple("abcde")
SCHEMA = Schema(
    columns={
        "group": Categorical(categories=LETTERS),
        "colour": Categorical(categories=LETTERS),
        "size": Integer(lower=0, upper=99),
        "rich": Categorical(categories=("no", "yes")),
    },
    rows=N,
)


def table(seed: int, *, swapped: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.choice(5, N, p=[0.4, 0.25, 0.15, 0.1, 0.1])
    colour = np.where(rng.random(N) < 0.7, group, rng.integers(0, 5, N))
    size = np.clip(rng.normal(30 + 8 * colour, 12), 0, 99).astype(int)
    rich = rng.random(N) < 1 / (1 + np.exp(4 - size / 12))
    if swapped:
        group, size = 4 - group, 99 - size
    letters = np.array(LETTERS)
    return pd.DataFrame(
        {"group": letters[group], "colour": letters[colour], "size": size, "rich": np.where(rich, "yes", "no")}
    )


def fit(frame: pd.DataFrame, epsilon: float | NonPrivate = 0.3, seed: int = 0, **options: object) -> Release:
    return MaxEntropy(epsilon=epsilon, calibration_rows=4_000).fit(frame, schema=SCHEMA, seed=seed, **options)


@pytest.fixture(scope="module")
def last_year() -> Release:
    return fit(table(1), 3.0)


def test_without_noise_the_release_is_the_same(last_year: Release) -> None:
    alone, told = (fit(table(2), NonPrivate(), prior=prior) for prior in (None, last_year))
    assert alone.parameters.keys() == told.parameters.keys()
    for name, array in alone.parameters.items():
        np.testing.assert_array_equal(told.parameters[name], array)


def test_as_noise_vanishes_measurements_stay() -> None:
    rng = np.random.default_rng(0)
    values, centres, blocks = rng.normal(size=60), rng.normal(size=60), np.repeat(np.arange(6), 10)
    for variance in (1e-4, 1e-8, 0.0):
        means, left = toward(values, np.full(60, variance), blocks, centres)
        assert np.abs(means - values).max() <= 100 * variance + 1e-12
        assert left.max() <= 1.01 * variance


@pytest.mark.parametrize("target", [None, "rich"])
def test_a_right_prior_helps_and_a_wrong_one_costs_nothing(last_year: Release, target: str | None) -> None:
    wrong = fit(table(1, swapped=True), 3.0)
    errors: dict[str, list[float]] = {"none": [], "right": [], "wrong": []}
    real = table(2)
    for seed in range(3):
        for name, prior in (("none", None), ("right", last_year), ("wrong", wrong)):
            rows = fit(real, seed=seed, target=target, prior=prior).sample(20_000, seed=0)
            errors[name].append(total_variation(real, rows, schema=SCHEMA, k=2))
    none, right, bad = (np.mean(errors[name]) for name in ("none", "right", "wrong"))
    assert right < 0.85 * none
    assert bad < none + 0.006


def test_the_charge_is_the_same_event_for_event_and_the_certificate_names_the_prior(last_year: Release) -> None:
    alone, told = (fit(table(2), prior=prior) for prior in (None, last_year))
    assert told.certificate.events == alone.certificate.events
    assert told.certificate.epsilon == alone.certificate.epsilon
    for first, second in zip(alone.measurements, told.measurements, strict=True):
        assert first.name == second.name
    np.testing.assert_array_equal(alone.measurements[0].value, told.measurements[0].value)
    stated = told.certificate.prior
    assert alone.certificate.prior is None
    assert stated is not None
    assert stated.content == last_year.hashes.content
    assert stated.epsilon == last_year.certificate.epsilon
    assert stated.content[:16] in told.certificate.assumptions[-1]


def test_a_prior_is_read_from_its_file_and_kept_in_the_certificate(last_year: Release, tmp_path) -> None:
    last_year.save(tmp_path / "before.sfm")
    told = fit(table(2), prior=tmp_path / "before.sfm")
    told.save(tmp_path / "now.sfm")
    assert sfumato.load(tmp_path / "now.sfm").certificate.prior == fit(table(2), prior=last_year).certificate.prior


def test_priors_that_do_not_fit_are_refused_before_a_charge(last_year: Release, tmp_path) -> None:
    ledger = tmp_path / "people.ledger"
    sfumato.create_ledger(ledger, epsilon=10.0, delta=1e-4)
    state = ledger.read_bytes()
    columns = dict(SCHEMA.columns)
    fewer = dataclasses.replace(SCHEMA, columns={name: columns[name] for name in ("group", "colour", "rich")})
    wider = dataclasses.replace(SCHEMA, columns={**columns, "size": Integer(lower=0, upper=120)})
    damaged = tmp_path / "damaged.sfm"
    damaged.write_bytes(b"PK" + bytes(100))
    method = MaxEntropy(epsilon=0.3)
    for schema, prior, error, message in (
        (fewer, last_year, SchemaError, "others in 'size'"),
        (wider, last_year, SchemaError, "column 'size'"),
        (SCHEMA, damaged, ReleaseError, "release"),
        (SCHEMA, tmp_path / "absent.sfm", ReleaseError, "absent"),
        (SCHEMA, last_year, ConfigError, "prior of secret noise"),
        (SCHEMA, 3, ConfigError, "prior to be a release or the path of one, got int"),
    ):
        with pytest.raises(error, match=message):
            method.fit(table(2), schema=schema, prior=prior, ledger=ledger)
    with pytest.raises(ConfigError, match="no prior for the method dpmix"):
        sfumato.fit(table(2), SCHEMA, epsilon=1.0, method="dpmix", prior=last_year, ledger=ledger)
    assert ledger.read_bytes() == state


def test_the_cost_that_a_prior_states_is_verified_and_none_is_told(last_year: Release) -> None:
    stated = last_year.certificate
    less = dataclasses.replace(last_year, certificate=dataclasses.replace(stated, epsilon=0.01))
    with pytest.raises(ReleaseError, match=r"prior.* got events that cost"):
        fit(table(2), prior=less)
    nobodys = measured_elsewhere("others", stated.unit, n_public=N, declared=True)
    told = fit(table(2), prior=dataclasses.replace(last_year, certificate=nobodys))
    assert "of no stated epsilon is the prior" in told.certificate.assumptions[-1]
    assert "no bound on what both show" in told.certificate.assumptions[-1]


def test_rows_of_wide_tables_are_fewer_and_those_of_many_labels_are_not_tilted(last_year: Release, monkeypatch) -> None:
    drawn = []
    few = dataclasses.replace(PRIOR, most_cells=4 * 500, most_runs=5)
    monkeypatch.setattr(prior_rows, "PRIOR", few)
    monkeypatch.setattr(prior_rows, "_joint", lambda *_: pytest.fail("tilted"))
    tilted = PriorRows.tilted
    monkeypatch.setattr(PriorRows, "tilted", lambda self, runs: drawn.append(self.weights.size) or tilted(self, runs))
    fit(table(2), prior=last_year)
    assert drawn == [500]


def test_shapes_without_a_prior_are_refused(last_year: Release) -> None:
    unit = {
        "columns": {
            "id": {"kind": "identifier"},
            "x": {"kind": "boolean"},
            "t": {"kind": "integer", "lower": 0, "upper": 9},
        }
    }
    linked = {**unit, "unit": {"column": "id", "max_rows": 3, "order": "t", "units": 100}}
    frame = pd.DataFrame({"id": [1, 2], "x": [True, False], "t": [1, 2]})
    with pytest.raises(ConfigError, match="linked rows for a prior"):
        MaxEntropy(epsilon=1.0).fit(frame, schema=linked, prior=last_year)


def test_blocks_lie_about_the_centre_that_makes_them_likelier() -> None:
    rng = np.random.default_rng(3)
    blocks, centre = np.repeat(np.arange(40), 8), rng.normal(0, 0.5, 320)
    truth = np.where(blocks < 20, centre, 0.0)
    noisy = truth + rng.normal(0, 0.3, 320)
    means, spreads = shrunk(noisy, np.full(320, 0.09), blocks, centre)
    assert ((means - truth) ** 2).mean() < 0.2 * 0.09
    assert spreads.mean() < 0.3 * 0.09


def test_covariance_of_indicators_is_that_of_rows() -> None:
    rng = np.random.default_rng(1)
    columns, weights = [rng.integers(0, 3, 500), rng.integers(0, 2, 500)], rng.random(500)
    weights /= weights.sum()
    covariance, means = _joint(columns, [3, 2], weights)
    rows = np.concatenate([np.eye(3)[columns[0]], np.eye(2)[columns[1]]], axis=1)
    np.testing.assert_allclose(means, weights @ rows)
    np.testing.assert_allclose(covariance, (rows * weights[:, None]).T @ rows - np.outer(means, means), atol=1e-12)
