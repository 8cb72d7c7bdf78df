"""A publisher's words on a publication, and text of strangers where a format would take it for its own signs.

The record for the registry of deployments follows `schemas/deployments-schema.yaml` of opendp/deployments-registry-data
(as of its layout with `basic`, `dp_variant`, `privacy_loss`, `deployment_model`, `implementation` and
`administrative`). What only the publisher knows, such as the region, says so and is to be filled in before it is
submitted.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from sfumato.errors import ConfigError
from sfumato.privacy import words
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.words import harmless, whole
from sfumato.release_front import Release

NOT_STATED = "not stated"
PUBLISHERS = ("Government", "Industry", "Nonprofit")
_MARKS = re.compile(r"([\\`*_\[\]#|<>~$&]|^[-+])")  # brackets make links and pictures; a dash only begins a list
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST = 10_000
TO_FILL_IN = "To be filled in by the publisher."


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Facts that no release has of itself: who publishes it, under which name and licence. All of it becomes public.

    Attributes:
        title: of the data.
        publisher: who publishes them.
        publisher_type: Government, Industry or Nonprofit, as the registry of deployments has it.
        description: what they are, in a paragraph.
        license: of the data, an SPDX identifier or an address.
        url: where they will be found.
        date: of publication, ISO 8601; today if not given.

    Raises:
        ConfigError: an entry is no text, is too long, or holds control characters; or the date is none.

    Example:
        >>> Publication(title="Visits 2024", publisher="Health Office").title
        'Visits 2024'
    """

    title: str = "Synthetic data"
    publisher: str = NOT_STATED
    publisher_type: str = ""
    description: str = ""
    license: str = NOT_STATED
    url: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if not isinstance(value, str) or len(value) > _LONGEST or not all(map(harmless, value)):
                raise ConfigError(
                    f"Expected {entry.name} to be a line of text without control characters, got another."
                )
        if self.publisher_type not in ("", *PUBLISHERS):
            raise ConfigError(
                f"Expected publisher_type to be one of {', '.join(PUBLISHERS)}, got {self.publisher_type!r}."
            )
        if self.url and not re.fullmatch(r"https?://[^\s\"'<>\\]+", self.url):
            raise ConfigError(f"Expected url to begin with https:// and to hold no spaces or quotes, got {self.url!r}.")
        object.__setattr__(self, "date", _day(self.date))

    @property
    def slug(self) -> str:
        """The title as part of an address: small letters, digits and hyphens."""
        return _SLUG.sub("-", self.title.lower()).strip("-")[:80] or "synthetic-data"


def _day(text: str) -> str:
    if not text:
        return datetime.now(UTC).date().isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise ConfigError(f"Expected date as YYYY-MM-DD, got {text!r}.")


def markdown(text: object) -> str:
    """Return text that Markdown shows as it is, on one line: no mark, link or tag of it counts."""
    return _MARKS.sub(r"\\\1", " ".join(whole(str(text).replace("\n", " ").replace("\r", " ")).split()))


def registry_record(release: Release, publication: Publication) -> dict[str, Any]:
    """Return the record of a private release as plain values, for YAML."""
    certificate = release.certificate
    row = certificate.unit.name == "row"
    return {
        "url_slug": publication.slug,
        "deployment": {
            "basic": {
                "name": publication.title,
                "data_curators": [
                    {
                        "data_curator_name": publication.publisher,
                        "data_curator_type": publication.publisher_type or TO_FILL_IN,
                    }
                ],
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
