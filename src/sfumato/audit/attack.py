"""Membership inference on a release method, the lower bound on ε that it proves, and both as a card."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from dp_accounting.privacy_accountant import PrivacyAccountant
from scipy import optimize, stats

from sfumato.audit.shadow import Attacker, Shadow, corners
from sfumato.cards.html import banner, card, figure, interval, paragraph, table
from sfumato.errors import ConfigError, require_instance, require_integer, require_open_unit
from sfumato.fitting.purposes import Facts
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.mechanisms.noise import NoiseSource, SecureNoise, SeededNoise
from sfumato.privacy.accounting import COARSE_INTERVAL, account, fresh_accountant, interval_for
from sfumato.privacy.plan import Neighbours, Plan
from sfumato.privacy.pld import gaussian_delta
from sfumato.schema.schema import Schema, SchemaLike, read_schema

_LARGEST_EPSILON = 100.0
_DELTAS, _LARGEST_DELTA = 8, 0.5
_LEAST_NOISE, _MOST_NOISE = 0.25, 16.0
_HALVINGS = 4
_ABOVE = 1e-9
PILOTS = 0.25
"""Share of the fits that choose the thresholds; the others count."""

_FEWEST_FITS = 20
_PILOT_SEED = 1 << 40  # far from those of the fits that count

_Test = tuple[int, float]  # which likelihood ratio, and above what it is taken for the canary's presence


def proportion_above(successes: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: a number that a proportion exceeds but with probability `failure`."""
    return 0.0 if successes == 0 else float(stats.beta.ppf(failure, successes, trials - successes + 1))


