"""Synthetic tables that differ as much as noise and sampling leave open, and one result from an analysis of many.

Each replicate takes another draw of the measurements: what was released, plus noise of the same law once more, plus
what another sample of the population would have moved them by. Fresh rows of the model are weighted to that draw, with
positive weights, and the replicate's rows are drawn by these weights. Rules are kept as in samples: rows that break
some are mended.

A replicate's result differs from the next by what the measurements leave open, and by the replicate's own sampling:
T = (1 + 1/m)·B − V, B the variance of the m results and V the mean of the variances that they state, which is the part
of B that a replicate's finite size adds. It goes to (1 + 1/m)·B as replicates grow.

Free: uses released values only.
Reference: Räisä, Jälkö, Kaski and Honkela 2023 (the parameters' posterior from the noisy measurements, then large
synthetic tables); Hainmueller 2012 (entropy balancing); Raghunathan, Reiter and Rubin 2003 (the rule); Räisä, Jälkö,
Kaski and Honkela 2023 (why it holds under differential privacy, for large synthetic tables). Reiter's rule for
partially synthetic data does not apply.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from sfumato.errors import ConfigError, EstimateError, require_choice, require_integer, require_open_unit
from sfumato.inference.calibration import Calibration
from sfumato.inference.functions import all_functions, cell_functions, refuse_many_columns
from sfumato.inference.table_measurements import MODEL_ROWS, TableMeasurements
from sfumato.inference.times import shown
from sfumato.lenses.chain import shaped
from sfumato.maths.streams import fresh_seed, public_stream
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import Sampler
from sfumato.release.unit_releases import is_nested

FEW_DEGREES = 10
"""Degrees of freedom below which `combine` warns."""
_LABELLED = 0.1  # of the weight of rows, that rows with all labels have at least
_LEAST_SHARE = 0.1  # of (1 + 1/m)·B that is left: fewer replicates may say less than nothing
INDEX = "replicate"
"""The column that tells replicates apart where they are written together."""
MOST_ROWS = 1 << 24
ROWS_EACH = 5
"""Times the public number of rows that a replicate has by default: fewer leave `combine` few degrees of freedom."""
_ROWS_A_DEGREE = 1.5
"""Rows that count, for each total that they follow: with 2 the spread was .83 of noise and sampling, with 5 .94."""
_MORE_ROWS = 1.1  # times as many as would do, as other rows are counted
_MOST_MODEL_ROWS = 4 * MODEL_ROWS
_ROWS_STREAM, _WEIGHTS_STREAM, _DRAW_STREAM = 1, 2, 3


@dataclass(frozen=True, slots=True)
class CombinedResult:
    """The result of one analysis of many replicates, by term.

    Attributes:
        params: means of the results.
        bse: standard errors.
        df: degrees of freedom of the t law of each.
        m: number of replicates.

    Example:
        >>> from sfumato import combine
        >>> combine([(1.0, 0.1), (1.5, 0.1)] * 10).bse.round(3).tolist()
        [0.243]
    """

    params: pd.Series
    bse: pd.Series
    df: pd.Series
    m: int

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided."""
        values = 2 * stats.t.sf(np.abs(self.params / self.bse), self.df)
        return pd.Series(values, index=self.params.index)

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals by term: columns low and high.

        Args:
            level: in (0, 1).
        """
        t = stats.t.ppf((1 + require_open_unit(level=level)) / 2, self.df)
        return pd.DataFrame({"low": self.params - t * self.bse, "high": self.params + t * self.bse})

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return coefficients, standard errors, degrees of freedom, p and intervals by term."""
        columns = {"coef": self.params, "std_error": self.bse, "df": self.df, "p": self.pvalues}
        return pd.DataFrame(columns).join(self.conf_int(level))

    def summary(self, level: float = 0.95) -> str:
        """Return the table as text."""
        table = self.to_frame(level).to_string(float_format=lambda number: shown(number, 4))
        return f"Of {self.m} replicates\n{table}"

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, combined_card

        return combined_card(self.m, self.to_frame(LEVEL))


def combine(results: Sequence[Any]) -> CombinedResult:
    """Put together the results of one analysis of each of a release's replicates.

    Args:
        results: at least 2: fitted models with `params` and `bse`, as those of statsmodels and linearmodels; or pairs
            (value, standard error) of numbers or of series by term.

    Returns:
        Means, standard errors and intervals, by term.

    Raises:
        ConfigError: fewer than 2 results, or of different terms, or without standard errors.

    Example:
        >>> fits = [smf.logit("w ~ x", table).fit() for table in release.replicates(20)]  # doctest: +SKIP
        >>> sfumato.combine(fits)  # doctest: +SKIP
    """
    if not isinstance(results, Sequence) or len(results) < 2:
        raise ConfigError("Expected results of at least 2 replicates, in a list, got fewer.")
    pairs = [_result(result) for result in results]
    terms = pairs[0][0].index
    if not all(value.index.equals(terms) and error.index.equals(terms) for value, error in pairs):
        raise ConfigError("Expected results with the same terms in the same order, got others: a level may be missing.")
    values = np.array([value.to_numpy(dtype=np.float64) for value, _ in pairs])
    within = np.array([error.to_numpy(dtype=np.float64) for _, error in pairs]) ** 2
    m = len(pairs)
    between = (1 + 1 / m) * values.var(axis=0, ddof=1)
    own = within.mean(axis=0)
    variance = np.maximum(between - own, _LEAST_SHARE * between)
    freedom = np.maximum((m - 1) * (variance / np.maximum(between, 1e-300)) ** 2, 1.0)
    if float(freedom.min()) < FEW_DEGREES:
        warnings.warn(
            f"Degrees of freedom are below {FEW_DEGREES}: intervals are wide. Draw more replicates, or more rows in "
            "each (n=).",
            stacklevel=2,
        )
    return CombinedResult(
        pd.Series(values.mean(axis=0), index=terms),
        pd.Series(np.sqrt(variance), index=terms),
        pd.Series(freedom, index=terms),
        m,
    )


