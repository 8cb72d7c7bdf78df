"""The form of a certificate that a stranger may have written: types, ranges, and a bound on the work to check it.

The events of a certificate as plain values, and read back: a stranger may have written them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.errors import ConfigError, ReleaseError
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset
from sfumato.privacy.repetitions import Repetitions

FORMAT_VERSION = 1
_LARGEST_EPSILON = 1_000.0
_LARGEST_COUNT = 2**53
_MOST_EVENTS = 100
_NOISE_RANGE = (0.01, 1e9)
_INTERVAL_RANGE = (4e-6, 1.0)
_ACCOUNTANTS = ("PLDAccountant", "RdpAccountant")

_NEIGHBOURS = tuple(neighbours.value for neighbours in Neighbours)

_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "format_version": int,
    "method": str,
    "versions": dict,
    "private": bool,
    "epsilon": (float, int, type(None)),
    "delta": (float, type(None)),
    "neighbours": str,
    "replace_one": (dict, type(None)),
    "unit": dict,
    "n_public": int,
    "n_public_source": str,
    "sampling": str,
    "accountant": (dict, type(None)),
    "curve": list,
    "extra_delta": (float, int),
    "events": list,
    "stages": list,
    "assumptions": list,
}


def malformed(content: object) -> str | None:
    """Return what is wrong with a certificate's content, or None; its events are looked at one by one elsewhere."""
    if not isinstance(content, Mapping):
        return "it is not a mapping"
    for key, kind in _KEYS.items():
        if not isinstance(content.get(key, ...), kind):
            return f"{key!r} is missing or of the wrong type"
    if content["format_version"] != FORMAT_VERSION:
        return f"its format_version is {content['format_version']!r}"
    return _malformed_facts(content) or (_malformed_none if content["epsilon"] is None else _malformed_cost)(content)


def _malformed_facts(content: Mapping[str, Any]) -> str | None:
    if not _is_count(content["n_public"]) or content["neighbours"] not in _NEIGHBOURS:
        return "'n_public' or 'neighbours' has an impossible value"
    unit = content["unit"]
    if not isinstance(unit.get("name"), str) or not _is_count(unit.get("max_rows")):
        return "'unit' has no name or no max_rows"
    if not _is_text(content["versions"].values()) or not _is_text(content["assumptions"]):
        return "'versions' or 'assumptions' holds something else than text"
    search = content.get("search", {"candidates": []})
    if not isinstance(search, Mapping) or not isinstance(search.get("candidates"), list):
        return "'search' lists no candidates"
    if not _is_text(search["candidates"]):
        return "'search' lists something else than text"
    if not _is_number(content["extra_delta"], 0, 1):
        return "'extra_delta' has an impossible value"
    return None


