"""What a release says of its own cost: relation, events, ε(δ) curve, assumptions, versions, private or not."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from sfumato.errors import ReleaseError
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
from sfumato.privacy.certificate_form import FORMAT_VERSION, event_to_dict, malformed, plan_of, stage_from_dict
from sfumato.privacy.plan import Neighbours, Plan, Stage

_VERIFY_TOLERANCE = 1e-6
_DETAIL_TOLERANCE = 1e-3  # of what the guarantee does not rest on: other versions may choose another grid
_ROUGHLY = 3.0  # the quick account is above the exact one, by less than this factor at any ε of use
_MOST_GRID_POINTS = 5e6
_CURVE_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
_PACKAGES = ("sfumato", "dp-accounting", "numpy", "scipy", "pyarrow", "cryptography")

ASSUMPTIONS = (
    "Columns, kinds, bounds, categories and every setting were fixed without looking at the records.",
    "One unit is one record of the table, unless `unit` names a column and its largest number of rows.",
    "Noise is independent and Gaussian over the reals: of statistics exactly, on a grid; of gradients, in 64 bits.",
    "Nothing computed from the records was published besides this release.",
    "Column names, storage types, and what a file counts as one record are public, or independent of any record.",
    "Running time and memory are outside the guarantee.",
)
SEARCHED = (
    "Columns, kinds, bounds, categories, the candidates listed under `search` and the law of the repetitions were "
    "fixed without looking at the records; of all repetitions only this release left."
)


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that the guarantee rests on."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def plan_account(plan: Plan, delta: float) -> dict[str, Any]:
    """Return what a plan costs, as the keys that `plan --json` and `certificate --json` share.

    ε under the plan's own relation (add/remove, but replace-one where subsets are drawn) with its accountant and curve,
    the same events' ε under replace-one, the events, and per stage its ε alone and its share of the squared budget. The
    curve has the points that are finite.
    """
    interval = interval_for(plan)
    extra = plan.extra_delta
    deltas = sorted((d for d in {*_CURVE_DELTAS, delta} if d > extra), reverse=True)
    own = plan.neighbours
    curve = account_curve(plan.events(own), deltas, neighbours=own, interval=interval, extra_delta=extra)
    here = next(entry for entry in curve if entry.delta == delta)
    replaced = replacing_account(plan, delta, interval=interval)
    return {
        "epsilon": here.epsilon,
        "delta": delta,
        "neighbours": own.value,
        "replace_one": {"epsilon": replaced.epsilon, "delta": delta},
        "accountant": {
            "name": here.accountant,
            "value_discretization_interval": here.value_discretization_interval,
        },
        "curve": [{"delta": entry.delta, "epsilon": entry.epsilon} for entry in curve if math.isfinite(entry.epsilon)],
        "extra_delta": extra,
        "events": [event_to_dict(stage) for stage in plan.stages],
        "stages": _stages(plan, delta, interval),
    }


def _weight(stage: Stage) -> float:
    """A stage's part of the squared budget, up to a common factor: q²·(e^{1/σ²} − 1) per step when sampled."""
    if stage.inclusion is None:
        return stage.count / stage.noise_multiplier**2
    return stage.count * stage.inclusion**2 * math.expm1(min(stage.noise_multiplier**-2, 700.0))


