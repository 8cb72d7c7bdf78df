"""The cost of a release, as it states it: relation, events, ε(δ) curve, assumptions, versions, private or not."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from sfumato.errors import ReleaseError, require_open_unit
from sfumato.privacy import words
from sfumato.privacy.accounting import (
    DEFAULT_INTERVAL,
    account_curve,
    interval_for,
    is_resolved,
    recompute_epsilon,
    replacing_account,
    rough_epsilon,
    rough_event,
    with_rounding,
)
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import (
    FORMAT_VERSION,
    PLACE,
    Accountant,
    Bound,
    LedgerCharge,
    Point,
    Protected,
    Searched,
    StageCost,
    Statement,
    Weighting,
)
from sfumato.privacy.plan import Neighbours, Plan, Stage
from sfumato.privacy.reading import document, entry, plain, reader, whole
from sfumato.privacy.risk import TradeOff

_VERIFY_TOLERANCE = 1e-6
_DETAIL_TOLERANCE = 1e-3  # of what the guarantee does not rest on: other versions may choose another grid
_ROUGHLY = 3.0  # the quick account is above the exact one, by less than this factor at any ε of use
_MOST_GRID_POINTS = 5e6
_CURVE_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
_PACKAGES = ("sfumato", "dp-accounting", "numpy", "scipy", "pyarrow", "cryptography")

ASSUMPTIONS = (
    "The holder states that columns, kinds, bounds, categories and settings were fixed without looking at the records.",
    "One row is one unit of privacy, unless `unit` names a column that says whose a row is.",
    "Noise is independent and Gaussian: exactly, on a grid, of statistics; in 64-bit floats, of gradients of networks.",
    "Nothing computed from the records was published besides this release.",
    "Column names, and what a file counts as one record, are public, or independent of any record.",
    "Running time and memory are outside the guarantee.",
)
WEIGHED = (
    "A row's weight is a fact of that row. Where weights were scaled or adjusted with all rows, what one record does "
    "to the weights of others is NOT covered by the guarantee."
)
SEARCHED = (
    "The holder states that columns, kinds, bounds, categories, the candidates under `search` and the law of the "
    "repetitions were fixed without looking at the records. Of all repetitions only this release was published."
)


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that the guarantee rests on."""
    return {"python": platform.python_version(), **{package: _installed(package) for package in _PACKAGES}}


@cache  # read from files, as long as a tenth of a small fit
def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _weight(stage: Stage) -> float:
    """A stage's part of the squared budget, up to a common factor: q²·(e^{1/σ²} − 1) per step when sampled."""
    if stage.inclusion is None:
        return stage.count / stage.noise_multiplier**2
    return stage.count * stage.inclusion**2 * math.expm1(min(stage.noise_multiplier**-2, 700.0))


def _stages(plan: Plan, delta: float, interval: float) -> tuple[StageCost, ...]:
    def alone(stage: Stage) -> float:
        event, extra, own = stage.event(plan.neighbours), stage.extra_delta, plan.neighbours
        return account_curve([event], [delta], neighbours=own, interval=interval, extra_delta=extra)[0].epsilon

    total = sum(map(_weight, plan.stages))
    return tuple(
        StageCost(name=stage.name, epsilon_alone=alone(stage), share=_weight(stage) / total) for stage in plan.stages
    )


@document
class Description(Statement):
    """A fit as it is known before it runs."""

    def _repr_html_(self) -> str:
        from sfumato.privacy.certificate_cards import description_card

        return description_card(self)


