"""What every private estimator does: check, calibrate, charge, certify.

Bounds, clip norm and number of rows are public, and required or explicit.
"""

from __future__ import annotations

import itertools
import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.columns.kinds import Continuous, Identifier
from sfumato.data_ledger.journal import Journal
from sfumato.errors import ConfigError, DataError, RepeatedFitWarning
from sfumato.estimators.records import MOST_WEIGHED_ROWS, Ball, NumericRecords, open_rows
from sfumato.estimators.row_columns import of_units, of_weights
from sfumato.fitting.account import Account
from sfumato.fitting.arguments import noise_source, nominal_budget, number_of_rows, require_room
from sfumato.fitting.driver import AccountHolder, Driver, description_of
from sfumato.maths.streams import fresh_seed, public_stream
from sfumato.measurements import Measurement
from sfumato.mechanisms.queries import Noisy
from sfumato.models.mixtures.factors import FactorModel
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.privacy.budget import NonPrivate, PrivacyBudget, default_delta
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.certificate_form import Protected
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.privacy.words import of_process
from sfumato.release import SourceForm
from sfumato.release_front import Release
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import Weight
from sfumato.schema.unit import Unit

Model = TypeVar("Model", FactorModel, GaussianMixture)

_FITS = itertools.count(1)  # of this process, of all estimators
_REPEATED = (
    "This process fitted an estimator before. Each fit costs its own epsilon, those of a search (GridSearchCV) and of "
    "cross-validation too, and no certificate adds them up: give each the ledger of the data, fit(..., ledger=...)."
)
_TELL_NO_CELL = (  # beginnings of scikit-learn's messages
    "X has ",
    "The feature names should match",
    "Found array with",
    "Input X contains",
)


@dataclass(frozen=True)
class Session(AccountHolder):
    """What a fit gets: the records, the account, the sources of randomness, and public facts.

    Attributes:
        records: in chunks.
        ball: the public map to the unit ball.
        account: what may be measured, and the noise for it.
        rng: public randomness.
        n_public: the declared number of rows.
    """

    records: NumericRecords
    ball: Ball
    account: Account
    rng: np.random.Generator
    n_public: int

    @property
    def worth(self) -> float:
        """What a record that counts whole is worth: 1, or with weights their bound."""
        return 1.0 if self.records.weight is None else self.records.weight.upper


@dataclass(eq=False, repr=False, kw_only=True)
class Public:
    """What every estimator takes: see any of them."""

    epsilon: float | NonPrivate = 1.0
    delta: float | None = None
    n_public: int | None = None
    bounds: Any = None
    seed: int | None = None


