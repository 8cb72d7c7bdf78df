"""The events of a certificate as plain values, and read back: a stranger may have written them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import ConfigError, ReleaseError
from sfumato.privacy.plan import Plan, Stage, Subset
from sfumato.privacy.repetitions import Repetitions


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