def _malformed_none(content: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a certificate of a release without noise, or None."""
    if content["private"] or content["events"] or content["stages"]:
        return "it states no epsilon, and yet that the release is private or was charged for"
    return None


def _malformed_cost(content: Mapping[str, Any]) -> str | None:
    """Return what is wrong with how a certificate states its epsilon, or None."""
    accountant = content["accountant"]
    if accountant is None or content["delta"] is None or content["replace_one"] is None:
        return "it states an epsilon without its delta, accountant or replace_one"
    if not {"name", "value_discretization_interval"} <= set(accountant):
        return "'accountant' has no name or no interval"
    interval = accountant["value_discretization_interval"]
    grid = (interval is None) == (accountant["name"] == "RdpAccountant")
    if (
        accountant["name"] not in _ACCOUNTANTS
        or not grid
        or not (interval is None or _is_number(interval, *_INTERVAL_RANGE))
    ):
        return "'accountant' has an unknown name or an impossible interval"
    if not {"epsilon", "delta"} <= set(content["replace_one"]):
        return "'replace_one' has no epsilon or no delta"
    if content["replace_one"]["delta"] != content["delta"]:
        return "'replace_one' has another delta than its events were accounted at"
    points = [content, content["replace_one"], *content["curve"]]
    if not all(isinstance(point, Mapping) and _is_point(point) for point in points):
        return "an epsilon or delta has an impossible value"
    return _malformed_stages(content)


def _malformed_stages(content: Mapping[str, Any]) -> str | None:
    events, stages = content["events"], content["stages"]
    if not 1 <= len(events) <= _MOST_EVENTS or not all(isinstance(entry, Mapping) for entry in [*events, *stages]):
        return f"it does not list 1 to {_MOST_EVENTS} events, and their stages"
    if [event.get("stage") for event in events] != [stage.get("name") for stage in stages]:
        return "'events' and 'stages' do not belong together"
    for event in events:
        if not isinstance(event.get("stage"), str) or not _is_number(event.get("noise_multiplier"), *_NOISE_RANGE):
            return "an event has no stage or an impossible noise_multiplier"
        if not _is_count(event.get("count")):
            return "an event has an impossible count"
    for stage in stages:
        if not _is_number(stage.get("epsilon_alone"), 0, _LARGEST_EPSILON) or not _is_number(
            stage.get("share"), 0, 1.001
        ):
            return "a stage has an impossible epsilon_alone or share"
    return None


def _is_point(point: Mapping[str, Any]) -> bool:
    epsilon, delta = point.get("epsilon"), point.get("delta")
    return _is_number(epsilon, 0, _LARGEST_EPSILON) and _is_number(delta, 0, 1) and 0 < delta < 1  # type: ignore[operator]


def _is_number(value: object, lowest: float, highest: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return lowest <= value <= highest and (isinstance(value, int) or math.isfinite(value))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LARGEST_COUNT


def _is_text(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def event_to_dict(stage: Stage) -> dict[str, Any]:
    """Return a stage's event as plain values: one entry of a certificate's `events`."""
    event = {
        "stage": stage.name,
        "type": stage.type,
        "noise_multiplier": stage.noise_multiplier,
        "sampling_probability": stage.sampling_probability,
        "count": stage.count,
        "replace_distance": stage.replace_distance,
    }
    if stage.extra_delta:
        event["extra_delta"] = stage.extra_delta
    if stage.subset is not None:
        event |= {"subset_size": stage.subset.size, "source_size": stage.subset.source_size}
    if stage.repetitions is not None:
        event["repetitions"] = {"mean": stage.repetitions.mean, "shape": stage.repetitions.shape}
    return event


def plan_of(events: Sequence[Mapping[str, Any]]) -> Plan | None:
    """Return the plan that a stranger's list of events stands for; None of no event."""
    stages = list(map(stage_from_dict, events))
    problem = None
    try:
        return Plan(stages) if stages else None
    except ConfigError as error:
        problem = str(error)
    raise ReleaseError(f"Expected well-formed events in the certificate. {problem}")


def stage_from_dict(event: Mapping[str, Any]) -> Stage:
    """Return the stage that one entry of a certificate's `events` stands for.

    Raises:
        ReleaseError: the entry is malformed.
    """
    problem = None
    try:
        stage = Stage(
            name=str(event["stage"]),
            noise_multiplier=event["noise_multiplier"],
            sampling_probability=event["sampling_probability"],
            subset=Subset(event["subset_size"], event["source_size"]) if event["type"] == "subset_gaussian" else None,
            count=event["count"],
            extra_delta=event.get("extra_delta", 0.0),
            replace_distance=event["replace_distance"],
            repetitions=Repetitions(**event["repetitions"]) if "repetitions" in event else None,
        )
        if stage.type != event["type"]:
            problem = f"the type {event['type']!r} does not fit the event"
    except (KeyError, TypeError, ConfigError) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        raise ReleaseError(f"Expected a well-formed event in the certificate, but {problem}.")
    return stage  # type: ignore[possibly-undefined]