def _stages(plan: Plan, delta: float, interval: float) -> list[dict[str, Any]]:
    total = sum(map(_weight, plan.stages))
    return [
        {
            "name": stage.name,
            "epsilon_alone": account_curve(
                [stage.event(plan.neighbours)],
                [delta],
                neighbours=plan.neighbours,
                interval=interval,
                extra_delta=stage.extra_delta,
            )[0].epsilon,
            "share": _weight(stage) / total,
        }
        for stage in plan.stages
    ]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a release cost. Read-only; `to_dict` gives the keys of `certificate --json`.

    Attributes:
        content: the JSON-ready mapping: format_version, method, versions, private, epsilon, delta, neighbours,
            replace_one, unit, n_public, n_public_source, sampling, accountant, curve, extra_delta, events, stages,
            assumptions.

    Example:
        >>> import sfumato
        >>> certificate = sfumato.load("people.sfm").certificate  # doctest: +SKIP
        >>> certificate.verify()  # doctest: +SKIP
    """

    content: Mapping[str, Any] = field(repr=False)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Certificate:
        """Read a certificate that a stranger may have written.

        Raises:
            ReleaseError: a key is missing, or has a value of another type.
        """
        problem = malformed(content)
        if problem is not None:
            raise ReleaseError(f"Expected a well-formed certificate in the release, but {problem}.")
        plan = plan_of(content["events"])
        if plan is not None and plan.neighbours.value != content["neighbours"]:
            raise ReleaseError("Expected a certificate whose events have an account under its neighbours.")
        if plan is not None and plan.extra_delta > content["extra_delta"] * (1 + 1e-12):
            raise ReleaseError("Expected a certificate whose extra_delta is that of its events.")
        return cls(dict(content))

    @property
    def private(self) -> bool:
        """False if a seed or no noise at all was used: then nothing is guaranteed."""
        return bool(self.content["private"])

    @property
    def epsilon(self) -> float | None:
        """ε under `neighbours` at `delta`, in nats; None without noise."""
        return self.content["epsilon"]

    @property
    def neighbours(self) -> Neighbours:
        """The relation of `epsilon`: add/remove, but replace-one where subsets were drawn without replacement."""
        return Neighbours(self.content["neighbours"])

    @property
    def delta(self) -> float | None:
        """δ; None without noise."""
        return self.content["delta"]

    def __repr__(self) -> str:
        """Say the guarantee in one line: every ε with its δ and its relation."""
        if self.epsilon is None:
            return "Certificate(NOT PRIVATE: no noise)"
        note = "" if self.private else "NOT PRIVATE (seeded noise): would be "
        relation = "add/remove" if self.neighbours is Neighbours.ADD_REMOVE else "replace"
        return f"Certificate({note}epsilon={self.epsilon:.6g}, delta={self.delta:g}, {relation} one {self.unit_name})"

    @property
    def unit_name(self) -> str:
        """What one unit of privacy is: "row", or the name of the unit column."""
        return str(self.content["unit"]["name"])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy."""
        return dict(self.content)

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

    def _recompute(self, neighbours: Neighbours, *, elsewhere: bool = False) -> float:
        """Return ε; with `elsewhere`, at the largest δ that another machine may have taken for this one."""
        content = self.content
        if content["epsilon"] is None:
            raise ReleaseError("Expected a release with noise: this one has none, so there is no epsilon to recompute.")
        plan = Plan(map(stage_from_dict, content["events"]))
        if neighbours is Neighbours.REPLACE_ONE and plan.repetitions is not None:
            return replacing_account(plan, content["delta"]).epsilon
        accountant, interval = content["accountant"]["name"], content["accountant"]["value_discretization_interval"]
        if neighbours is Neighbours.REPLACE_ONE:
            accountant, interval = "PLDAccountant", interval or DEFAULT_INTERVAL
        self._refuse_long_work(interval or 1.0)
        delta = content["delta"]
        if elsewhere and accountant == "PLDAccountant":
            delta = with_rounding(plan, delta, extra_delta=content["extra_delta"])
        return recompute_epsilon(
            plan.events(neighbours),
            delta,
            accountant=accountant,
            value_discretization_interval=interval,
            neighbours=neighbours,
            extra_delta=content["extra_delta"],
        )

    def _refuse_long_work(self, interval: float) -> None:
        """Refuse events that cost far more than is stated before the exact account runs out of memory on them."""
        content = self.content
        stated = float(content["epsilon"] or 0.0)
        plan = Plan(map(stage_from_dict, content["events"]))
        if plan.repetitions is not None:
            return  # Rényi DP takes the same time for any events
        events = [rough_event(stage, self.neighbours) for stage in plan.stages]
        rough = rough_epsilon(events, content["delta"])
        if rough > _ROUGHLY * stated + 10 or rough / interval > _MOST_GRID_POINTS:
            raise ReleaseError(
                f"Expected events that cost epsilon={content['epsilon']:.6g}, got events that cost about {rough:.3g}. "
                "Do not trust this certificate."
            )

    def verify(self) -> None:
        """Check all that is stated of the cost against the listed events: ε under both relations, curve, and stages.

        A certificate of another machine may differ in δ by the rounding of its sampled steps: that much is allowed.

        Raises:
            ReleaseError: the events cost more than is stated, are shared out otherwise, or there was no noise.
        """
        if self.epsilon is None:
            raise ReleaseError("Expected a release with noise: this one has none, so there is no epsilon to verify.")
        stated = {self.neighbours: self.epsilon}
        stated.setdefault(Neighbours.REPLACE_ONE, self.content["replace_one"]["epsilon"])
        for neighbours, epsilon in stated.items():
            found = self._recompute(neighbours, elsewhere=True)
            if found > epsilon + _VERIFY_TOLERANCE:
                raise ReleaseError(
                    f"Expected events that cost epsilon={epsilon:.6g} under {neighbours.value}, got events that cost "
                    f"epsilon={found:.6g}. Do not trust this certificate."
                )
        self._verify_details()

    def _verify_details(self) -> None:
        """Check the curve and the stages, which are printed beside ε; after ε, which bounds the work."""
        content = self.content
        plan = Plan(map(stage_from_dict, content["events"]))
        interval = content["accountant"]["value_discretization_interval"] or interval_for(plan)
        self._refuse_long_work(interval)
        extra = content["extra_delta"]
        stated = {point["delta"]: point["epsilon"] for point in content["curve"]}
        deltas = sorted((delta for delta in stated if is_resolved(plan, delta, extra_delta=extra)), reverse=True)
        curve = account_curve(
            plan.events(self.neighbours),
            [with_rounding(plan, delta, extra_delta=extra) for delta in deltas],
            neighbours=self.neighbours,
            interval=interval,
            extra_delta=extra,
        )
        stages = _stages(plan, with_rounding(plan, content["delta"], extra_delta=extra), interval)
        if (
            len(stated) < len(content["curve"])
            or any(delta <= extra for delta in stated)
            or any(_above(found.epsilon, stated[delta]) for found, delta in zip(curve, deltas, strict=True))
            or any(
                _above(found["epsilon_alone"], said["epsilon_alone"])
                or abs(found["share"] - said["share"]) > _DETAIL_TOLERANCE
                for found, said in zip(stages, content["stages"], strict=True)
            )
        ):
            raise ReleaseError(
                "Expected a curve and stages that follow from the events, got others. Do not trust this certificate."
            )


