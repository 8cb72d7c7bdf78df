"""A public release as the prior of a fit: read and compared with the schema before anything is charged."""

from __future__ import annotations

import os
from dataclasses import dataclass

from sfumato.errors import ConfigError, SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import DataSet, Sampler
from sfumato.privacy.certificate import require_verified
from sfumato.privacy.certificate_form import PriorRelease
from sfumato.release.model import ReleaseValue, read_release
from sfumato.release.samplers import build_sampler
from sfumato.schema.schema import Schema
from sfumato.schema.shapes import PRIOR, require_able


@dataclass(frozen=True, slots=True)
class Prior:
    """The prior of a fit: what a certificate says of it, and the sampler of its plain rows."""

    stated: PriorRelease
    sampler: Sampler


def read_prior(
    prior: ReleaseValue | str | os.PathLike[str], schema: Schema, method: str, *, takes_prior: bool, private: bool
) -> Prior:
    """Read and check the release that is the prior of a fit.

    Args:
        prior: a release, or the path of one.
        schema: of the fit.
        method: of the fit.
        takes_prior: whether that method takes one.
        private: whether the noise of the fit is secret: then that of the prior has to be.

    Raises:
        ConfigError: the method or the schema's shape takes none, or the prior's noise is not secret.
        SchemaError: the prior has other columns, or other facts of one.
        ReleaseError: it cannot be read, or its events cost more than it states.
    """
    if not takes_prior:
        raise ConfigError(f"Expected no prior for the method {method}, got one. Use the method max-entropy.")
    require_able(schema, PRIOR, "Leave the prior out")
    if schema.images:
        raise ConfigError("Expected a table for a prior, got images. Leave the prior out.")
    release = prior if isinstance(prior, ReleaseValue) else read_release(prior, ReleaseValue)
    _require_same(schema, release.schema)
    if private and not (release.certificate.private or release.certificate.measured_elsewhere):
        raise ConfigError(
            "Expected a prior of secret noise, got a release that guarantees nothing: what it shows of records would "
            "be in this one too. Name a private release."
        )
    if release.certificate.epsilon is not None:  # the certificate of the fit repeats what it states
        require_verified(release.certificate, "a prior")
    sampler = build_sampler(plain_schema(release.schema), release.sampler, release.parameters)
    if isinstance(sampler, DataSet):
        raise ConfigError("Expected a prior with a model to draw rows from, got a data set. Name another release.")
    certificate, hashes = release.certificate, release.hashes
    stated = PriorRelease(
        arrays=hashes.arrays, content=hashes.content, epsilon=certificate.epsilon, delta=certificate.delta
    )
    return Prior(stated, sampler)


def _require_same(schema: Schema, other: Schema) -> None:
    """Refuse a prior of another schema: names, kinds, bounds, labels, and columns that rules leave."""
    for own, before in ((schema, other), (plain_schema(schema), plain_schema(other))):
        if own.released != before.released:
            differing = sorted({*own.released} ^ {*before.released})
            what = f"others in {', '.join(map(repr, differing))}" if differing else "them in another order"
            raise SchemaError(
                f"Expected a prior with the same columns as the schema, and the same rules, got {what}. Fit with the "
                "prior's schema, or leave the prior out."
            )
        for name in own.released:
            if own.columns[name] != before.columns[name]:
                raise SchemaError(
                    f"Expected a prior with the same facts of column {name!r} as the schema (kind, bounds, labels), "
                    "got others. Fit with the prior's schema, or leave the prior out."
                )
