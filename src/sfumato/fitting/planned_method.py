"""The plan of a method: stages with their noise, what they cost, and the ε for a stated aim. Reads no record."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from sfumato._lazy import later
from sfumato.errors import ConfigError, require_instance, require_integer, require_open_unit, require_positive
from sfumato.fitting.arguments import check_schema, count_stage, nominal_budget, row_count
from sfumato.fitting.discovery import DOMAINS, discovery_stages, label_forecast
from sfumato.fitting.driver import description_of
from sfumato.fitting.purposes import Facts, Preset, find_preset, preset_of
from sfumato.privacy.accounting import account, account_of_fits
from sfumato.privacy.budget import LARGEST_EPSILON, EstimateCount, NonPrivate, PrivacyBudget, default_delta
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import Description
from sfumato.privacy.certificate_form import PlannedStage
from sfumato.privacy.plan import Plan, Stage
from sfumato.privacy.reading import plain
from sfumato.privacy.risk import Advantage, Risk, TruePositiveRate, trade_off
from sfumato.schema.open_schema import open_schema
from sfumato.schema.schema import Schema, SchemaLike, read_schema

_LEAST_OF_ERROR, _LEAST_OF_RISK = 0.01, 1e-3
_MOST_STEPS = 12
_NEAR = 1e-3


@dataclass(frozen=True, kw_only=True)
class PlannedMethod(ABC):
    """The plan of a method of making a release, and its cost; reads no record.

    Attributes:
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
    """

    method: ClassVar[str]
    resumable: ClassVar[bool] = False  # whether all that is released goes through the account, which can keep it
    needs_declared_rows: ClassVar[bool] = False  # whether noise or sampling is set by the number of rows
    takes_prior: ClassVar[bool] = False  # whether an earlier release may say what to expect
    makes_model: ClassVar[bool] = True  # whether its release is a model to sample from, and no data set
    takes: ClassVar[frozenset[str]] = frozenset({"rules", "unit", "words"})  # of `sfumato.schema.shapes.SHAPES`

    epsilon: float | NonPrivate
    delta: float | None = field(default=None)

    @abstractmethod
    def stages(self, facts: Facts) -> list[Stage]:
        """Return the stages of this method with relative noise multipliers, from public facts alone."""

    def forecast(self, plan: Plan, facts: Facts) -> dict[str, str]:
        """Say in words, per stage, what its noise means at the public number of rows."""
        return {}

    def one_way_error(self, plan: Plan, facts: Facts) -> float:
        """Return the forecast standard error of a 1-way share; of images, of a class share.

        It grows in proportion to the plan's noise.

        Raises:
            ConfigError: the method has no such forecast.
        """
        raise ConfigError(f"Expected a method that forecasts the error of a share, got {self.method!r}.")

    def noise_for_answer(self, plan: Plan, facts: Facts, question: str, target_error: float) -> float:
        """How many times a plan's noise gives a named question's answer the forecast error `target_error`.

        Raises:
            ConfigError: the method measures no named questions, or the schema does not name this one.
        """
        raise ConfigError(f"Expected a method that measures named questions, got {self.method!r}.")

    def sampling(self, plan: Plan) -> str:
        """Say how records enter each stage of this method's plan, for the certificate."""
        sampled = [repr(stage.name) for stage in plan.stages if stage.sampling_probability is not None]
        if not sampled:
            return "none: every record is read in every pass"
        return f"Poisson samples of all records in {', '.join(sampled)}; every record in every pass of other stages"

    @classmethod
    def presets(cls) -> Mapping[str, Preset]:
        """Return settings that have a name, such as those of a paper; by default none."""
        return {}

    @final
    @classmethod
    def preset(
        cls,
        name: str,
        *,
        epsilon: float | NonPrivate,
        delta: float | None = None,
        **settings: Any,  # noqa: ANN401 - settings of the method
    ) -> Self:
        """Return the method with the settings of a preset, private at `epsilon` by the library's own account.

        Args:
            name: one of `presets()`.
            epsilon: ε in nats, or `NonPrivate()`.
            delta: δ; by default min(1e-5, 0.1/n_public).
            settings: what is to be otherwise.

        Raises:
            ConfigError: no such preset, or one that cannot be had.

        Example:
            >>> sfumato.DPGM.preset("published", epsilon=1.0).iterations  # doctest: +SKIP
            20
        """
        chosen = find_preset(cls.presets(), name, cls.method)
        return cls(epsilon=epsilon, delta=delta, **{**chosen.settings, **settings})

    @final
    def plan(self, schema: Schema, *, target: str | None = None, n_public: int | EstimateCount | None = None) -> Plan:
        """Return the calibrated plan: every stage with its noise multiplier. Reads no record.

        Args:
            schema: public description of the table; what it leaves open is estimated with part of the budget.
            target: column whose classes are modelled apart.
            n_public: the public number of rows; by default the schema's `rows`; `EstimateCount()` estimates one.

        Raises:
            ConfigError: an argument is outside its domain, or no number of rows is declared.
            SchemaError: the target is not a released column, or has too many classes.

        Example:
            >>> from sfumato import MaxEntropy, Schema
            >>> from sfumato.columns import Boolean, Integer
            >>> schema = Schema(columns={"age": Integer(lower=0, upper=120), "member": Boolean()}, rows=10_000)
            >>> [stage.name for stage in MaxEntropy(epsilon=1.0).plan(schema, target="member").stages]
            ['marginals', 'second moments']
        """
        schema = open_schema(schema)
        rows = row_count(schema, n_public)
        budget = self._budget(rows) or nominal_budget(rows)
        return calibrate(self.uncalibrated(schema, target, rows, budget.delta), budget)

    @final
    def epsilon_for(
        self,
        schema: SchemaLike,
        *,
        target_error: float,
        question: str | None = None,
        target: str | None = None,
        n_public: int | None = None,
    ) -> float:
        """Return the ε at which the forecast standard error of a 1-way share is `target_error`. Reads no record.

        This method's own ε is not used, its δ is. Of images, the share is that of a class. It is rounded up to three
        digits, so that the forecast is at most `target_error`, and at least 0.01.

        Args:
            schema: public description of the data, or the path of one.
            target_error: a share, in (0, 1); of a question as `plan` forecasts it.
            question: one of the schema's named questions, in whose answer the error is: of regressions and means the
                width of an interval ÷ that of the records' own, above 1; of tables the records of a cell.
            target: column whose classes are modelled apart.
            n_public: the public number of rows; by default the schema's `rows`.

        Raises:
            ConfigError: an argument is outside its domain, the question is not named, or even the largest ε does not
                reach that error.
            SchemaError: as `plan`.
        """
        if question is None:
            require_open_unit(target_error=target_error)
        else:
            require_positive(target_error=target_error)
            require_instance(str, 'a named question such as "ols: income ~ age"', question=question)
        schema = read_schema(schema)
        rows = row_count(schema, n_public)
        if rows is None:
            raise ConfigError("Expected a declared number of rows for a target error, got none. Declare it.")
        facts, delta, turns = Facts(schema, target, rows), self._delta(rows), list[float]()
        # stages and their shares may follow from ε: where that of one leads to another and back, the larger will do
        plan = self.uncalibrated(schema, target, rows, delta)
        while True:
            if question is None:
                noise = target_error / self.one_way_error(plan, facts)
            else:
                noise = self.noise_for_answer(plan, facts, question, target_error)
            epsilon = epsilon_for_error(plan, noise=noise, target_error=target_error, delta=delta)
            if epsilon in turns:
                return max(turns[turns.index(epsilon) :])
            turns.append(epsilon)
            plan = replace(self, epsilon=epsilon).uncalibrated(schema, target, rows, delta)

    @final
    def at_risk(
        self, risk: Risk, schema: Schema, *, target: str | None = None, n_public: int | EstimateCount | None = None
    ) -> Self:
        """Return this method with the ε at which the best attacker finds no more than `risk`. Reads no record.

        This method's own ε is not used, its δ is; the ε that comes out is within a thousandth of the largest.

        Args:
            risk: `Advantage(0.1)`, or `TruePositiveRate(0.1, fpr=0.05)`.
            schema: public description of the data.
            target: column whose classes are modelled apart.
            n_public: the public number of rows; `EstimateCount()` estimates one.

        Raises:
            ConfigError: no ε keeps that risk, or the argument is none.
        """
        kinds = (Advantage, TruePositiveRate)
        require_instance(kinds, "Advantage(0.1) or TruePositiveRate(0.1, fpr=0.05)", risk=risk)
        delta = self._delta(row_count(schema, n_public))

        def plan_at(epsilon: float) -> Plan:
            return replace(self, epsilon=epsilon).plan(schema, target=target, n_public=n_public)

        return replace(self, epsilon=epsilon_for_risk(plan_at, risk, delta))

    @final
    def for_releases(
        self, releases: int, schema: Schema, *, target: str | None = None, n_public: int | EstimateCount | None = None
    ) -> Self:
        """Return this method with the ε of each of several releases of the same people. Reads no record.

        Together they cost this method's ε at its δ: fit each with the method that comes out, under one ledger of this
        ε and δ. The ε that comes out is within a thousandth of the largest.

        Args:
            releases: how many, such as one a year for five years; from 2.
            schema: public description of the data.
            target: column whose classes are modelled apart.
            n_public: the public number of rows; `EstimateCount()` estimates one.

        Raises:
            ConfigError: the method has no ε, or no ε of each keeps the budget.
        """
        require_integer(at_least=2, releases=releases)
        budget = self._budget(row_count(schema, n_public))
        if budget is None:
            raise ConfigError("Expected an epsilon to share among releases, got a method without noise. Give one.")
        at_delta = replace(self, delta=budget.delta)

        def plan_at(epsilon: float) -> Plan:
            return replace(at_delta, epsilon=epsilon).plan(schema, target=target, n_public=n_public)

        return replace(at_delta, epsilon=epsilon_of_each(plan_at, releases, budget))

    @final
    def uncalibrated(self, schema: Schema, target: str | None, rows: int | None, delta: float) -> Plan:
        """Return the plan with noise multipliers in their ratios only, after all checks of public facts.

        Args:
            schema: public description of the data.
            target: column whose classes are modelled apart.
            rows: the public number of rows; None to measure one.
            delta: δ of the fit; some of it may be spent outside the events.
        """
        check_schema(schema, target, self.takes, self.method)
        if rows is None and self.needs_declared_rows:
            raise ConfigError(
                f"Expected a declared number of rows for the method {self.method}, got one to be estimated: the rate "
                "at which rows are sampled has to be public. Declare a round number."
            )
        stages = [*discovery_stages(schema, delta), *self.stages(Facts(schema.narrowest(), target, rows))]
        return Plan([count_stage(), *stages] if rows is None else stages)

    def _delta(self, rows: int | None) -> float:
        if self.delta is not None:
            return self.delta
        if rows is None:
            raise ConfigError(
                "Expected delta or a public number of rows, got neither. Add delta=1e-6 (--delta), or the number "
                "(n_public=, --rows)."
            )
        return default_delta(rows)

    def _budget(self, rows: int | None) -> PrivacyBudget | None:
        if isinstance(self.epsilon, NonPrivate):
            return None
        budget = PrivacyBudget(self.epsilon, self._delta(rows))
        if rows is not None:
            budget.warn_if_delta_is_large(rows)
        return budget

    @final
    def describe_plan(
        self, schema: Schema, *, target: str | None = None, n_public: int | EstimateCount | None = None
    ) -> dict[str, Any]:
        """Return the plan as `plan --json` prints it: a certificate's keys but `private`, and a forecast per stage.

        Reads no record. Arguments and errors as `plan`.
        """
        return self.description(schema, target=target, n_public=n_public).to_dict()

    @final
    def description(
        self, schema: Schema, *, target: str | None = None, n_public: int | EstimateCount | None = None
    ) -> Description:
        """Describe a fit before it runs, with a forecast per stage; arguments and errors as `plan`."""
        schema = open_schema(schema)
        rows = row_count(schema, n_public)
        plan = self.plan(schema, target=target, n_public=n_public)
        known = {"declared": rows is not None, "discovered": schema.open}
        description = self._certificate_text(plan, self._budget(rows), schema, rows, **known)
        if schema.open:  # how large errors are depends on sizes that discovery finds
            forecast = {DOMAINS: label_forecast(plan, schema)}
        else:
            forecast = {} if rows is None else self.forecast(plan, Facts(schema, target, rows))
        planned = [
            PlannedStage(**plain(s), measures=plan[s.name].measures, forecast=forecast.get(s.name, ""))
            for s in description.stages
        ]
        return replace(description, stages=tuple(planned))

    def _certificate_text(
        self,
        plan: Plan,
        budget: PrivacyBudget | None,
        schema: Schema,
        n: int | None,
        **known: Any,  # noqa: ANN401
    ) -> Description:
        """`description_of` this method; `known` are its other arguments."""
        return description_of(
            plan, budget, methods=(type(self),), schema=schema, method=self.method, n_public=n,
            sampling=self.sampling(plan), preset=preset_of(self.presets(), vars(self)), **known,
        )  # fmt: skip