def _above(found: float, stated: float) -> bool:
    return found > stated * (1 + _DETAIL_TOLERANCE) + _VERIFY_TOLERANCE


def describe(
    *,
    plan: Plan,
    budget: PrivacyBudget | None,
    method: str,
    unit: Mapping[str, Any],
    n_public: int | None,
    n_public_source: Literal["declared", "bought"],
    sampling: str = "none: every record is read in every pass",
    discovered: Sequence[str] = (),
    searched: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    assumed: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what is known of a fit before it runs: every key of a certificate but `private`.

    `discovered` names the columns whose bounds, categories and missing cells were bought; `searched` says of each
    candidate of a search what its settings are. `versions` and `assumed` are of other packages that took part.
    """
    if budget is None:
        cost: dict[str, Any] = {
            "epsilon": None, "delta": None, "neighbours": plan.neighbours.value, "replace_one": None,
            "accountant": None, "curve": [], "extra_delta": 0.0, "events": [], "stages": [],
        }  # fmt: skip
    else:
        cost = plan_account(plan, budget.delta)
    declared = (
        "The number of rows was declared as public; if it is the true number, that number is disclosed."
        if n_public_source == "declared"
        else "The number of rows was bought with part of the budget."
    )
    search = {"search": {"candidates": list(searched)}} if searched else {}
    return {
        "format_version": FORMAT_VERSION,
        "method": method,
        "versions": {**installed_versions(), **(versions or {})},
        **cost,
        "unit": dict(unit),
        "n_public": n_public,
        "n_public_source": n_public_source,
        "sampling": sampling,
        "assumptions": [*([SEARCHED, *ASSUMPTIONS[1:]] if searched else _assumptions(discovered)), declared, *assumed],
        **search,
    }


def _assumptions(discovered: Sequence[str]) -> list[str]:
    if not discovered:
        return list(ASSUMPTIONS)
    fixed = (
        f"What the schema says of {', '.join(map(repr, discovered))} was bought with part of the budget; all else in "
        "it, and every setting, was fixed without looking at the records."
    )
    return [fixed, *ASSUMPTIONS[1:]]


def issue(description: Mapping[str, Any], *, private: bool) -> Certificate:
    """Write the certificate of a finished fit.

    Args:
        description: what `describe` said of the plan that the ledger was charged.
        private: False if a seed or no noise was used.
    """
    return Certificate({**description, "private": private and description["epsilon"] is not None})
