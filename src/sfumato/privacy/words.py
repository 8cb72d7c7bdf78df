"""Plans and certificates in words that need no course in privacy: for the command line and the report.

A stranger may have written what is said: text comes out without control characters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sfumato.cards.html import figure as figure
from sfumato.cards.html import harmless as harmless
from sfumato.cards.html import sentence as sentence
from sfumato.cards.html import shown as shown
from sfumato.cards.html import whole as whole
from sfumato.errors import ReleaseError, UnsupportedEventError
from sfumato.privacy.certificate_form import JointFit, PlannedStage, PriorRelease, Statement, Verdict
from sfumato.privacy.plan import Neighbours
from sfumato.privacy.risk import TradeOff

_RELATIONS = {Neighbours.ADD_REMOVE: "added or removed", Neighbours.REPLACE_ONE: "replaced by another"}
NOT_COVERED = "facts were read off the records: NOT covered by the guarantee"
FALSE_ALARMS = 0.05
_LARGEST_EXPONENT = 50.0  # beyond it nothing is promised, and the factor has no name


def summary(certificate: Statement) -> str:
    """Say the guarantee in one line, as a repr: every ε with its δ and its relation."""
    if certificate.epsilon is None:
        return f"Certificate(NOT PRIVATE: {_why_none(certificate)})"
    note = "" if not certificate.seeded else "NOT PRIVATE (seeded noise): would be "
    note += "facts NOT COVERED; else " if certificate.read_off else ""
    relation = "add/remove" if certificate.neighbours is Neighbours.ADD_REMOVE else "replace"
    cost = f"epsilon={certificate.epsilon:.6g}, delta={certificate.delta:g}"
    fit = "" if certificate.process_fit is None else f". {of_process(certificate.process_fit).partition('. ')[0]}"
    return f"Certificate({note}{cost}, {relation} one {shown(certificate.unit.name)}{fit})"


def of_process(number: int) -> str:
    """Say of an estimator's fit what its process may have done before it."""
    return (
        f"Fit {number} of this process; what prepared the input is not in here. Each fit of an estimator costs its own "
        "epsilon, and what a scaler, an imputer, a selection of columns or a search for settings read off the records "
        "is NOT covered by the guarantee."
    )


def _why_none(description: Statement) -> str:
    """Why there is no epsilon."""
    return "its noise was drawn elsewhere" if description.measured_elsewhere else "no noise"


def who(description: Statement) -> str:
    """Say who is protected: the unit, and how much of it."""
    if description.measured_elsewhere:
        return "Nobody, by Sfumato. Whom the noise protects is for those to say who drew it."
    name, rows = shown(description.unit.name), description.unit.max_rows
    if name == "row" and rows == 1:
        return (
            "Each single row of the table. Somebody who has several rows is protected for each, not for all together."
        )
    if rows == 1:
        return f"Each {name}: all that was used of it is one record."
    return f"Each {name}, with all of its rows that were used (at most {rows})."


def relation(description: Statement) -> str:
    """Say which two tables the guarantee compares."""
    if description.measured_elsewhere:
        return "None is stated."
    name = shown(description.unit.name)
    unit = "row" if name == "row" else f"{name} with all its rows"
    how = _RELATIONS[description.neighbours]
    return f"It compares the table that was used with the same table in which one {unit} is {how}."


def meaning(certificate: Statement) -> list[str]:
    """Say what the guarantee means, a paragraph each; nothing is promised without noise or with a seed."""
    epsilon, delta = certificate.epsilon, certificate.delta
    if certificate.measured_elsewhere:
        return [
            "What this model was made of was measured elsewhere, and others drew the noise. Sfumato guarantees nothing "
            "of it: what holds is what those guarantee who measured. Rows and estimates of it cost nothing more."
        ]
    if epsilon is None:
        return ["This release was made without noise. It guarantees nothing."]
    if certificate.seeded:
        return [
            "The noise of this release came from a seed: anyone who knows the seed can remove it. It guarantees "
            "nothing; the figures say what the same release with secret noise would cost."
        ]
    if epsilon > _LARGEST_EXPONENT:
        return [f"Epsilon is {figure(epsilon)}: so large that the guarantee means nothing in practice."]
    factor = math.exp(epsilon)
    return [
        *not_covered(certificate),
        "Whatever anybody does with this release, the outcome would have been nearly as likely without you: no outcome "
        f"becomes more than {figure(factor)} times as likely, or as unlikely, because your data were used. This may "
        f"fail with a probability of the order of {figure(delta)}, which is delta.",
        f"Someone who gave it an even chance that your data were used, and who knows everything else, can be brought "
        f"by this release to {_percent(factor / (1 + factor))} at the most, or down to {_percent(1 / (1 + factor))}, "
        "except with probability delta. Someone who knows less learns less.",
        *risks(certificate),
        "It holds against any attack, known or not, and whatever else becomes known later. It does not hide what is "
        "true of people in general, and it does not protect against what follows from facts that are public anyway.",
    ]


