"""What every private estimator does: check, calibrate, charge, certify.

Bounds, clip norm and number of rows are public, and required or explicit.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.columns.kinds import Continuous, Identifier
from sfumato.data_ledger.journal import Journal
from sfumato.errors import DataError
from sfumato.estimators.records import Ball, NumericRecords, open_rows
from sfumato.estimators.units import of_units
from sfumato.fitting.account import Account
from sfumato.fitting.arguments import noise_source, nominal_budget, number_of_rows, require_room
from sfumato.fitting.driver import AccountHolder, Driver, description_of
from sfumato.maths.streams import fresh_seed, public_stream
from sfumato.measurements import Measurement
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.budget import NonPrivate, PrivacyBudget, default_delta
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import Certificate, Description
from sfumato.privacy.certificate_form import Protected
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.release import SourceForm
from sfumato.release_front import Release
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit

_TELL_NO_CELL = (  # beginnings of scikit-learn's messages
    "X has ",
    "The feature names should match",
    "Found array with",
    "Input X contains",
)


@dataclass(frozen=True)
class Session(AccountHolder):
    """What a fit gets: the records, the account, the doors of randomness, and public facts.

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
    def dimension(self) -> int:
        """Return q."""
        return self.records.dimension


class PrivateEstimator(BaseEstimator, ABC):
    """Base of the estimators. Attributes of a fitted one that end in an underscore are released values.

    Subclasses take these arguments, and check them in `fit`, as scikit-learn wants it.

    Args:
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
        n_public: the public number of rows; required.
        bounds: (lower, upper) of the columns, public; required here or in `fit`.
        clip_norm: norm beyond which records are shrunk, where half the width of a column's bounds is 1; by default √q,
            which changes nothing within the bounds. Where most records lie well inside, less means less noise.
        seed: for tests and papers only: reproducible noise, and a certificate that says it is not private.
    """

    method: ClassVar[str]
    _isotropic: ClassVar[bool] = False

    epsilon: float | NonPrivate
    delta: float | None
    n_public: int | None
    bounds: Any
    clip_norm: float | None
    seed: int | None

    certificate_: Certificate
    releases_: tuple[Noisy, ...]
    n_features_in_: int

    @abstractmethod
    def _stages(self, dimension: int) -> tuple[Stage, ...]:
        """Return the stages with relative noise multipliers, after checking every setting."""

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
        *,
        bounds: Any = None,  # noqa: ANN401
        units: Any = None,  # noqa: ANN401
        max_rows: int | None = None,
        ledger: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit under differential privacy.

        Privacy: (ε, δ) as `certificate_` says. All checks come before the first charge; no cell is looked at by them,
            and no cell stops the fit: a record with a missing cell counts as the middle of the bounds, and what lies
            outside them is clamped.

        Args:
            X: numbers, shape (n, q): an array, possibly mapped from a file, a frame, or a path to a Parquet file.
            y: ignored.
            bounds: (lower, upper) of the columns, public; by default those of the constructor.
            units: whose each row is, shape (n,): a list, an array or a column of a frame with names or whole numbers
                (below 2^53; longer ones as text) of the persons who are protected, with all their rows. A row of
                nobody, a missing name, is left out. By default each row is protected by itself. The certificate and a
                ledger know units by the column's name.
            max_rows: the most rows of a unit that count, public; which, follows from the unit's rows alone. Noise is
                so many times as large. Required beside `units`.
            ledger: the account of these data, a file that `create_ledger` made: it is charged the whole plan before a
                record is read, and the charge stands whatever becomes of the fit.

        Raises:
            BudgetExceededError: the ledger cannot pay for the fit. Nothing was read or charged.
            ConfigError: a setting is outside its domain.
            DataError: the data cannot be read as numbers.
        """
        n_public = number_of_rows(self.n_public)
        budget = self._budget(n_public)
        records = of_units(open_rows(X), X, units, max_rows, in_ledger=ledger is not None)
        unit = _protected(records)
        ball = Ball.of(
            self.bounds if bounds is None else bounds, self.clip_norm, records.dimension, isotropic=self._isotropic
        )
        stages = self._stages(records.dimension)
        plan = _calibrated(Plan(stages), budget or nominal_budget(n_public))
        require_room(plan, n_public)
        driver = Driver(
            plan=plan,
            ledger=Ledger(plan, budget),
            noise=noise_source(budget, self.seed),
            method=self.method,
            methods=(type(self),),
            unit=unit,
            journal=Journal(None, {}),
        )
        rng = public_stream(fresh_seed() if self.seed is None else self.seed)
        with driver.charged(ledger) as noise:
            # only now does a fitted estimator change: one whose records cannot be read stays as it was
            account = Account(driver.ledger, noise)
            self.releases_ = tuple(self._run(Session(records, ball, account, rng, n_public)))
            self.certificate_ = driver.certificate(_described(type(self), plan, budget, n_public, unit))
            self.n_features_in_, self._unit = records.dimension, records.unit
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
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        lower, upper = self._ball.lower, self._ball.upper
        kinds = {n: Continuous(lower=float(a), upper=float(b)) for n, a, b in zip(names, lower, upper, strict=True)}
        settings, parameters = self._sampler()
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
        rows = self.certificate_.n_public
        if self._unit is None:
            return Schema(columns=kinds, rows=rows)
        return Schema(columns={self._unit.column: Identifier(), **kinds}, unit=self._unit, rows=rows)

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
            said = str(error)
            problem = said if said.startswith(_TELL_NO_CELL) else "Reshape your data, or convert it."
        except Exception:  # noqa: BLE001 - somebody's cells may raise anything, with themselves in it
            problem = "Convert it to an array."
        raise DataError(f"Expected finite numbers of shape (n, {self.n_features_in_}), as in the fit. {problem}")

    def _stream(self, seed: int | None) -> np.random.Generator:
        return public_stream(fresh_seed() if seed is None else seed, 1)

    _ball: Ball
    _unit: Unit | None

    def __sklearn_tags__(self) -> Tags:
        """Say that a fit takes whatever the cells are: checking them would release something."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        return tags


@lru_cache(maxsize=64)
def _calibrated(plan: Plan, budget: PrivacyBudget) -> Plan:
    """Calibrate a plan; estimators are fitted again and again with one plan, of public facts."""
    return calibrate(plan, budget)


@lru_cache(maxsize=64)
def _described(
    method: type[PrivateEstimator], plan: Plan, budget: PrivacyBudget | None, n_public: int, unit: Protected
) -> Description:
    return description_of(plan, budget, methods=(), method=method.method, unit=unit, n_public=n_public)


def _protected(records: NumericRecords) -> Protected:
    """Whom a fit protects, as its certificate says."""
    unit = records.unit
    return Protected(name="row", max_rows=1) if unit is None else Protected(name=unit.column, max_rows=unit.max_rows)