class PrivateEstimator(Public, BaseEstimator, ABC):
    """Base of the estimators. Attributes of a fitted one that end in an underscore are released values.

    Subclasses say their arguments, and check them in `fit`, as scikit-learn wants it.
    """

    method: ClassVar[str]
    _isotropic: ClassVar[bool] = False

    clip_norm: float | None

    certificate_: Certificate
    releases_: tuple[Noisy, ...]
    n_features_in_: int

    @abstractmethod
    def _stages(self, records: NumericRecords) -> tuple[Stage, ...]:
        """Return the stages with relative noise multipliers, after checking every setting beside public facts."""

    @abstractmethod
    def _run(self, session: Session) -> list[Noisy]:
        """Fit, charging every stage in order; set the attributes; return what was released."""

    @abstractmethod
    def _sampler(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return name and settings of the release's sampler, and its arrays."""

    @abstractmethod
    def _measured(self, noisy: Noisy) -> str:
        """Return the name of what a release measured."""

    def fit(
        self,
        X: Any,  # noqa: ANN401 - anything with rows
        y: object = None,
        sample_weight: Any = None,  # noqa: ANN401
        *,
        weight_upper: float | None = None,
        bounds: Any = None,  # noqa: ANN401
        units: Any = None,  # noqa: ANN401
        max_rows: int | None = None,
        ledger: str | os.PathLike[str] | None = None,
        rows_are_records: bool = False,
    ) -> Self:
        """Fit under differential privacy.

        Privacy: (ε, δ) as `certificate_` says. All checks come before the first charge; no cell is looked at by them,
            and no cell stops the fit: a record with a missing cell counts as the middle of the bounds, and what lies
            outside them is clamped. Weights change neither events nor noise: a record adds a part of what it adds
            without them, in [0, 1]. Proof: docs/proofs/weights.md.

        Args:
            X: numbers, shape (n, q): an array, possibly mapped from a file, a frame, or a path to a Parquet file.
            y: ignored.
            sample_weight: how many of the population each row stands for, shape (n,): a list, an array or a column of
                a frame. One above `weight_upper` counts as this, one that is missing, no number or below 0 as 0. The
                certificate knows weights by the column's name. By default each row counts once.
            weight_upper: the largest weight that counts, public, never the maximum of the weights; noise is that of
                rows of this weight. Required beside `sample_weight`.
            bounds: (lower, upper) of the columns, public; by default those of the constructor.
            units: whose each row is, shape (n,): a list, an array or a column of a frame with names or whole numbers
                (below 2^53; longer ones as text) of the persons who are protected, with all their rows. A row of
                nobody, a missing name, is left out. By default each row is protected by itself. The certificate and a
                ledger know units by the column's name.
            max_rows: the most rows of a unit that count, public; which, follows from the unit's rows alone. Noise is
                so many times as large. Required beside `units`.
            ledger: the account of these data, a file that `create_ledger` made: it is charged the whole plan before a
                record is read, and the charge stands whatever becomes of the fit.
            rows_are_records: the holder's word, where a query, a plan, a stream or a function computes the rows of X,
                that each is made of one record alone.

        Raises:
            BudgetExceededError: the ledger cannot pay for the fit. Nothing was charged.
            ConfigError: a setting is outside its domain.
            DataError: the data cannot be read as numbers.
        """
        n_public = number_of_rows(self.n_public)
        budget = self._budget(n_public)
        records = of_weights(open_rows(X), X, sample_weight, weight_upper)
        records = of_units(records, X, units, max_rows, in_ledger=ledger is not None)
        if records.weight is not None and n_public > MOST_WEIGHED_ROWS:
            raise ConfigError(f"Expected n_public of at most {MOST_WEIGHED_ROWS} beside weights, got {n_public}.")
        own = records.unit
        unit = Protected(name="row", max_rows=1) if own is None else Protected(name=own.column, max_rows=own.max_rows)
        ball = Ball.of(
            self.bounds if bounds is None else bounds, self.clip_norm, records.dimension, isotropic=self._isotropic
        )
        plan = _calibrated(Plan(self._stages(records)), budget or nominal_budget(n_public))
        require_room(plan, n_public)
        driver = Driver(
            plan=plan,
            ledger=Ledger(plan, budget),
            noise=noise_source(budget, self.seed),
            method=self.method,
            methods=(type(self),),
            unit=unit,
            journal=Journal(None, {}),
            source=records.source,
            rows_are_records=rows_are_records or records.rows_are_records,
        )
        rng = public_stream(fresh_seed() if self.seed is None else self.seed)
        number = next(_FITS)
        if number > 1 and driver.noise.private and ledger is None:
            warnings.warn(_REPEATED, RepeatedFitWarning, stacklevel=2)
        with driver.charged(ledger) as noise:
            # only now does a fitted estimator change: one whose records cannot be read stays as it was
            account = Account(driver.ledger, noise)
            self.releases_ = tuple(self._run(Session(records, ball, account, rng, n_public)))
            description = _described(
                plan, budget, methods=(), method=self.method, unit=unit, n_public=n_public, weight=records.weight,
                computed=driver.computed,
            )  # fmt: skip
            certificate = driver.certificate(description)
            self.certificate_ = replace(
                certificate, process_fit=number, assumptions=(of_process(number), *certificate.assumptions)
            )
            self.n_features_in_, self._unit, self._columns = records.dimension, records.unit, records.columns
            if records.names is not None:
                self.feature_names_in_ = np.array(records.names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            if ledger is not None:
                driver.final(self.release())
        return self

    @property
    def certificate(self) -> Certificate:
        """What the fit cost."""
        check_is_fitted(self)
        return self.certificate_

    def release(self) -> Release:
        """Return what was fitted as a release, with its certificate: to save, load and sample.

        Its schema has the public bounds, and the columns of the records where they had names, else x0, x1, …; samples
        are clamped to the bounds; of k-means they are its centres. Its measurements are `releases_`, in the units in
        which they were released.

        Privacy: none (a function of released values).

        Raises:
            NotFittedError: nothing was fitted.
        """
        check_is_fitted(self)
        sides = zip(self._columns, self._ball.lower, self._ball.upper, strict=True)
        kinds = {name: Continuous(lower=float(lower), upper=float(upper)) for name, lower, upper in sides}
        settings, parameters = self._sampler()
        if self.certificate_.weight is not None:
            settings["weight"] = self.certificate_.weight.column
        return Release(
            schema=self._schema(kinds),
            certificate=self.certificate_,
            sampler=settings,
            parameters={name: np.array(value, dtype=np.float64) for name, value in parameters.items()},
            measurements=tuple(
                Measurement(self._measured(n), n.value, n.noise_std, n.symmetric, n.origin) for n in self.releases_
            ),
            form=SourceForm("pandas", dict.fromkeys(kinds, pa.float64()), dict.fromkeys(kinds, "float64")),
        )

    def _schema(self, kinds: dict[str, Continuous]) -> Schema:
        stated = self.certificate_.weight
        weight = None if stated is None else Weight(column=stated.column, upper=stated.upper, total=stated.total)
        hidden = {part.column: Identifier() for part in (self._unit, weight) if part is not None}
        return Schema(columns={**hidden, **kinds}, unit=self._unit, weight=weight, rows=self.certificate_.n_public)

    def _budget(self, n_public: int) -> PrivacyBudget | None:
        if isinstance(self.epsilon, NonPrivate):
            return None
        budget = PrivacyBudget(self.epsilon, default_delta(n_public) if self.delta is None else self.delta)
        budget.warn_if_delta_is_large(n_public)
        return budget

    def _points(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the caller's own rows, checked as scikit-learn checks them, as vectors of the ball."""
        check_is_fitted(self)
        problem = ""
        try:
            return self._ball.inside(np.asarray(validate_data(self, X, reset=False, dtype=np.float64)))
        except ValueError as error:
            reason = str(error)
            problem = reason if reason.startswith(_TELL_NO_CELL) else "Reshape your data, or convert it."
        except Exception:  # noqa: BLE001 - somebody's cells may raise anything, with themselves in it
            problem = "Convert it to an array."
        raise DataError(f"Expected finite numbers of shape (n, {self.n_features_in_}), as in the fit. {problem}")

    def _stream(self, seed: int | None) -> np.random.Generator:
        return public_stream(fresh_seed() if seed is None else seed, 1)

    _ball: Ball
    _unit: Unit | None
    _columns: tuple[str, ...]

    def __sklearn_tags__(self) -> Tags:
        """Say that a fit takes whatever the cells are: checking them would release something."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        return tags


class DensityEstimator(PrivateEstimator, Generic[Model]):
    """An estimator whose model has densities."""

    _inner: Model

    def score_samples(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the log density of each row, in data units, shape (n,)."""
        points = self._points(X)
        return self._inner.log_densities(points) - float(np.log(self._ball.scale).sum())

    def score(self, X: Any, y: object = None) -> float:  # noqa: ANN401
        """Return the mean log density of rows."""
        return float(self.score_samples(X).mean())


# estimators are fitted again and again with one plan, of public facts
_calibrated = lru_cache(maxsize=64)(calibrate)
_described = lru_cache(maxsize=64)(description_of)