def of_prior(prior: PriorRelease) -> str:
    """Say what a prior was, and what it means for whoever is in the data of both."""
    if prior.epsilon is None:
        cost, both = "of no stated epsilon", "no bound on what both show"
    else:
        cost = f"(epsilon {figure(prior.epsilon)}, delta {figure(prior.delta)})"
        both = "both epsilons, and deltas, added"
    return (
        f"The release {prior.content[:16]} {cost} is the prior: where noise hides the records, the model follows it. "
        f"Estimates rest on what this fit measured. Whoever is in the data of both has {both}."
    )


def of_keys(tables: Sequence[str], unit: str) -> list[str]:
    """Say what rests on keys of tables, which alone tell whose the rows below are."""
    return [
        f"Rows below {shown(table)} are found by its key alone. That no two of {shown(unit)} have the same key there "
        "rests on the data: whoever comes with another's key takes rows from that one."
        for table in tables
    ]


def of_holders(joint: JointFit) -> list[str]:
    """Say whose records a joint fit had, and against whom it protects."""
    t = joint.colluding
    against = {
        0: "all but the holders, each of whom knows its own part of the noise",
        1: "everybody, the other holders and whoever passed the messages on among them, as long as no two holders put "
        "together what they know",
    }
    several = f"everybody, and against up to {t} holders who put together what they know"
    before = [] if joint.attempts == 1 else [
        f"What was handed out before, in {joint.attempts - 1} attempts that ended for want of "
        f"{', '.join(joint.without)}, is in the account: their events are listed with their numbers."
    ]  # fmt: skip
    return [
        *before,
        f"One release of the records of {len(joint.names)} holders: {', '.join(joint.names)}. Each sent its sums with "
        "a part of the noise, under one-time pads that go out in the sum of all.",
        f"The guarantee holds against {against.get(t, several)}. The others are trusted to follow the protocol, and to "
        "have compared the fingerprint of all cards. Pads and signatures rest on X25519, HKDF, AES-256 and Ed25519.",
        f"The noise of all holders is {joint.noise_factor:.2f} times that of the stages, which is what is guaranteed.",
        "It is for the rows that one holder has of a person: whoever is in the data of several has a larger epsilon.",
        "That each row of a holder's table is made of one record alone is that holder's word.",
    ]


def risks(description: Statement) -> list[str]:
    """Say what the best attacker finds, of the events: two sentences; nothing where nothing is guaranteed."""
    try:
        curve = description.trade_off()
    except (ReleaseError, UnsupportedEventError):
        return []
    return [] if curve is None else attacks(curve, description.neighbours)


def attacks(curve: TradeOff, neighbours: Neighbours, of: str = "this release") -> list[str]:
    """Say what the best attacker on `of` finds, in two sentences."""
    rate, advantage = curve.true_positive_rate(FALSE_ALARMS), curve.advantage
    many, false = _at_most(rate), 100 * FALSE_ALARMS
    if neighbours is Neighbours.REPLACE_ONE:
        whom, others = "100 people whose data are one value and not another", "100 with the other"
    else:
        whom, others = "100 people whose data are in it", "100 who are not"
    return [
        f"Of {whom}, the best attacker on {of} finds at most {many} while wrongly naming {false:g} of {others}; a coin "
        f"would find {false:g}.",
        f"At no rate of false alarms does the attacker, who knows all other records, beat a coin by more than "
        f"{_at_most(advantage)} of 100 (the advantage). What is true of groups, or in the schema, is not bounded.",
    ]


def _at_most(share: float) -> str:
    """Return a share of 100, rounded up to a tenth, of more than 10 to a whole one."""
    hundred = 100 * share
    return f"{math.ceil(hundred) if hundred > 10 else math.ceil(10 * hundred - 1e-9) / 10:g}"


def not_covered(description: Statement) -> list[str]:
    """Say, if it is so, that the guarantee does not cover facts of the schema, or what came before an estimator."""
    read_off = (
        f"Some {NOT_COVERED}. They can show a single person, and no noise protects them. What follows is said of all "
        "the rest."
    )
    number = description.process_fit
    return [*([read_off] if description.read_off else []), *([] if number is None else [of_process(number)])]


def origins(description: Statement) -> str:
    """Say where the facts of the schema come from."""
    return whole(f"Where the facts come from: {'; '.join(description.origins) or 'the holder has not said'}.")


def cost(description: Statement) -> str:
    """Say ε and δ, or that there is no guarantee."""
    if description.epsilon is None:
        return f"No guarantee: {_why_none(description)}"
    return _point(description.epsilon, description.delta)


def replaced(description: Statement) -> str:
    """Say what the same events cost where one unit is replaced by another."""
    point = description.replace_one
    return "none is given" if point is None else _point(point.epsilon, point.delta)


def guarantee(description: Statement) -> str:
    """Say the guarantee in one line, under both relations."""
    if description.epsilon is None:
        return "Guarantee: NONE. " + (
            "Others drew the noise." if description.measured_elsewhere else "There is no noise."
        )
    rows = description.unit.max_rows
    one = f"one {shown(description.unit.name)}" + ("" if rows == 1 else f" (up to {rows} rows)")
    if description.neighbours is Neighbours.REPLACE_ONE:
        return f"Guarantee: {cost(description)}, for replacing {one}. Adding or removing {one}: none is given."
    return f"Guarantee: {cost(description)}, for adding or removing {one}. Replacing {one}: {replaced(description)}."


