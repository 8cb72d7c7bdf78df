"""Certificates, and what a fit would cost, as cards: what was or would be spent, what it means, and on what it rests.

Of a stranger's certificate too: nothing is taken for more than text.
"""

from __future__ import annotations

from sfumato.cards.html import Html, banner, card, code, facts, fold, paragraph, parts, table
from sfumato.privacy import words
from sfumato.privacy.certificate_form import Statement


def standing(certificate: Statement) -> Html:
    """Return in a frame what is guaranteed: ε and δ, or that nothing is."""
    if certificate.guaranteed:
        sentence = words.guarantee(certificate)
        note = f" Some {words.NOT_COVERED}." if certificate.read_off else ""
        return banner(sentence + note, alarm=bool(certificate.read_off))
    return banner(f"NOT PRIVATE. {words.meaning(certificate)[0]}", alarm=True)


def certificate_card(certificate: Statement) -> str:
    """Return the card of a certificate."""
    meaning = words.meaning(certificate) if certificate.guaranteed else []
    rows = [
        ("Who is protected", words.who(certificate)),
        ("Neighbours", words.relation(certificate)),
        ("Method", words.shown(certificate.method)),
    ]
    checks = [Html("<ul>")]
    checks += [Html("<li>{}</li>").format(words.whole(line)) for line in certificate.assumptions]
    return card(
        "Certificate: what this release cost",
        standing(certificate),
        *map(paragraph, meaning[:2]),
        *map(paragraph, words.risks(certificate)),
        facts(rows),
        paragraph(words.entering(certificate)),
        paragraph(words.origins(certificate)),
        *map(paragraph, words.verdicts(certificate)),
        *spending(certificate),
        fold("What it rests on", *checks, Html("</ul>")),
        paragraph("Bounds, labels and losses of each column: ", code("release.columns()"), ".", quiet=True),
        paragraph("Check it: ", code("certificate.verify()"), " computes epsilon again from the events.", quiet=True),
    )


def description_card(description: Statement) -> str:
    """Return the card of what a fit would cost."""
    forecasts = words.forecasts(description)
    return card(
        "Plan: what a fit would spend",
        banner(words.guarantee(description), alarm=description.epsilon is None),
        facts([("Who is protected", words.who(description)), ("Method", words.shown(description.method))]),
        *map(paragraph, words.risks(description)),
        paragraph(words.entering(description)),
        *spending(description),
        *map(paragraph, forecasts),
        paragraph("Made from the schema and the settings alone: no record was read.", quiet=True),
    )


def spending(description: Statement) -> list[Html]:
    """Return the spending by stage: a bar of parts, and a table."""
    stages = words.stages(description)
    if not stages:
        return []
    named = ", ".join(f"{stage.name} {stage.share:.0%}" for stage in stages)
    header = ["stage", "event", "noise multiplier", "share", "epsilon alone"]
    rows = [(s.name, s.event, s.noise_multiplier, f"{s.share:.0%}", s.epsilon_alone) for s in stages]
    repeated = words.repetitions(description)
    return [
        paragraph("Shares of the budget: ", named, quiet=True),
        parts([stage.share for stage in stages], f"Shares of the budget: {named}"),
        fold("Stages", table(header, rows, numbers=(2, 3, 4)), *([] if repeated is None else [paragraph(repeated)])),
    ]
