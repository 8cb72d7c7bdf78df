"""The words of plans and certificates: true of what they say, and of one voice."""

import dataclasses

import pytest

from sfumato.privacy import words
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate import describe, issue
from sfumato.privacy.certificate_form import PlannedStage, Protected, Searched
from sfumato.privacy.plan import Plan, Stage, Subset
from sfumato.privacy.reading import plain
from sfumato.privacy.repetitions import Repetitions

POISSON = Stage(name="sgd", noise_multiplier=2.0, sampling_probability=0.0125, count=20)
MOMENTS = Stage(name="moments", noise_multiplier=9.0)
SUBSETS = Stage(name="mixtures", noise_multiplier=4.0, subset=Subset(3, 50), count=7)
HOSTILE = "\x1b[31m\u202eeno" + "U" * 200


def described(*stages, budget=PrivacyBudget(2.0, 1e-5), unit="row", max_rows=1, **facts):  # noqa: B008 - frozen
    return describe(
        plan=Plan(stages), budget=budget, method="m", unit=Protected(name=unit, max_rows=max_rows),
        **{"n_public": 1000, "n_public_source": "declared", **facts},
    )  # fmt: skip


@pytest.fixture(scope="module")
def certificate():
    return issue(described(MOMENTS, POISSON), private=True)


def test_every_figure_is_with_its_delta_and_relation(certificate):
    said = words.guarantee(certificate)
    assert said.startswith(f"Guarantee: {words.cost(certificate)}, for adding or removing one row. Replacing one row: ")
    assert said.endswith(f"{words.replaced(certificate)}.")
    assert words.cost(certificate) == f"epsilon = {certificate.epsilon:.4g}, delta = 1e-05"
    assert repr(certificate) == f"Certificate(epsilon={certificate.epsilon:.6g}, delta=1e-05, add/remove one row)"
    assert "added or removed" in words.relation(certificate)
    assert words.entering(certificate).startswith("Rows: declared, 1000. Sampling: none")
    assert words.recomputed(certificate, 0.25).startswith("Computed again with PLDAccountant: epsilon = 0.25 at delta")


def test_subsets_promise_nothing_under_add_remove():
    found = issue(described(SUBSETS, unit="patient", max_rows=3), private=True)
    said = words.guarantee(found)
    assert "for replacing one patient (up to 3 rows). Adding or removing one patient (up to 3 rows): none is" in said
    assert "replace one patient" in repr(found)
    assert "replaced by another" in words.relation(found)
    assert "at most 3" in words.who(found)
    stage = words.stages(found)[0]
    assert (stage.brief, stage.event) == (
        "7 × Gaussian of 3 of 50, without replacement", "7 times Gaussian noise on 3 of 50 records",
    )  # fmt: skip


def test_stages_are_told_in_both_lengths_with_the_same_figures(certificate):
    moments, sgd = words.stages(certificate)
    assert (moments.brief, moments.event) == ("Gaussian", "Gaussian noise, all records")
    assert sgd.brief == "20 × Gaussian of a Poisson sample, q = 0.0125"
    assert sgd.event == "20 times Gaussian noise on a random sample, each record with probability 0.0125"
    assert [stage.noise_multiplier for stage in (moments, sgd)] == ["9", "2"]
    assert moments.share + sgd.share == pytest.approx(1)
    assert sgd.epsilon_alone == f"{certificate.stages[1].epsilon_alone:.4g}"


def test_nothing_is_promised_without_secret_noise():
    free = issue(described(MOMENTS, budget=None), private=True)
    assert not free.private
    assert words.guarantee(free) == "Guarantee: NONE. There is no noise."
    assert words.replaced(free) == "none is given"
    assert words.stages(free) == []
    seeded = issue(described(MOMENTS), private=False)
    for found in (free, seeded):
        assert "NOT PRIVATE" in repr(found)
        assert "guarantees nothing" in words.meaning(found)[0]
    assert "seed" in words.meaning(seeded)[0]
    assert "seed" not in words.meaning(free)[0]


def test_a_search_says_what_it_repeated_and_chose():
    law, tried = Repetitions(4.0), Searched(candidates=("a", HOSTILE), chosen=1, squared_distance=-0.00012345)
    found = described(MOMENTS, dataclasses.replace(POISSON, repetitions=law), search=tried)
    assert "were repeated: 4 times on average" in words.repetitions(found)
    assert words.stages(found)[1].brief.startswith("* 20 ×")
    assert not words.stages(found)[0].brief.startswith("*")
    first, second = words.chosen(found)
    assert first.startswith("Chosen of 2 candidates: �[31m�eno")
    assert second.endswith("-0.000123.")
    assert words.repetitions(described(MOMENTS)) is None
    assert words.chosen(described(MOMENTS)) == []


def test_a_plan_forecasts_and_a_certificate_does_not(certificate):
    planned = tuple(
        PlannedStage(**plain(stage), measures="how many", forecast=forecast)
        for stage, forecast in zip(certificate.stages, ("±1", ""), strict=True)
    )
    assert words.forecasts(dataclasses.replace(certificate, stages=planned)) == ["moments: how many; ±1."]
    assert words.forecasts(certificate) == []


def test_no_word_of_a_stranger_moves_the_page(certificate):
    found = dataclasses.replace(
        certificate, unit=Protected(name=HOSTILE, max_rows=2), method=HOSTILE, sampling=HOSTILE,
        stages=tuple(dataclasses.replace(stage, name=HOSTILE) for stage in certificate.stages),
    )  # fmt: skip
    said = [
        repr(found), words.guarantee(found), words.entering(found), words.who(found), words.relation(found),
        *words.stages(found)[0][:2],
    ]  # fmt: skip
    for text in said:
        assert "\x1b" not in text
        assert "\u202e" not in text
