"""What a table of many columns takes, from public facts: what cannot be fitted is refused before a record is read."""

from __future__ import annotations

from sfumato.errors import SchemaError

MOST_ENTRIES = 1 << 25  # of all classes' second moments: a quarter GiB, of which a fit holds several copies


def fits(n_matrices: int, dimension: int) -> bool:
    """Whether second moments of that many matrices and entries of a record's vector fit into memory."""
    return n_matrices * dimension**2 <= MOST_ENTRIES


def require_fits(n_classes: int, dimension: int, n_cells: int, n_columns: int) -> None:
    """Refuse a table that cannot be fitted even with the shortest vectors.

    Args:
        n_classes: of the target, or 1.
        dimension: least number of entries of a record's vector.
        n_cells: in which its columns are counted by class.
        n_columns: of the table, but for the target.

    Raises:
        SchemaError: its second moments or its tables do not fit into memory.
    """
    if not fits(1, dimension):
        raise SchemaError(
            f"Expected at most {int(MOST_ENTRIES**0.5)} entries for the second moments, got {dimension} from "
            f"{n_columns} columns: one for a number, one per level for labels, one more where a number may be missing. "
            "Leave columns out (`kind: identifier`) or merge rare levels (`other`)."
        )
    if n_classes * n_cells > MOST_ENTRIES:
        raise SchemaError(
            f"Expected at most {MOST_ENTRIES // n_classes} cells in the columns' tables of {n_classes} classes, got "
            f"{n_cells} from {n_columns} columns: up to 37 for a number, one per level for labels. Leave columns out "
            "(`kind: identifier`), merge rare levels (`other`), name a target of fewer classes or none."
        )
