"""Certificates: complete, recomputable, and safe to read from a stranger."""

import copy
import functools
import json
import math

import numpy as np
import pytest

from sfumato.errors import ReleaseError
from sfumato.privacy import accounting, pld
from sfumato.privacy.accounting import account, with_rounding
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate import Certificate, describe, issue
from sfumato.privacy.certificate_form import Protected
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset

KEYS = {
    "format_version", "method", "versions", "private", "epsilon", "delta", "neighbours", "replace_one", "unit",
    "n_public", "n_public_source", "sampling", "accountant", "curve", "extra_delta", "events", "stages", "assumptions",
}  # fmt: skip
PLAN = Plan(
    [
        Stage(name="pca", noise_multiplier=20.0, replace_distance=2**0.5),
        Stage(name="sgd", noise_multiplier=1.4, sampling_probability=0.005, count=200),
    ]
)


def description(plan, budget):
    unit = Protected(name="row", max_rows=1)
    return describe(plan=plan, budget=budget, method="m", unit=unit, n_public=1000, n_public_source="declared")


@functools.lru_cache
def certificate(*, plan=PLAN, budget=PrivacyBudget(2.0, 1e-5), private=True):  # noqa: B008 - frozen
    return issue(description(plan, budget), private=private)


def test_has_every_key_and_is_json():
    content = certificate().to_dict()
    assert set(content) == KEYS
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_epsilon_is_that_of_the_events_and_can_be_recomputed():
    found = certificate()
    assert found.epsilon == account(PLAN, 1e-5).epsilon
    assert found.recompute() == pytest.approx(found.epsilon, abs=1e-9)
    again = Certificate.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.recompute() == pytest.approx(found.epsilon, abs=1e-9)


def test_replace_one_uses_the_exact_distances():
    expected = account(PLAN, 1e-5, neighbours=Neighbours.REPLACE_ONE).epsilon
    assert certificate().content["replace_one"] == {"epsilon": expected, "delta": 1e-5}


def test_curve_falls_with_delta_and_holds_the_stated_point():
    curve = certificate().content["curve"]
    assert {"delta": 1e-5, "epsilon": certificate().epsilon} in curve
    epsilons = [point["epsilon"] for point in sorted(curve, key=lambda point: -point["delta"])]
    assert epsilons == sorted(epsilons)


def test_stages_share_the_whole_and_cost_less_alone():
    stages = certificate().content["stages"]
    assert sum(stage["share"] for stage in stages) == pytest.approx(1)
    assert all(0 < stage["epsilon_alone"] < certificate().epsilon for stage in stages)


def test_without_noise_there_is_no_epsilon_and_no_privacy():
    found = certificate(budget=None)
    assert not found.private
    assert found.epsilon is None
    assert "NOT PRIVATE" in repr(found)
    with pytest.raises(ReleaseError, match="no epsilon"):
        found.recompute()
    with pytest.raises(ReleaseError, match="no epsilon"):
        found.verify()


def test_a_seed_is_never_private():
    found = certificate(private=False)
    assert not found.private
    assert "NOT PRIVATE" in repr(found)


def test_repr_states_epsilon_with_delta_and_relation():
    assert "delta=1e-05" in repr(certificate())
    assert "add/remove" in repr(certificate())


@pytest.mark.parametrize("key", sorted(KEYS))
@pytest.mark.parametrize("value", [..., "x", -1, [1], {"a": 1}])
def test_a_malformed_certificate_is_refused_or_harmless(key, value):
    content = copy.deepcopy(certificate().to_dict())
    if value is ...:
        del content[key]
    else:
        content[key] = value
    try:
        found = Certificate.from_dict(content)
    except ReleaseError:
        return
    assert value is not ...
    repr(found)


@pytest.mark.parametrize(
    "change",
    [
        {"noise_multiplier": 0}, {"noise_multiplier": -1.0}, {"noise_multiplier": "1"}, {"count": 0}, {"count": 1.5},
        {"sampling_probability": 2.0}, {"type": "gaussian"}, {"type": "laplace"}, {"stage": None, "count": None},
    ],
)  # fmt: skip
def test_a_malformed_event_is_refused(change):
    content = copy.deepcopy(certificate().to_dict())
    content["events"][1].update(change)
    with pytest.raises(ReleaseError, match="certificate"):
        Certificate.from_dict(content)


def test_a_certificate_that_understates_is_found_out():
    content = copy.deepcopy(certificate().to_dict())
    Certificate.from_dict(content).verify()
    content["replace_one"]["epsilon"] /= 2
    with pytest.raises(ReleaseError, match="under replace_one"):
        Certificate.from_dict(content).verify()
    content = copy.deepcopy(certificate().to_dict())
    content["epsilon"] = 0.001
    with pytest.raises(ReleaseError, match="Do not trust"):
        Certificate.from_dict(content).verify()


