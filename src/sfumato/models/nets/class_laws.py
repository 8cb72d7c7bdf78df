"""What brings the rows of a class to that class's marginals, after all rows have been brought to those of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.maths.arrays import require_array, require_well_formed
from sfumato.models.nets.flat import RankVectors

_LEAST = 1e-12  # of a cell: laws rise strictly, so a rank is one number
_LARGEST = 1e6


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassLaws:
    """Shifts of one-hot outputs by class, and laws of numbers over their cells by class.

    Attributes:
        shifts: added to outputs, shape (k, d); 0 for numbers.
        before: P(cell | class) of numbers as the network has them, columns side by side, shape (k, cells).
        after: as they are to be, shape (k, cells).
    """

    shifts: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def ranks(self, values: np.ndarray, classes: np.ndarray, vectors: RankVectors) -> np.ndarray:
        """Return vectors whose numbers are moved to the laws of their classes; other entries stay.

        Args:
            values: shape (n, d); numbers are ranks among all rows.
            classes: shape (n,).
            vectors: says where numbers are, and where their cells end.
        """
        result = values.copy()
        start = 0
        for place, ends in vectors.ends:
            cells = slice(start, start + ends.size)
            start += ends.size
            edges = np.append(0.0, ends)
            for c in np.unique(classes):
                mine = classes == c
                share = np.interp(values[mine, place], edges, _risen(self.before[c, cells]))
                result[mine, place] = np.interp(share, _risen(self.after[c, cells]), edges)
        return result

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return it as a release holds it."""
        return {"class_shifts": self.shifts, "class_before": self.before, "class_after": self.after}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], vectors: RankVectors, k: int) -> ClassLaws:
        """Read what `to_arrays` made; a stranger may have written it.

        Raises:
            ReleaseError: an array is missing or malformed.
        """
        cells = sum(ends.size for _, ends in vectors.ends)
        found = cls(
            require_array(arrays, "class_shifts", np.float64, (k, vectors.dimension)),
            require_array(arrays, "class_before", np.float64, (k, cells)),
            require_array(arrays, "class_after", np.float64, (k, cells)),
        )
        for name, law in (("class_before", found.before), ("class_after", found.after)):
            require_well_formed(bool(((law >= 0) & (law <= 1)).all()), name)
        require_well_formed(bool((np.abs(found.shifts) <= _LARGEST).all()), "class_shifts")
        return found


def _risen(law: np.ndarray) -> np.ndarray:
    """Return the cumulated law from 0 to 1, strictly rising, shape (cells + 1,)."""
    ends = np.append(0.0, np.cumsum(law + _LEAST))
    return ends / ends[-1]