if TYPE_CHECKING:
    from dp_accounting import gaussian_mechanism
else:
    gaussian_mechanism = later("dp_accounting.gaussian_mechanism")


def epsilon_for_error(plan: Plan, *, noise: float, target_error: float, delta: float) -> float:
    """Return the ε at which a forecast error is `target_error`, rounded up to three digits; at least 0.01.

    Args:
        plan: stages with relative noise multipliers.
        noise: so many times that plan's noise make the error that is wanted.
        target_error: the error that is wanted, for messages.
        delta: δ.

    Raises:
        ConfigError: even the largest ε does not reach that error.
    """
    needed = plan.scaled(noise)
    merged = sum(stage.count / stage.noise_multiplier**2 for stage in needed.stages) ** -0.5
    # without sampling all stages are one Gaussian mechanism, whose epsilon is quick; sampling only lowers it
    with np.errstate(all="ignore"):
        epsilon = float(gaussian_mechanism.get_epsilon_gaussian(merged, delta))
    if any(stage.inclusion is not None for stage in needed.stages):
        epsilon = account(needed, delta).epsilon
    if epsilon > LARGEST_EPSILON:
        raise ConfigError(
            f"Expected a target error that some epsilon up to {LARGEST_EPSILON:g} reaches, got {target_error=}. "
            "Declare more rows, or a coarser schema."
        )
    if epsilon <= _LEAST_OF_ERROR:
        return _LEAST_OF_ERROR
    # three digits, a little above: calibrated plans have a ten-thousandth more noise than they need
    digits = 2 - math.floor(math.log10(epsilon))
    return min(math.ceil(epsilon * (1 + 2e-4) * 10**digits) / 10**digits, LARGEST_EPSILON)