@pytest.mark.parametrize(
    ("steps", "delta", "larger"), [(20_000, 1e-9, 1e-5), (60_000, 1e-5, 1e-8), (100_000, 1e-9, 1e-5)]
)
def test_a_machine_without_extended_precision_finds_the_same(monkeypatch, steps, delta, larger):
    """Its accounts of many sampled steps are larger: by 64 bits' errors, and by a bound on them."""
    stage = Stage(name="sgd", noise_multiplier=1.4, sampling_probability=0.002, count=steps)
    here = issue(description(Plan([stage]), PrivacyBudget(2.0, delta)), private=True)
    monkeypatch.setattr(np, "longdouble", np.float64)
    for module in (pld, accounting):
        monkeypatch.setattr(module, "STEP_ROUNDING", pld.LARGEST_STEP_ROUNDING)
    assert here.recompute() > here.epsilon + larger
    here.verify()
    there = issue(description(Plan([stage]), PrivacyBudget(2.0, delta)), private=True)
    monkeypatch.undo()
    there.verify()
    assert there.recompute() < there.epsilon


@pytest.mark.parametrize("extra", [0.9, 1 - 1e-6, 1.05])
def test_steps_buy_no_room_beside_an_additive_part(extra):
    """A stranger's certificate with an additive part near δ, or above it."""
    plan = Plan(
        [
            Stage(name="words", noise_multiplier=3.0, extra_delta=extra * 1e-9 / 2),
            Stage(name="more words", noise_multiplier=3.0, extra_delta=extra * 1e-9 / 2),
            Stage(name="sgd", noise_multiplier=1.0, sampling_probability=1e-3, count=120_000),
        ]
    )
    content = copy.deepcopy(issue(description(plan, PrivacyBudget(2.0, 1.09e-9)), private=True).to_dict())
    content.update(delta=1e-9, curve=[])
    content["replace_one"]["delta"] = 1e-9
    with pytest.raises(ReleaseError, match="got events that cost"):
        Certificate.from_dict(content).verify()


def test_no_number_of_steps_buys_room():
    plan = Plan([Stage(name="sgd", noise_multiplier=1e6, sampling_probability=1e-6, count=10**13)])
    assert with_rounding(plan, 1e-5, extra_delta=0.0) == pytest.approx(1.1e-5)
    assert with_rounding(plan, 1e-5, extra_delta=9e-6) == pytest.approx(1.01e-5)
    assert with_rounding(plan, 1e-5, extra_delta=1e-5) == 1e-5
    once = with_rounding(Plan([Stage(name="moments", noise_multiplier=1.0)]), 1e-5, extra_delta=0.0)
    assert once == 1e-5 + 2 * pld.COMPOSITION_ROUNDING


@pytest.mark.parametrize("delta", [1e-12, 1e-13, 4e-14])
def test_points_of_a_curve_at_small_delta_are_checked(delta):
    plan = Plan([Stage(name=f"moments {i}", noise_multiplier=3.0 + i) for i in range(8)])
    content = copy.deepcopy(issue(description(plan, PrivacyBudget(2.0, 1e-5)), private=True).to_dict())
    content["curve"].append({"delta": delta, "epsilon": 1.0})
    with pytest.raises(ReleaseError, match="Expected a curve"):
        Certificate.from_dict(content).verify()


def test_a_curve_has_finite_points_only():
    subsets = Stage(name="m", noise_multiplier=1.4, subset=Subset(1, 2000), count=300_000)
    curve = issue(description(Plan([subsets]), PrivacyBudget(2.0, 1e-5)), private=True).content["curve"]
    assert 0 < len(curve) < 8
    assert all(math.isfinite(point["epsilon"]) for point in curve)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["stages"][0].update(share=0.01),
        lambda content: content["stages"][0].update(epsilon_alone=1e-4),
        lambda content: content["curve"][0].update(epsilon=1e-4),
        lambda content: content["curve"].append({"delta": 1e-12, "epsilon": 1e-4}),
    ],
)
def test_what_is_printed_beside_epsilon_is_checked_too(change):
    content = copy.deepcopy(certificate().to_dict())
    change(content)
    with pytest.raises(ReleaseError, match="stages that follow from the events"):
        Certificate.from_dict(content).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["replace_one"].update(delta=1e-15),
        lambda content: content.update(epsilon=None),
        lambda content: content.update(epsilon=None, private=False),
    ],
)
def test_a_certificate_that_contradicts_itself_is_refused(change):
    content = copy.deepcopy(certificate().to_dict())
    change(content)
    with pytest.raises(ReleaseError, match="well-formed certificate"):
        Certificate.from_dict(content)