def entering(description: Statement) -> str:
    """Say how the public number of rows is known, and how records enter a stage."""
    rows = "" if description.n_public is None else f", {description.n_public}"
    text = f"Rows: {description.n_public_source}{rows}. Sampling: {whole(description.sampling)}."
    return f"{text} {weighted(description)}".rstrip()


def weighted(description: Statement) -> str:
    """Say how rows were weighted; nothing where each counts once."""
    weight = description.weight
    if weight is None:
        return ""
    total = "" if weight.total is None else f" Their total is public: {figure(weight.total, 6)}."
    return f"Rows are weighted by {shown(weight.column)!r}, from 0 to {figure(weight.upper, 6)} each.{total}"


def recomputed(certificate: Statement, epsilon: float) -> str:
    """Say what the named accountant makes of the listed events, after `verify`."""
    name = "no accountant" if certificate.accountant is None else certificate.accountant.name
    at = f"epsilon = {epsilon:.6g} at delta = {certificate.delta:g} under {certificate.neighbours.value}"
    return f"Computed again with {name}: {at}, as stated."


class Checked(NamedTuple):
    """The checks of a release beside its events.

    Attributes:
        loaded: whether it was read from a file.
        measurements: how many there are; of these `with_stage` have the noise of a stage of the certificate, and
            `on_grid` lie on the grid of that noise.
        not_kept: stages of all records whose results are not among the measurements.
    """

    loaded: bool
    measurements: int
    with_stage: int
    on_grid: int
    not_kept: tuple[str, ...]


def checked(checks: Checked) -> list[str]:
    """Say what was checked of a release beside its events, and what was not."""
    if not checks.loaded:
        return ["Not checked: a release in memory. Save it: what is saved names its arrays and its schema."]
    lines = ["The certificate belongs to this file: checksums match."]
    if checks.with_stage:
        lines.append(
            f"{checks.with_stage} of {checks.measurements} noisy statistics have the noise level that is stated; "
            f"{checks.on_grid} of them are multiples of its rounding step."
        )
    if checks.not_kept:
        lines.append(f"Stages whose results are not kept: {', '.join(map(shown, checks.not_kept))}.")
    return lines


def signed(fingerprint: str) -> str:
    """Say whose signature of a release was verified."""
    return f"The signature belongs to this file, byte for byte, and was made with the key {fingerprint}."


class StageWords(NamedTuple):
    """A line of the table of stages. `brief` is the event for a narrow column; `share` of 1."""

    name: str
    event: str
    brief: str
    noise_multiplier: str
    share: float
    epsilon_alone: str


def stages(description: Statement) -> list[StageWords]:
    """Say how each stage is protected and what it costs, in order."""
    return [
        StageWords(
            name=shown(stage.name),
            event=stage.words,
            brief=stage.brief,
            noise_multiplier=figure(stage.noise_multiplier, 5),
            share=costs.share,
            epsilon_alone=figure(costs.epsilon_alone, 4),
        )
        for stage, costs in zip(description.events, description.stages, strict=True)
    ]


def forecasts(description: Statement) -> list[str]:
    """Say what each stage of a plan measures, and what its noise would mean."""
    planned = [stage for stage in description.stages if isinstance(stage, PlannedStage) and stage.forecast]
    return [f"{shown(stage.name)}: {stage.measures}; {stage.forecast}." for stage in planned]


def repetitions(description: Statement) -> str | None:
    """Say what a search repeated, or None if there was none."""
    law = next((stage.repetitions for stage in description.events if stage.repetitions is not None), None)
    if law is None:
        return None
    return (
        f"Stages marked * were repeated: {law.mean:g} times on average, of which only the best left. What they cost "
        "alone is for all repetitions, shares are of one."
    )


def chosen(description: Statement) -> list[str]:
    """Say which candidate a search chose, and how near it came; nothing without a search."""
    search = description.search
    if search is None:
        return []
    return [
        f"Chosen of {len(search.candidates)} candidates: {whole(search.candidates[search.chosen])}.",
        "Mean squared distance of its pairs of columns from the records' (noisy, may be below 0): "
        f"{search.squared_distance:.3g}.",
        *verdicts(description),
    ]


def verdicts(description: Statement) -> list[str]:
    """Say what criteria of acceptance said of a release; nothing where none were stated."""
    return [] if description.search is None else list(map(verdict, description.search.verdicts))


def verdict(result: Verdict) -> str:
    """Say whether a criterion of acceptance was met."""
    passed = "passed" if result.passed else "FAILED"
    about = f"noisy value {figure(result.value)}, standard deviation of the noise {figure(result.noise_std, 2)}"
    return f"Criterion {sentence(result.criterion)}: {passed} ({about})."


def _point(epsilon: float, delta: float | None) -> str:
    return f"epsilon = {figure(epsilon, 4)}, delta = {figure(delta)}"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %" if share > 0.99 else f"{100 * share:.2g} %"
