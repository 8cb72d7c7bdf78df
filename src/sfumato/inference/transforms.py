"""Functions of formulas that depend on other rows: means, deviations and polynomials of weighted rows.

Formulaic's own take each row once; the rows of a model count by their weights, which bring them to what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.errors import ConfigError


def transforms(weights: np.ndarray) -> Mapping[str, Any]:
    """Return the functions of formulas that depend on more than a row, for rows of these weights, shape (N,)."""
    weighted = _Weighted(weights)
    return {
        "np": np,
        "center": weighted.center,
        "scale": weighted.scale,
        "standardize": weighted.standardize,
        "poly": weighted.poly,
        "lag": _lag,
    }


class _Weighted:
    """Transforms of a column of weighted rows; missing values count in none."""

    def __init__(self, weights: np.ndarray) -> None:
        self._weights = weights

    def center(self, x: Any) -> np.ndarray:  # noqa: ANN401 - what a formula holds
        """Return values less their mean."""
        return self.scale(x, scale=False)

    def standardize(self, x: Any, center: bool = True, rescale: bool = True) -> np.ndarray:  # noqa: ANN401
        """Return `scale`, by patsy's name."""
        return self.scale(x, center=center, scale=rescale)

    def scale(self, x: Any, center: bool = True, scale: bool = True) -> np.ndarray:  # noqa: ANN401
        """Return values less their mean, divided by their standard deviation."""
        values, weights = self._numbers(x)
        values = values - weights @ np.nan_to_num(values) if center else values
        if not scale:
            return values
        square = float(weights @ np.nan_to_num(values) ** 2)
        if not square > 0:
            raise ConfigError("the deviation of a column does not stand out of noise")
        return values / np.sqrt(square)

    def poly(self, x: Any, degree: int = 1, raw: bool = False) -> Any:  # noqa: ANN401
        """Return powers of values; unless `raw`, polynomials without correlation, whose squares add up to 1."""
        from formulaic.materializers.types import FactorValues

        values, weights = self._numbers(x)
        names = tuple(str(k) for k in range(1, degree + 1))
        if raw:
            return FactorValues(np.stack([values**k for k in range(1, degree + 1)], axis=1), column_names=names)
        known = np.nan_to_num(values)
        standard = self.scale(known) if degree else known
        powers = np.stack([np.nan_to_num(standard) ** k for k in range(degree + 1)], axis=1)
        gram = (powers * weights[:, None]).T @ powers
        if np.linalg.eigvalsh(gram).min() <= 0:
            raise ConfigError("polynomials of that degree do not stand out of noise")
        own = powers @ np.linalg.inv(np.linalg.cholesky(gram)).T / np.sqrt(self._weights.sum())
        own[np.isnan(values)] = np.nan
        return FactorValues(own[:, 1:], column_names=names)

    def _numbers(self, x: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401
        """Return values as numbers, and the rows' parts of the whole, 0 where they are missing."""
        values = np.asarray(x, dtype=np.float64)
        if values.shape != self._weights.shape:
            raise ConfigError("a column of numbers was expected")
        weights = np.where(np.isnan(values), 0.0, self._weights)
        whole = float(weights.sum())
        if not whole > 0:
            raise ConfigError("a column does not stand out of noise")
        return values, weights / whole


def _lag(*_: object, **__: object) -> None:
    """Refuse: the rows of a release have no order."""
    raise ConfigError("rows have no order, so that there is none before another")