def epsilon_for_risk(plan_at: Callable[[float], Plan], risk: Risk, delta: float) -> float:
    """Return the largest ε, to a thousandth of it, whose plan keeps a risk; four digits, rounded down.

    It starts from the Gaussian release that has the risk, and goes on by secants of log ε against log μ.

    Args:
        plan_at: the calibrated plan at an ε.
        risk: what the best attacker may reach.
        delta: δ of the plans.

    Raises:
        ConfigError: even ε = 0.001 does not keep it.
    """
    wanted = risk.mu(risk.most)

    def excess(epsilon: float) -> float:
        figure = risk.of(trade_off(plan_at(epsilon)))
        excess = math.log(max(risk.mu(min(figure, 1 - 1e-15)), 1e-12) / wanted)
        return min(excess, 0.0) if figure <= risk.most else max(excess, 1e-15)

    best = _largest(float(gaussian_mechanism.get_epsilon_gaussian(1 / wanted, delta)), excess)
    if not best:
        raise ConfigError(
            f"Expected a risk that some epsilon of at least {_LEAST_OF_RISK:g} keeps at delta={delta:g}, got {risk!r}. "
            "Allow more risk, or use a smaller delta."
        )
    return best


def epsilon_of_each(plan_at: Callable[[float], Plan], releases: int, budget: PrivacyBudget) -> float:
    """Return the largest ε, to a thousandth of it, of which so many fits of the same people keep a budget together.

    Args:
        plan_at: the calibrated plan at an ε, at the budget's δ.
        releases: how many.
        budget: of all together.

    Raises:
        ConfigError: even ε = 0.001 each is too much.
    """

    def excess(epsilon: float) -> float:
        plan = plan_at(epsilon)
        together = account_of_fits([plan] * releases, budget.delta, plan.neighbours)
        return math.log((together.epsilon if together is not None else 0.0) / budget.epsilon)

    sigma = float(gaussian_mechanism.get_sigma_gaussian(budget.epsilon, budget.delta))
    alone = float(gaussian_mechanism.get_epsilon_gaussian(sigma * math.sqrt(releases), budget.delta))
    best = _largest(alone, excess)
    if not best:
        raise ConfigError(
            f"Expected a budget that {releases} releases of epsilon {_LEAST_OF_RISK:g} or more keep together, got "
            f"{budget}. Ask for a larger epsilon, or fewer releases."
        )
    return best