def _result(result: object) -> tuple[pd.Series, pd.Series]:
    """Return coefficients and standard errors of one result."""
    if isinstance(result, tuple) and len(result) == 2:
        value, error = result
    else:
        value, error = getattr(result, "params", None), getattr(result, "bse", None)
    if value is None or error is None:
        raise ConfigError(
            f"Expected results with params and bse, or pairs of a value and its standard error, got a "
            f"{type(result).__name__}."
        )
    return _series(value), _series(error)


def _series(value: Any) -> pd.Series:  # noqa: ANN401 - numbers, arrays or series of a caller
    return value if isinstance(value, pd.Series) else pd.Series(np.atleast_1d(np.asarray(value, dtype=np.float64)))


def replicate_codes(
    release: ReleaseValue, m: int, n: int | None, seed: int | None, target: str
) -> Iterator[Mapping[str, Any]]:
    """Yield m tables of rows as a sampler has them: coded, and where there are rules numbers as they are written.

    Raises:
        ConfigError: an argument is outside its domain.
        EstimateError: the release holds no measurements, or too much noise about too many columns.
    """
    m = require_integer(at_least=2, m=m)
    default = min(ROWS_EACH * release.certificate.n_public, MOST_ROWS)
    n = require_integer(at_least=1, n=default if n is None else n)
    if n > MOST_ROWS:
        raise ConfigError(f"Expected n of at most {MOST_ROWS} rows a replicate, got {n=}.")
    require_choice(("population", "table"), target=target)
    seed = fresh_seed() if seed is None else require_integer(at_least=0, seed=seed)
    if is_nested(release):
        raise EstimateError(
            "Expected a release whose rows are records for replicates, got rows above of which a unit has several. "
            "Draw samples of the whole release."
        )
    refuse_many_columns(TableMeasurements(release))  # before the first replicate is asked for
    return _tables(release, m, n, seed, target)


def _tables(release: ReleaseValue, m: int, n: int, seed: int, target: str) -> Iterator[Mapping[str, Any]]:
    size = MODEL_ROWS
    for place in range(m):
        measured, weights = _weighted_rows(release, size, (seed, place), target)
        size = measured.n_rows
        rng = public_stream(seed, place, _DRAW_STREAM)
        yield shaped(release.schema, _WeightedRows(measured, weights)).rows(n, rng)


def _weighted_rows(
    release: ReleaseValue, size: int, stream: tuple[int, int], target: str
) -> tuple[TableMeasurements, np.ndarray]:
    """Return rows of the model and their weights under another draw: `size` rows, or more until enough count.

    Weights that bring rows to many noisy totals differ so much that few rows count; where these are hardly more than
    the totals, the totals cannot all move as their noise does, and replicates would be too sure.

    Raises:
        EstimateError: so much noise, or so rough a model, that no bounded number of rows does.
    """
    while True:
        measured = TableMeasurements(release, (*stream, _ROWS_STREAM), size)
        calibration = measured.calibration(all_functions(measured, cell_functions(measured, measured.names)))
        weights = calibration.draw_weights(public_stream(*stream, _WEIGHTS_STREAM), sampled=target == "population")
        count = float(weights.sum() ** 2 / (weights**2).sum())
        wanted = _ROWS_A_DEGREE * calibration.degrees
        if count >= wanted:
            return measured, weights
        more = math.ceil(_MORE_ROWS * size * wanted / count)
        if more > _MOST_MODEL_ROWS:
            raise _too_unlike(calibration, len(measured.names))
        size = more


def _too_unlike(calibration: Calibration, columns: int) -> EstimateError:
    if not calibration.noisy:
        return EstimateError(
            f"Expected a model whose rows can follow what was measured without noise, got one of {columns} columns in "
            "which few rows count. Ask the release itself; or fit with more calibration_rows."
        )
    return EstimateError(
        f"Expected noise that rows of a model can follow, got {columns} columns with so much that replicates would "
        "spread less than it, and analyses of them would be too sure. Ask the release, which says its noise; or "
        "fit fewer columns, more rows or with a larger epsilon."
    )


class _WeightedRows:
    """Rows of a model under other weights: a sampler of what rules leave free."""

    def __init__(self, measured: TableMeasurements, weights: np.ndarray) -> None:
        known = weights * measured.labelled(measured.free_codes, measured.columns)
        few = known.sum() < _LABELLED * weights.sum()  # cells without a label are dealt anew then, column by column
        self._measured, self._weights = measured, weights if few else known
        self.width, self.possible = len(measured.columns), np.ones(1, dtype=bool)
        self.class_column: str | None = None

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        assert classes is None  # replicates are asked for no class
        measured, ends = self._measured, np.cumsum(self._weights)
        chosen = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), ends.size - 1)
        return {name: measured.drawn_again(name, chosen, rng) for name in measured.columns}

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Replicates are drawn whole: nothing of a row is given."""
        raise NotImplementedError