@document
class Certificate(Description):
    """The cost of a release: the description before the fit, and whether its noise was secret.

    Attributes:
        n_public: number of rows, by now known.
        private: False if a seed or no noise at all was used: then nothing is guaranteed.
        release: what it belongs to, of one that was read from a file; equal certificates may belong to several.
        ledger: the charge in the account of the data; None of a fit that named no ledger.
        further: entries of later versions of the format, unread; written back as they are.

    Example:
        >>> import sfumato
        >>> certificate = sfumato.load("people.sfm").certificate  # doctest: +SKIP
        >>> certificate.epsilon, certificate.unit.name, certificate.n_public  # doctest: +SKIP
        >>> certificate.verify()  # doctest: +SKIP
    """

    n_public: int = entry(whole(1))
    private: bool = entry(bool)
    release: Bound | None = entry(Bound, default=None, compare=False)
    ledger: LedgerCharge | None = entry(LedgerCharge, default=None)
    further: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, content: object) -> Certificate:
        """Read a certificate that a stranger may have written.

        Raises:
            ReleaseError: an entry is missing or of another form, or they contradict each other.
        """
        certificate = reader(cls)(content, PLACE)
        problem = certificate.contradiction()
        if problem is None and certificate.private and certificate.epsilon is None:
            problem = "states that it is private, and no epsilon"
        if problem is not None:
            PLACE.refuse(problem)
        known = {f.name for f in fields(cls)}
        return replace(certificate, further={key: value for key, value in content.items() if key not in known})  # type: ignore

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy: the keys of `certificate --json`."""
        return {**plain(self), **self.further}

    @property
    def content(self) -> Mapping[str, Any]:
        """The keys of `certificate --json`, a copy."""
        return self.to_dict()

    def __repr__(self) -> str:
        return words.summary(self)

    def _repr_html_(self) -> str:
        from sfumato.privacy.certificate_cards import certificate_card

        return certificate_card(self)

    def recompute(self, neighbours: Neighbours | None = None) -> float:
        """Return ε recomputed from the listed events with the named accountant, as an outside verifier would.

        Args:
            neighbours: the relation, by default the certificate's own; replace-one goes through the PLD
                accountant, but for searches.

        Raises:
            ReleaseError: the events are not of a kind this version knows, or there was no noise.
            UnsupportedEventError: the events have no account under that relation.
        """
        return self._recompute(self.neighbours if neighbours is None else neighbours)

    def _stated(self, purpose: str) -> tuple[Plan, float, float, Accountant]:
        """Return the plan, ε, δ and the accountant; there are all or none."""
        if self.plan is None or self.epsilon is None or self.delta is None or self.accountant is None:
            raise ReleaseError(
                f"Expected a release with noise: this one has none, so there is no epsilon to {purpose}."
            )
        return self.plan, self.epsilon, self.delta, self.accountant

    def risk(self, fpr: float = 0.05, *, neighbours: Neighbours | None = None) -> float:
        """Return the largest share of those in the data that any attacker finds, at a share of false alarms.

        It follows from the events, not from (ε, δ); it is about each unit that the certificate protects, and bounds
        nothing that is true of groups or said by the schema.

        Args:
            fpr: share of those outside whom he wrongly names, in (0, 1).
            neighbours: whom he tells apart, by default the certificate's own relation.

        Returns:
            True positives ÷ those inside, in [fpr, 1]; 1 where there is no noise.

        Raises:
            ReleaseError: the events cost far more than is stated.
            UnsupportedEventError: the events have no account under that relation.

        Example:
            >>> certificate.risk(fpr=0.05), certificate.advantage()  # doctest: +SKIP
        """
        require_open_unit(fpr=fpr)
        curve = self.trade_off(neighbours)
        return 1.0 if curve is None else curve.true_positive_rate(fpr)

    def advantage(self, *, neighbours: Neighbours | None = None) -> float:
        """Return the largest difference of the best attacker's true positives and false alarms, in [0, 1].

        Args and errors as `risk`; 1 where there is no noise.
        """
        curve = self.trade_off(neighbours)
        return 1.0 if curve is None else curve.advantage

    @property
    def seeded(self) -> bool:
        """Whether the noise came from a seed: then the figures say what secret noise would cost."""
        return self.epsilon is not None and not self.private

    def trade_off(self, neighbours: Neighbours | None = None) -> TradeOff | None:
        """The best attacker's trade-off, of the events; None where nothing is guaranteed.

        Raises:
            ReleaseError: the events cost far more than is stated.
            UnsupportedEventError: the events have no account under that relation.
        """
        if self.guaranteed and self.plan is not None:
            self._refuse_long_work(DEFAULT_INTERVAL)
        return Statement.trade_off(self, neighbours)  # no super(): a class with slots is made anew

    def _recompute(self, neighbours: Neighbours, *, elsewhere: bool = False) -> float:
        """Return ε; with `elsewhere`, at the largest δ that another machine may have taken for this one."""
        plan, _, delta, accountant = self._stated("recompute")
        replacing = neighbours is Neighbours.REPLACE_ONE
        if replacing and plan.repetitions is not None:
            return replacing_account(plan, delta).epsilon
        name, interval = accountant.name, accountant.value_discretization_interval
        if replacing:
            name, interval = "PLDAccountant", interval or DEFAULT_INTERVAL
        self._refuse_long_work(interval or 1.0)
        if elsewhere and name == "PLDAccountant":
            delta = with_rounding(plan, delta, extra_delta=self.extra_delta)
        return recompute_epsilon(
            plan.events(neighbours),
            delta,
            accountant=name,
            value_discretization_interval=interval,
            neighbours=neighbours,
            extra_delta=self.extra_delta,
        )

    def _refuse_long_work(self, interval: float) -> None:
        """Refuse events that cost far more than is stated before the exact account runs out of memory on them."""
        plan, stated, delta, _ = self._stated("recompute")
        if plan.repetitions is not None:
            return  # Rényi DP takes the same time for any events
        rough = rough_epsilon([rough_event(stage, self.neighbours) for stage in plan.stages], delta)
        if rough > _ROUGHLY * stated + 10 or rough / interval > _MOST_GRID_POINTS:
            raise ReleaseError(
                f"Expected events that cost epsilon={stated:.6g}, got events that cost about {rough:.3g}. "
                "Do not trust this certificate."
            )

    def verify(self) -> None:
        """Check all that is stated of the cost against the listed events: ε under both relations, curve, and stages.

        A certificate of another machine may differ in δ by the rounding of its sampled steps: that much is allowed.

        Raises:
            ReleaseError: the events cost more than is stated, are shared out otherwise, or there was no noise.
        """
        _, epsilon, _, _ = self._stated("verify")
        stated = {self.neighbours: epsilon}
        if self.replace_one is not None:
            stated.setdefault(Neighbours.REPLACE_ONE, self.replace_one.epsilon)
        for neighbours, epsilon in stated.items():
            cost = self._recompute(neighbours, elsewhere=True)
            if cost > epsilon + _VERIFY_TOLERANCE:
                raise ReleaseError(
                    f"Expected events that cost epsilon={epsilon:.6g} under {neighbours.value}, got events that cost "
                    f"epsilon={cost:.6g}. Do not trust this certificate."
                )
        self._verify_details()

    def _verify_details(self) -> None:
        """Check the curve and the stages, which are printed beside ε; after ε, which bounds the work."""
        plan, _, at, accountant = self._stated("verify")
        interval = accountant.value_discretization_interval or interval_for(plan)
        self._refuse_long_work(interval)
        extra = self.extra_delta
        stated = {point.delta: point.epsilon for point in self.curve}
        deltas = sorted((delta for delta in stated if is_resolved(plan, delta, extra_delta=extra)), reverse=True)
        curve = account_curve(
            plan.events(self.neighbours),
            [with_rounding(plan, delta, extra_delta=extra) for delta in deltas],
            neighbours=self.neighbours,
            interval=interval,
            extra_delta=extra,
        )
        stages = _stages(plan, with_rounding(plan, at, extra_delta=extra), interval)
        if (
            len(stated) < len(self.curve)
            or any(delta <= extra for delta in stated)
            or any(_above(exact.epsilon, stated[delta]) for exact, delta in zip(curve, deltas, strict=True))
            or any(
                _above(exact.epsilon_alone, claim.epsilon_alone) or abs(exact.share - claim.share) > _DETAIL_TOLERANCE
                for exact, claim in zip(stages, self.stages, strict=True)
            )
        ):
            raise ReleaseError(
                "Expected a curve and stages that follow from the events, got others. Do not trust this certificate."
            )


def require_verified(certificate: Certificate, what: str) -> None:
    """Refuse what a certificate is of, named in words, if its events cost more than it states (`ReleaseError`)."""
    try:
        certificate.verify()
    except ReleaseError as error:
        problem = str(error)
    else:
        return
    raise ReleaseError(f"Expected {what} whose certificate holds. {problem}")


def _above(exact: float, stated: float) -> bool:
    return exact > stated * (1 + _DETAIL_TOLERANCE) + _VERIFY_TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNotes:
    """Notes of a certificate on the schema.

    Attributes:
        discovered: columns whose bounds, categories and missing cells cost part of the budget.
        origins: where the facts of the schema come from, a line each.
        read_off: facts that come from the records.
        weight: how rows are weighted.
    """

    discovered: Sequence[str] = ()
    origins: Sequence[str] = ()
    read_off: Sequence[str] = ()
    weight: Weighting | None = None


NO_NOTES = SchemaNotes()


def describe(
    *,
    plan: Plan,
    budget: PrivacyBudget | None,
    method: str,
    unit: Protected,
    n_public: int | None,
    n_public_source: Literal["declared", "estimated"],
    sampling: str = "none: every record is read in every pass",
    schema: SchemaNotes = NO_NOTES,
    preset: str | None = None,
    search: Searched | None = None,
    versions: Mapping[str, str] | None = None,
    assumed: Sequence[str] = (),
) -> Description:
    """Describe a fit before it runs.

    `preset` is the line of one. `versions` and `assumed` are of other packages that took part.
    """
    declared = (
        "The number of rows was declared as public; if it is the true number, that number is disclosed."
        if n_public_source == "declared"
        else "The number of rows was estimated with part of the budget."
    )
    weighed = [] if schema.weight is None else [WEIGHED]
    fixed = [_fixed(schema.discovered, schema.read_off, searched=search is not None), *ASSUMPTIONS[1:], *weighed]
    described = Description(
        format_version=FORMAT_VERSION, method=method, versions={**installed_versions(), **(versions or {})},
        epsilon=None, delta=None, neighbours=plan.neighbours, replace_one=None, accountant=None, curve=(),
        extra_delta=0.0, events=(), stages=(), unit=unit, n_public=n_public, n_public_source=n_public_source,
        sampling=sampling, assumptions=(*fixed, declared, *assumed), search=search,
        origins=tuple(schema.origins), read_off=tuple(schema.read_off), preset=preset, weight=schema.weight,
    )  # fmt: skip
    return described if budget is None else _with_cost(described, plan, budget.delta)


def _with_cost(described: Description, plan: Plan, delta: float) -> Description:
    """Add what a plan costs at δ: under its own relation, and the same events under replace-one.

    The curve has the points that are finite.
    """
    interval, extra, own = interval_for(plan), plan.extra_delta, plan.neighbours
    deltas = sorted((d for d in {*_CURVE_DELTAS, delta} if d > extra), reverse=True)
    curve = account_curve(plan.events(own), deltas, neighbours=own, interval=interval, extra_delta=extra)
    here = next(point for point in curve if point.delta == delta)
    grid = here.value_discretization_interval
    return replace(
        described,
        epsilon=here.epsilon,
        delta=delta,
        replace_one=Point(epsilon=replacing_account(plan, delta, interval=interval).epsilon, delta=delta),
        accountant=Accountant(name=here.accountant, value_discretization_interval=grid),
        curve=tuple(Point(epsilon=p.epsilon, delta=p.delta) for p in curve if math.isfinite(p.epsilon)),
        extra_delta=extra,
        events=tuple(replace(stage, measures="") for stage in plan.stages),  # its words are not of the account
        stages=_stages(plan, delta, interval),
    )


def _fixed(discovered: Sequence[str], read_off: Sequence[str], *, searched: bool) -> str:
    """Say how what the schema says was fixed."""
    estimated = f"What the schema says of {', '.join(map(repr, discovered))} was estimated with part of the budget"
    if read_off:
        also = f" {estimated}." if discovered else ""
        return f"Some {words.NOT_COVERED}: {', '.join(read_off)}.{also}"
    if searched:
        return SEARCHED
    if discovered:
        return f"{estimated}. The holder states that all else was fixed without looking at the records."
    return ASSUMPTIONS[0]


def issue(description: Description, *, private: bool, ledger: LedgerCharge | None = None) -> Certificate:
    """Write the certificate of a finished fit.

    Args:
        description: what `describe` said of the plan that the ledger was charged.
        private: False if a seed or no noise was used.
        ledger: the charge in the account of the data, if there is one.
    """
    known = {f.name: getattr(description, f.name) for f in fields(Description)}
    return Certificate(**known, private=private and description.epsilon is not None, ledger=ledger)


ELSEWHERE = (
    "What the model was made of was measured by others, who drew its noise and chose its columns and cells. Sfumato "
    "vouches for none of it.",
    "The standard deviations of the noise are as they were stated.",
)


def measured_elsewhere(method: str, unit: Protected, *, n_public: int, declared: bool) -> Certificate:
    """The certificate of a model of measurements that others made: it guarantees nothing.

    Args:
        method: by which it was made.
        unit: one row.
        n_public: number of rows.
        declared: whether the schema says it; else it is a sum of what was measured.
    """
    return Certificate(
        format_version=FORMAT_VERSION, method=method, versions=installed_versions(), epsilon=None, delta=None,
        neighbours=Neighbours.ADD_REMOVE, replace_one=None, accountant=None, curve=(), extra_delta=0.0, events=(),
        stages=(), unit=unit, n_public=n_public, n_public_source="declared" if declared else "estimated",
        sampling="none of Sfumato's: no record was read", assumptions=ELSEWHERE, private=False, measured_elsewhere=True,
    )  # fmt: skip
