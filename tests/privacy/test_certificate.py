"""Certificates: complete, recomputable, and safe to read from a stranger."""

import copy
import dataclasses
import functools
import json
import math
import pickle

import numpy as np
import pytest

from fixtures.costly import slow_after
from sfumato.errors import ConfigError, ReleaseError
from sfumato.privacy import pld, words
from sfumato.privacy.accounting import account, with_rounding
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate import Certificate, describe, issue
from sfumato.privacy.certificate_cards import certificate_card
from sfumato.privacy.certificate_form import Protected, event_to_dict
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset
from sfumato.privacy.risk import trade_off

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
    ("steps", "delta", "larger"), slow_after(1, [(20_000, 1e-9, 1e-5), (60_000, 1e-5, 1e-8), (100_000, 1e-9, 1e-5)])
)
def test_a_machine_without_extended_precision_finds_the_same(monkeypatch, steps, delta, larger):
    """Its accounts of many sampled steps are larger: by 64 bits' errors, and by a bound on them."""
    stage = Stage(name="sgd", noise_multiplier=1.4, sampling_probability=0.002, count=steps)
    here = issue(description(Plan([stage]), PrivacyBudget(2.0, delta)), private=True)
    monkeypatch.setattr(np, "longdouble", np.float64)
    monkeypatch.setattr(pld, "STEP_ROUNDING", pld.LARGEST_STEP_ROUNDING)
    assert here.recompute() > here.epsilon + larger
    here.verify()
    there = issue(description(Plan([stage]), PrivacyBudget(2.0, delta)), private=True)
    monkeypatch.undo()
    there.verify()
    assert there.recompute() < there.epsilon


@pytest.mark.parametrize("extra", slow_after(2, [1 - 1e-6, 1.05, 0.9]))
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


@pytest.mark.parametrize("delta", slow_after(1, [4e-14, 1e-13, 1e-12]))
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


FREE = {"epsilon": None, "delta": None, "replace_one": None, "accountant": None, "curve": [], "events": [],
        "stages": [], "private": False}  # fmt: skip
SEARCH = {"candidates": ["a", "b"], "chosen": 1, "squared_distance": -0.5}


