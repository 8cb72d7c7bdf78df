"""A record for the Differential Privacy Deployments Registry of OpenDP, NIST and Oblivious.

It follows `schemas/deployments-schema.yaml` of opendp/deployments-registry-data (as of its layout with `basic`,
`dp_variant`, `privacy_loss`, `deployment_model`, `implementation` and `administrative`). What only the publisher knows,
such as the region, says so and is to be filled in before it is submitted.
"""

from __future__ import annotations

from typing import Any

from sfumato.privacy import words
from sfumato.privacy.certificate import Certificate
from sfumato.publish.publication import Publication
from sfumato.release_front import Release

TO_FILL_IN = "To be filled in by the publisher."


def registry_record(release: Release, publication: Publication) -> dict[str, Any]:
    """Return the record of a private release as plain values, for YAML."""
    certificate = release.certificate
    row = certificate.unit.name == "row"
    return {
        "url_slug": publication.slug,
        "deployment": {
            "basic": {
                "name": publication.title,
                "data_curators": [_curator(publication)],
                "description": publication.description or TO_FILL_IN,
                "intended_use": TO_FILL_IN,
                "data_product_type": "Synthetic data",
                "data_product_region": TO_FILL_IN,
                "publication_date": publication.date,
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": f"Tables with the columns {', '.join(words.shown(n) for n in release.schema.released)}.",
                "unprotected_quantities": _unprotected(certificate),
            },
            "privacy_loss": {
                "privacy_unit": "Event-level" if row else "User-level",
                "privacy_unit_details": f"{words.who(certificate)} {words.relation(certificate)}",
                "privacy_parameters": {"epsilon": certificate.epsilon, "delta": certificate.delta},
                "privacy_parameters_details": " ".join([*words.not_covered(certificate), words.guarantee(certificate)]),
            },
            "deployment_model": {
                "model_name": "Central", "release_type": "One release", "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": _implementation(certificate),
            "administrative": {"status": "Draft", "registry_authors": [publication.publisher], "tier": 3},
        },
    }  # fmt: skip


def _curator(publication: Publication) -> dict[str, str]:
    return {"data_curator_name": publication.publisher, "data_curator_type": publication.publisher_type or TO_FILL_IN}


def _unprotected(certificate: Certificate) -> str:
    is_declared = certificate.n_public_source == "declared"
    rows = f"The number of rows, {certificate.n_public}, was declared as public." if is_declared else ""
    return " ".join([rows, *words.not_covered(certificate), "Column names and the schema's facts."]).strip()


def _implementation(certificate: Certificate) -> dict[str, str]:
    stages = "\n".join(
        f"- {stage.name}: {stage.event}, noise multiplier {stage.noise_multiplier}"
        for stage in words.stages(certificate)
    )
    name = "" if certificate.accountant is None else certificate.accountant.name
    version = certificate.versions.get("sfumato", "")
    prepared = [*map(words.whole, certificate.assumptions[:1]), *words.chosen(certificate)]
    return {
        "preprocessing_and_hyperparameter_tuning": " ".join(prepared),
        "mechanisms": f"Sfumato {words.shown(version)}, method {words.shown(certificate.method)}:\n{stages}",
        "composition": f"All stages together, by {name} of dp-accounting.",
        "post_processing": "A generative model is estimated from the noisy statistics, and rows are sampled from it.",
        "justification": TO_FILL_IN,
    }