def proportion_below(successes: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: a number that a proportion stays below but with probability `failure`."""
    return 1.0 if successes == trials else float(stats.beta.ppf(1 - failure, successes + 1, trials - successes))


def epsilon_above(true_positive: float, false_positive: float, delta: float) -> float:
    """The least ε at δ that allows rates of at least `true_positive` and at most `false_positive`; at least 0.

        ln((TPR − δ)/FPR) and, of the other error, ln((1 − FPR − δ)/(1 − TPR))

    Reference: Kairouz, Oh and Viswanath 2015, Theorem 2.1.
    """
    pairs = ((true_positive - delta, false_positive), (1 - false_positive - delta, 1 - true_positive))
    return max([0.0, *(math.log(a / b) for a, b in pairs if a > 0 and b > 0)])


def shift_above(true_positive: float, false_positive: float) -> float:
    """The least μ of a Gaussian mechanism that allows these rates: Φ⁻¹(TPR) − Φ⁻¹(FPR), at least 0.

    Reference: Dong, Roth and Su 2022, definition 2.6; as an audit: Nasr et al. 2023, https://arxiv.org/abs/2302.07956.
    """
    return max(0.0, float(stats.norm.ppf(true_positive) - stats.norm.ppf(false_positive)))


def gaussian_epsilon(shift: float, delta: float) -> float:
    """ε at δ of a Gaussian mechanism with sensitivity `shift` and noise 1, at most 100."""

    def excess(epsilon: float) -> float:
        return float(gaussian_delta(shift, np.array(epsilon))) - delta

    if shift <= 0 or excess(0.0) <= 0:
        return 0.0
    if excess(_LARGEST_EPSILON) >= 0:
        return _LARGEST_EPSILON
    return float(optimize.brentq(excess, 0.0, _LARGEST_EPSILON))  # type: ignore[arg-type]


def plan_epsilon(plan: Plan, true_positive: float, false_positive: float, delta: float) -> float:
    """About the least ε at δ of a plan with all its noise times one factor that allows these rates; at least 0.

    What `shift_above` is for Gaussian releases: the shape of the trade-off between errors is that of the certificate's
    events, and its scale is found by a few bisections, from a quarter of the noise to sixteen times as much: the result
    is that of a factor which just does not allow the rates. It is above the plan's own ε if and only if the plan as it
    is does not allow them. Accounts are looked at from δ to 1/2, by privacy-loss distributions on a coarse grid that
    allows too much rather than too little.

    Args:
        plan: calibrated; events of any kind.
        true_positive: a rate that right guesses exceed.
        false_positive: a rate that wrong guesses stay below.
        delta: δ.
    """
    deltas = np.geomspace(delta, _LARGEST_DELTA, _DELTAS)
    needed = [epsilon_above(true_positive, false_positive, d) for d in deltas]

    def allows(factor: float) -> bool:
        accountant = _accountant(plan, factor)
        return all(n <= 0 or n <= accountant.get_epsilon(d) for n, d in zip(needed, deltas, strict=True))

    if not any(needed):
        return 0.0
    own = account(plan, delta).epsilon
    refuted = not allows(1.0)
    bad = _least_refuted(allows) if refuted else _most_refuted(allows)
    if bad is None:
        return 0.0
    epsilon = float(_accountant(plan, bad).get_epsilon(delta))
    # what the coarse grid rounds up may not refute a plan that allows the rates, nor clear one that does not
    return max(epsilon, own * (1 + _ABOVE)) if refuted else min(epsilon, own)


def _most_refuted(allows: Callable[[float], bool]) -> float | None:
    """Return a factor above 1 that does not allow the rates, near the largest; None if even the most noise does."""
    good, bad = 1.0, 2.0
    while allows(bad):
        good, bad = bad, 2 * bad
        if bad > _MOST_NOISE:
            return None
    return _bisect(allows, good, bad)


def _least_refuted(allows: Callable[[float], bool]) -> float:
    """Return a factor of at most 1 that does not allow the rates, near the least, or one near a quarter."""
    good, bad = 0.5, 1.0
    while not allows(good):
        bad, good = good, good / 2
        if good < _LEAST_NOISE:
            return bad
    return _bisect(allows, good, bad)


def _bisect(allows: Callable[[float], bool], good: float, bad: float) -> float:
    for _ in range(_HALVINGS):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if allows(middle) else (good, middle)
    return bad


def _accountant(plan: Plan, factor: float) -> PrivacyAccountant:
    scaled = plan.scaled(factor)
    # with less noise ε is larger, and so may the grid's steps be
    accountant = fresh_accountant(
        plan.neighbours, min(COARSE_INTERVAL, 10 * interval_for(plan)) / min(factor, 1.0) ** 2
    )
    for event in scaled.events(plan.neighbours):
        accountant.compose(event)
    return accountant


def audit_card(outcome: Mapping[str, Any]) -> str:
    """Return the card of what `audit` returns."""
    certified, delta = outcome["epsilon_certified"], figure(outcome["delta"])
    lower = [outcome["epsilon_lower"], outcome["epsilon_lower_gaussian"]]
    named = ["found by attack, at least", "the same, by the trade-off of its events", "certified, at most"]
    most = 1.05 * max(certified, *lower)
    rows = [
        (name, figure(value, 4), interval(0.0, value, value, (0.0, most), f"{value:.4g}"))
        for name, value in zip(named, [*lower, certified], strict=True)
    ]
    verdict = (
        "No attack broke the certificate. That refutes nothing, and proves nothing: the proofs do."
        if outcome["holds"]
        else "The attack got more out of the method than its certificate allows. Do not use it; report it."
    )
    return card(
        "Audit: attacks on the method beside what it certifies",
        banner(verdict, alarm=not outcome["holds"]),
        table(["", f"epsilon at delta = {delta}", ""], rows, numbers=(1,)),
        paragraph(
            f"{outcome['fits']} shadow fits; the lower bounds hold together with confidence {outcome['confidence']:g}. "
            "No record of anybody was read.",
            quiet=True,
        ),
    )


class Audit(dict[str, Any]):
    """The outcome of `audit`: a plain dictionary that shows itself as a card in a notebook."""

    def _repr_html_(self) -> str:

        return audit_card(self)


def audit(
    synthesizer: Synthesizer,
    schema: SchemaLike,
    *,
    target: str | None = None,
    n_public: int | None = None,
    fits: int = 1_000,
    confidence: float = 0.999,
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Attack a release method with shadow fits, and bound its ε from below.

    All fits see planted records at one corner of the domain, and half of them one more, the canary, at the opposite
    one; of a method that samples, the canary or nothing. The attacker knows the record, the method and all noisy
    statistics, gradients included, and guesses by their likelihood ratio. One threshold is chosen on a
    quarter of the fits, which then do not count; the other is even odds. Clopper-Pearson bounds of the rates of right
    and wrong guesses bound ε.

    Privacy: none is spent. No record of anybody is read: the result may be shown.

    Args:
        synthesizer: the method with its ε, whose fits read all records, or Poisson samples of them.
        schema: public description of the records, or the path of one.
        target: as of a fit.
        n_public: the public number of rows; by default the schema's `rows`.
        fits: shadow fits, at least 20.
        confidence: with which both bounds hold together, in (0, 1).
        seed: of the noise, for tests; by default the noise is secret.
        progress: called with the number of fits that are done.

    Returns:
        `epsilon_certified` and `delta`; `epsilon_lower`, which assumes nothing of the mechanism;
        `epsilon_lower_gaussian`, sharper, for mechanisms whose errors trade off as the certificate's events do: as a
        Gaussian's, or, where records are sampled, as those of the plan with all its noise times one factor; `holds`:
        whether neither exceeds `epsilon_certified`; `true_positives` and `false_positives` of the two thresholds;
        `fits`, `confidence`, `neighbours`, `private` (true: no record was read). JSON-ready.

    Raises:
        ConfigError: an argument is outside its domain; a method without noise, or one of subsets or fixed degrees; a
            unit, or sets.
        SchemaError: as of a fit.
    Edge cases: a correct method gives an `epsilon_lower` far below `epsilon_certified` unless fits are many: it can
        refute, and does not confirm. Least so where few samples hold the canary, as in short fits of networks.
    Reference: Jagielski et al. 2020, https://arxiv.org/abs/2006.07709; Nasr et al. 2023.
    """
    require_instance(Synthesizer, "a method, such as MaxEntropy(epsilon=1.0)", synthesizer=synthesizer)
    schema = read_schema(schema)
    require_integer(at_least=_FEWEST_FITS, fits=fits)
    require_open_unit(confidence=confidence)
    if not isinstance(schema.rows if n_public is None else n_public, int):
        raise ConfigError(
            "Expected a declared number of rows to audit a method, got none. Put `rows:` into the schema, or pass "
            "n_public=... (--rows)."
        )
    certified = synthesizer.description(schema, target=target, n_public=n_public)
    if certified.epsilon is None or certified.delta is None:
        raise ConfigError("Expected a method with noise to audit, got one without.")
    shadow = _shadow(synthesizer, schema, target, n_public)
    attacker = _strongest(shadow, schema)
    scores = {True: [], False: []}
    for i in range(fits):
        planted = i % 2 == 0
        noise: NoiseSource = SecureNoise() if seed is None else SeededNoise(seed * fits + i)
        released = shadow.measure(attacker.present if planted else attacker.absent, noise)
        scores[planted].append(attacker.scores(released, planted=planted))
        if progress is not None:
            progress(i + 1)
    bounds = _bounds(np.array(scores[True]), np.array(scores[False]), shadow.plan, certified.delta, confidence)
    return Audit(
        private=True,
        epsilon_certified=certified.epsilon,
        delta=certified.delta,
        neighbours=certified.neighbours.value,
        holds=max(bounds["epsilon_lower"], bounds["epsilon_lower_gaussian"]) <= certified.epsilon,
        **bounds,
        fits=fits,
        confidence=confidence,
    )


def _shadow(synthesizer: Synthesizer, schema: Schema, target: str | None, n_public: int | None) -> Shadow:
    plan = synthesizer.plan(schema, target=target, n_public=n_public)
    if plan.neighbours is not Neighbours.ADD_REMOVE:
        raise ConfigError(
            f"Expected a method whose neighbours differ by one record to audit, got {synthesizer.method!r} on subsets "
            "of a public number of records. Use Poisson samples."
        )
    if schema.unit is not None:
        raise ConfigError("Expected a schema whose unit is the row to audit, got one with a unit column. Leave it out.")
    shadow = Shadow(synthesizer, plan, Facts(schema, target, schema.rows if n_public is None else n_public))
    return shadow.counted(corners(schema)[0])


def _strongest(shadow: Shadow, schema: Schema) -> Attacker:
    """The attacker of the canary whose presence shows most, on average of a few fits."""
    first, last = corners(schema)
    attackers = [Attacker.of(shadow, first, last), Attacker.of(shadow, last, first)]

    def shows(attacker: Attacker) -> float:
        return sum(
            attacker.scores(shadow.measure(attacker.present, SeededNoise(_PILOT_SEED + i)), planted=True)[0]
            for i in range(4)
        )

    return max(attackers, key=shows)


def _bounds(planted: np.ndarray, absent: np.ndarray, plan: Plan, delta: float, confidence: float) -> dict[str, Any]:
    """Four proportions, each at a quarter of the level.

    The plain bound's test is chosen on pilots, which then do not count. That of the sharper bound is a likelihood ratio
    above 0, where it is even. Of Gaussian releases there is one such ratio, so all fits count; otherwise pilots choose
    one.
    """
    pilots = max(2, int(PILOTS * min(len(planted), len(absent))))
    failure = (1 - confidence) / 4
    first, others = (planted[:pilots], absent[:pilots]), (planted[pilots:], absent[pilots:])

    def plain(right: float, wrong: float) -> float:
        return epsilon_above(right, wrong, delta)

    ratios = range(planted.shape[1])
    cuts = np.quantile(np.concatenate(first), np.linspace(0.05, 0.95, 19), axis=0)
    chosen = _best([(i, float(cut)) for i in ratios for cut in cuts[:, i]], *first, plain, failure)
    counted = {"plain": (*others, chosen), "sharp": (planted, absent, (0, 0.0))}
    if len(ratios) > 1:
        counted["sharp"] = (*others, _best([(i, 0.0) for i in ratios], *first, shift_above, failure))
    rates = _rates(*counted["sharp"], failure)
    gaussian = all(stage.inclusion is None for stage in plan.stages)
    return {
        "epsilon_lower": plain(*_rates(*counted["plain"], failure)),
        "epsilon_lower_gaussian": gaussian_epsilon(shift_above(*rates), delta)
        if gaussian
        else plan_epsilon(plan, *rates, delta),
        "true_positives": [float(np.mean(some[:, i] > cut)) for some, _, (i, cut) in counted.values()],
        "false_positives": [float(np.mean(some[:, i] > cut)) for _, some, (i, cut) in counted.values()],
    }


def _rates(planted: np.ndarray, absent: np.ndarray, test: _Test, failure: float) -> tuple[float, float]:
    """A rate that right guesses exceed, and one that wrong guesses stay below."""
    which, cut = test
    hits, alarms = int((planted[:, which] > cut).sum()), int((absent[:, which] > cut).sum())
    return proportion_above(hits, len(planted), failure), proportion_below(alarms, len(absent), failure)


def _best(
    tests: list[_Test], planted: np.ndarray, absent: np.ndarray, bound: Callable[[float, float], float], failure: float
) -> _Test:
    """The test that gives the best bound on pilots; of few pilots every bound may be 0: then the rates decide."""

    def worth(test: _Test) -> tuple[float, float]:
        which, cut = test
        apart = np.mean(planted[:, which] > cut) - np.mean(absent[:, which] > cut)
        return bound(*_rates(planted, absent, test, failure)), float(apart)

    return max(tests, key=worth)