def _largest(start: float, excess_at: Callable[[float], float]) -> float:
    """Return about the largest ε whose excess, the logarithm of a figure beyond its limit, is at most 0; 0 of none."""
    epsilon = _rounded_down(min(max(start, _LEAST_OF_RISK), LARGEST_EPSILON))
    points: list[tuple[float, float]] = []
    best = 0.0
    for _ in range(_MOST_STEPS):
        excess = excess_at(epsilon)
        if excess <= 0:
            best = max(best, epsilon)
            if excess >= -_NEAR or epsilon >= LARGEST_EPSILON:
                break
        elif epsilon <= _LEAST_OF_RISK:
            break
        points.append((math.log(epsilon), excess + _NEAR / 2))
        epsilon = _rounded_down(min(max(math.exp(_next(points)), _LEAST_OF_RISK), LARGEST_EPSILON))
    return best


def _next(points: list[tuple[float, float]]) -> float:
    """Return the next log ε: by a secant of the last two points, or as if μ were proportional to ε."""
    (here, excess) = points[-1]
    slope = 1.0
    if len(points) > 1 and points[-2][0] != here:
        slope = (excess - points[-2][1]) / (here - points[-2][0])
    return here - excess / min(max(slope, 0.3), 3.0)


def _rounded_down(epsilon: float) -> float:
    digits = 4 - math.floor(math.log10(epsilon))
    return math.floor(epsilon * 10**digits * (1 + 1e-12)) / 10**digits