def put(content, path, value):
    """Replace one value of a copy, or take it away."""
    content = copy.deepcopy(content)
    *parents, last = path
    node = content
    for key in parents:
        node = node[key]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return content


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format_version",), True), (("format_version",), 2), (("format_version",), 1.0), (("private",), 1),
        (("epsilon",), True), (("epsilon",), math.nan), (("epsilon",), math.inf), (("epsilon",), 1001),
        (("epsilon",), 10**400), (("delta",), True), (("delta",), 0.0), (("delta",), 1), (("delta",), math.nan),
        (("neighbours",), "ADD_REMOVE"), (("neighbours",), ["add_remove"]), (("replace_one",), None),
        (("replace_one", "epsilon"), False), (("replace_one", "delta"), ...), (("unit",), None), (("unit", "name"), 1),
        (("unit", "max_rows"), 0), (("unit", "max_rows"), True), (("unit", "max_rows"), 2**53 + 1),
        (("n_public",), None), (("n_public",), True), (("n_public",), 10**400), (("n_public_source",), "guessed"),
        (("accountant",), None), (("accountant", "name"), "RdpAccountant"), (("accountant", "name"), ...),
        (("accountant", "value_discretization_interval"), None),
        (("accountant", "value_discretization_interval"), 1e-9),
        (("accountant", "value_discretization_interval"), True), (("curve", 0), [1e-3, 1.0]),
        (("curve", 0, "epsilon"), -1e-9), (("curve", 0, "delta"), 1.0), (("extra_delta",), True),
        (("extra_delta",), 1.5), (("extra_delta",), math.nan), (("versions", "numpy"), 2), (("versions",), []),
        (("assumptions", 0), None), (("assumptions",), "all"), (("sampling",), None), (("events",), []),
        (("events", 1, "noise_multiplier"), True), (("events", 1, "noise_multiplier"), 0.0099),
        (("events", 1, "noise_multiplier"), 1e10), (("events", 1, "noise_multiplier"), 10**400),
        (("events", 1, "sampling_probability"), True), (("events", 1, "count"), True),
        (("events", 1, "count"), 2**53 + 1),
        (("events", 1, "replace_distance"), 2.1), (("events", 1, "replace_distance"), ...),
        (("events", 1, "extra_delta"), 1e-6), (("events", 1, "extra_delta"), None), (("events", 1, "stage"), "pca"),
        (("events", 1, "repetitions"), {"mean": 3, "shape": 1, "more": 1}), (("events", 1, "repetitions"), {}),
        (("events", 1, "repetitions"), {"mean": True}), (("events", 1), None),
        (("stages", 1), "sgd"), (("stages", 1, "name"), "pca"), (("stages", 1, "share"), 1.01),
        (("stages", 1, "share"), True), (("stages", 1, "epsilon_alone"), ...), (("stages", 1), ...),
        (("search",), None), (("search",), ["a"]), (("search",), {**SEARCH, "candidates": [1]}),
        (("search",), {**SEARCH, "chosen": 2}), (("search",), {**SEARCH, "chosen": True}),
        (("search",), {**SEARCH, "squared_distance": math.nan}),
    ],
    ids=str,
)  # fmt: skip
def test_every_entry_is_of_its_form(path, value):
    with pytest.raises(ReleaseError, match="well-formed certificate") as caught:
        Certificate.from_dict(put(certificate().to_dict(), path, value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("content", [None, [], "x", 1, {}])
def test_only_a_mapping_is_a_certificate(content):
    with pytest.raises(ReleaseError, match="well-formed certificate"):
        Certificate.from_dict(content)


@pytest.mark.parametrize("change", [{}, {"search": SEARCH}, FREE, {"epsilon": 2}], ids=str)
def test_what_is_read_is_written_as_it_was(change):
    content = {**certificate().to_dict(), **change}
    assert json.dumps(Certificate.from_dict(content).to_dict(), sort_keys=True) == json.dumps(content, sort_keys=True)


@pytest.mark.parametrize("key", [key for key in FREE if key != "epsilon"])
def test_without_an_epsilon_nothing_else_is_stated(key):
    content = {**certificate().to_dict(), **FREE}
    Certificate.from_dict(content)
    with pytest.raises(ReleaseError, match="states"):
        Certificate.from_dict({**content, key: certificate().to_dict()[key]})


@pytest.mark.parametrize("private", [True, False])
def test_noise_that_others_drew_has_no_epsilon_of_ours(private):
    """What was measured elsewhere is guaranteed by those who measured: an epsilon beside it would be nobody's."""
    content = {**certificate().to_dict(), "private": private, "measured_elsewhere": True}
    with pytest.raises(ReleaseError, match="states an epsilon of noise that was drawn elsewhere"):
        Certificate.from_dict(content)
    Certificate.from_dict({**content, **FREE})


def test_no_more_than_a_hundred_events():
    content = certificate().to_dict()
    content["events"] *= 51
    with pytest.raises(ReleaseError, match="at most 100"):
        Certificate.from_dict(content)


def test_entries_of_later_versions_are_kept_unread():
    content = {**certificate().to_dict(), "hashes": {"arrays": "00"}}
    found = Certificate.from_dict(content)
    assert found.to_dict() == content
    assert found.further == {"hashes": {"arrays": "00"}}
    assert dataclasses.replace(found, method="other").to_dict() == {**content, "method": "other"}


def test_it_is_frozen_and_typed():
    found = certificate()
    assert found.unit == Protected(name="row", max_rows=1)
    assert found.neighbours is Neighbours.ADD_REMOVE
    assert found.plan == PLAN
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.epsilon = 0.1
    found.content["events"].clear()
    found.to_dict()["unit"]["name"] = "x"
    assert found == certificate()
    assert (found.plan, found.unit_name) == (PLAN, "row")
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found


def test_a_plan_has_the_keys_of_a_certificate_but_private():
    plan, issued = description(PLAN, PrivacyBudget(2.0, 1e-5)), certificate()
    assert list(issued.to_dict()) == [*plan.to_dict(), "private"]
    assert {**plan.to_dict(), "private": True} == issued.to_dict()
    assert issued.to_dict()["events"][0] == event_to_dict(PLAN["pca"])


def test_a_certificate_says_what_an_attacker_finds():
    found = certificate()
    curve = trade_off(found.plan)
    assert (found.risk(0.05), found.advantage()) == (curve.true_positive_rate(0.05), curve.advantage)
    assert found.advantage(neighbours=Neighbours.REPLACE_ONE) > found.advantage()
    assert certificate(private=False).risk() == certificate(private=False).advantage() == 1
    with pytest.raises(ConfigError, match="fpr"):
        found.risk(1.5)
    first, second = words.risks(found)
    assert "100 people whose data are in it" in first
    assert "a coin would find 5" in first
    assert "of groups" in second
    assert not words.risks(certificate(private=False))
    assert first in words.meaning(found)
    assert first in certificate_card(found)
    assert "re-identif" not in " ".join(words.meaning(found)).lower()
