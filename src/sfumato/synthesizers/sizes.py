"""What a table of many columns takes, from public facts: what cannot be fitted is refused before a record is read."""

from __future__ import annotations

from sfumato.errors import SchemaError

MOST_ENTRIES = 1 << 25  # of all classes' second moments: a quarter GiB, of which a fit holds several copies


def fits(n_classes: int, dimension: int) -> bool:
    """Whether second moments of that many classes and entries of a record's vector fit into memory."""
    return n_classes * dimension**2 <= MOST_ENTRIES


def require_fits(n_classes: int, dimension: int, n_columns: int) -> None:
    """Refuse a table that cannot be fitted even with the shortest vectors.

    Args:
        n_classes: of the target, or 1.
        dimension: least number of entries of a record's vector.
        n_columns: of the table, but for the target.

    Raises:
        SchemaError: its second moments do not fit into memory.
    """
    if fits(n_classes, dimension):
        return
    most = int((MOST_ENTRIES / n_classes) ** 0.5)
    classes = "one class" if n_classes == 1 else f"{n_classes} classes"
    way_out = "" if n_classes == 1 else ", name a target of fewer classes or none"
    raise SchemaError(
        f"Expected at most {most} entries for the second moments of {classes}, got {dimension} from {n_columns} "
        "columns: one for a number, one per level for labels, two more where a number may be missing. Leave columns "
        f"out (`kind: identifier`), merge rare levels (`other`){way_out}."
    )
