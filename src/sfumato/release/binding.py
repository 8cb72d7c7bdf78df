"""What ties a certificate to its release: hashes, and the noise and grid of every measurement.

A saved certificate carries the hash of the arrays as written, and of a canonical form of the manifest with the
certificate itself: it cannot be moved to another release by mistake, or without computing hashes anew. What this proves
and what it cannot: docs/audit_trail.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.measurements.queries import Measurement
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.certificate_form import Bound
from sfumato.privacy.reading import plain
from sfumato.privacy.words import Checked
from sfumato.release.manifest import stages_not_kept

_BOUND = ("schema", "sampler", "certificate", "measurements", "form", "not_kept")


def bound(manifest: Mapping[str, Any], packed: bytes) -> dict[str, Any]:
    """Return a manifest whose certificate names the arrays and the manifest."""
    return {**manifest, "certificate": {**manifest["certificate"], "release": plain(hashes(manifest, packed))}}


def hashes(manifest: Mapping[str, Any], packed: bytes) -> Bound:
    """Return what a certificate names its release by: hashes of the arrays, and of what the manifest says."""
    return Bound(arrays=hashlib.sha256(packed).hexdigest(), content=content_hash(manifest))


def content_hash(manifest: Mapping[str, Any]) -> str:
    """Return SHA-256 of a canonical form of a manifest, as it was parsed, in hexadecimal digits.

    The form is a JSON object of those of the keys schema, sampler, certificate (without its `release`), measurements,
    form and not_kept that are there, as `json.dumps(..., sort_keys=True, separators=(",", ":"))` writes it: ASCII,
    numbers as Python's shortest repr.
    """
    bound_parts = {key: manifest[key] for key in _BOUND if key in manifest}
    bound_parts["certificate"] = {key: value for key, value in bound_parts["certificate"].items() if key != "release"}
    canonical = json.dumps(bound_parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def check_binding(manifest: Mapping[str, Any], certificate: Certificate) -> None:
    """Refuse a certificate that was written for other arrays or another manifest, or names none.

    Args:
        manifest: as it was parsed; that its check sum is that of the arrays is known.
        certificate: as it was read.

    Raises:
        ReleaseError: it belongs to another release, or something was changed.
    """
    hashes = certificate.release
    if hashes is None:
        raise ReleaseError("Expected a certificate that names its release, got one that names none: it was taken out.")
    if hashes.arrays != manifest["arrays"]["sha256"]:
        raise ReleaseError("The certificate was written for other arrays: it belongs to another release.")
    if hashes.content != content_hash(manifest):
        raise ReleaseError(
            "The certificate was written for another schema, sampler, measurements or form, or was changed since: it "
            "does not belong to this release."
        )


def check_measurements(measurements: tuple[Measurement, ...], certificate: Certificate, not_kept: object) -> None:
    """Refuse measurements whose noise is not that of their stages, or which lie off the grid of their noise.

    Raises:
        ReleaseError: so it is; or a stage of all records has no measurement, and is not listed as not kept.
    """
    stages = {s.name: s for s in certificate.events if s.inclusion is None}
    factor = 1.0 if certificate.joint is None else certificate.joint.noise_factor
    for i, m in enumerate(measurements):
        if m.origin is None:
            continue
        stage, problem = stages.get(m.origin.stage), "names no stage of all records in the certificate"
        if stage is not None:
            problem = m.origin.contradiction(m.value, m.noise_std, stage.noise_multiplier * factor)
        if problem is not None:
            raise ReleaseError(f"Measurement {i + 1} {problem}: the certificate does not belong to it.")
    if list(stages_not_kept(certificate, measurements)) != (not_kept or []):
        raise ReleaseError("A stage of all records has no measurement, and is not listed under 'not_kept'.")


def what_was_checked(measurements: tuple[Measurement, ...], certificate: Certificate, *, loaded: bool) -> Checked:
    """Return what `load` found to be so.

    Args:
        measurements: of the release.
        certificate: of the release.
        loaded: whether the release is as it was read from a file, and bound: of others nothing is said.
    """
    origins = [m.origin for m in measurements if m.origin is not None]
    return Checked(
        loaded=loaded,
        measurements=len(measurements),
        with_stage=len(origins),
        on_grid=sum(origin.grid is not None for origin in origins),
        not_kept=stages_not_kept(certificate, measurements),
    )
