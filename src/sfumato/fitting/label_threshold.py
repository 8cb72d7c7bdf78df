"""How many records a label needs, to be kept by a fit that estimates which labels there are: from public facts."""

from __future__ import annotations

from sfumato.columns.open import OpenKind
from sfumato.fitting.discovery import DOMAINS, OTHER, WORDED
from sfumato.fitting.domain_counts import domain_counts
from sfumato.mechanisms.unlisted_words import threshold_of
from sfumato.privacy.plan import Plan
from sfumato.schema.schema import Schema

_MOST_NAMES = 6


def label_threshold(plan: Plan, schema: Schema) -> float | None:
    """Return the noisy count from which on a fit keeps a label that nobody listed; half of those with so many are kept.

    A constant of plan and schema. It counts rows, or units, of which discovery reads one row each. None where no column
    may hold such labels.

    Args:
        plan: calibrated, of a method that discovers.
        schema: what is public of the table.
    """
    worded = [name for name, kind in schema.open.items() if kind in WORDED]
    if not worded:
        return None
    kinds: dict[str, OpenKind] = {name: "categorical" if name in worded else k for name, k in schema.open.items()}
    stage = plan[DOMAINS]
    noise_std = stage.noise_multiplier * domain_counts(schema, kinds).norm_bound
    return threshold_of(stage.extra_delta, noise_std=noise_std, columns=len(worded), unit_rows=1)


def label_forecast(plan: Plan, schema: Schema) -> str:
    """Say how rare a label may be that nobody listed, and still be kept; nothing where no column may hold such."""
    least = label_threshold(plan, schema)
    if least is None:
        return ""
    names = [repr(name) for name, kind in schema.open.items() if kind in WORDED]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    records = "rows" if schema.unit is None else f"units (one row of each {schema.unit.column!r} is read)"
    return (
        f"labels of {', '.join(names[:_MOST_NAMES])}{more} are kept from about {least:.0f} {records} on; rarer ones "
        f"become {OTHER!r}, unless `categories` lists them or `parents` groups them"
    )
