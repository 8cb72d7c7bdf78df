"""Detached signatures of releases: Ed25519, over the bytes on disk, in a small JSON file beside the release.

    sfumato publish sign people.sfm --key my.key        → people.sfm.sig
    sfumato certificate people.sfm --public-key my.key.pub

Signed is the text of `statement`: it is the same for a directory and for an archive of the same release.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato.errors import ConfigError, OutputError, ReleaseError
from sfumato.io.atomic import atomic_path, refuse_existing, write_or_refuse
from sfumato.io.strict_json import parse_object
from sfumato.io.untrusted import read_bounded
from sfumato.release.files import read_bytes
from sfumato.release.model import ReleaseValue, read_release

_FORMAT = "sfumato signature 1"
_MOST_BYTES = 1 << 16
_PEM = serialization.Encoding.PEM


def signature_path(release: Path) -> Path:
    """Return where the signature of a release lies if nothing else is said: beside it."""
    return release.with_name(f"{release.name}.sig")


def public_path(key: Path) -> Path:
    """Return where `new_key` puts the public key: beside the private one."""
    return key.with_name(f"{key.name}.pub")


def statement(manifest: bytes, packed: bytes) -> bytes:
    """Return what is signed: three lines, the format and the SHA-256 of both files, each ended by a newline."""
    hashes = [hashlib.sha256(content).hexdigest() for content in (manifest, packed)]
    return "\n".join(["sfumato release 1", *hashes, ""]).encode()


def new_key(path: str | os.PathLike[str]) -> str:
    """Write a new private key, readable by its owner alone, and the public one beside it; return its fingerprint.

    Raises:
        OutputError: one of the files exists, or cannot be written. Keys are never replaced.
    """
    path = Path(path)
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for place in (path, public_path(path)):
        refuse_existing(place, overwrite=True)
        if place.exists() or place.is_symlink():
            raise OutputError(f"Expected no key yet, got {place}, which exists. Name another file.")
    _write(path, private, secret=True)
    _write(public_path(path), public)
    return fingerprint(key.public_key())


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return `SHA256:` and the hash of the key as DER, SubjectPublicKeyInfo, in hexadecimal digits."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"SHA256:{hashlib.sha256(der).hexdigest()}"


def sign_release(
    release: str | os.PathLike[str],
    key: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> str:
    """Write the signature of a release; return the fingerprint of its key.

    Args:
        release: a directory or a `.sfm` file; it has to load.
        key: PEM of an Ed25519 private key, not encrypted.
        out: the file to write, by default beside the release.
        overwrite: whether an existing signature may be replaced.

    Raises:
        ConfigError: the key is none.
        OutputError: the signature exists, or cannot be written.
        ReleaseError: the release cannot be read.
    """
    release = Path(release)
    private = _private_key(Path(key))
    read_release(release, ReleaseValue)  # nobody signs what does not load
    manifest, packed = read_bytes(release)
    key_print = fingerprint(private.public_key())
    signature = base64.b64encode(private.sign(statement(manifest, packed))).decode()
    content = {"format": _FORMAT, "algorithm": "Ed25519", "key": key_print, "signature": signature}
    place = signature_path(release) if out is None else Path(out)
    _write(place, (json.dumps(content, indent=1) + "\n").encode(), overwrite=overwrite)
    return key_print


def verify_release(
    release: str | os.PathLike[str], public_key: str | os.PathLike[str], signature: str | os.PathLike[str] | None = None
) -> str:
    """Check the signature of a release, and that it loads; return the fingerprint of the key.

    Args:
        release: a directory or a `.sfm` file.
        public_key: PEM of an Ed25519 public key, from somewhere that can be trusted: not from beside the release.
        signature: by default the file beside the release.

    Raises:
        ConfigError: the key is none.
        ReleaseError: the release cannot be read, there is no signature, or it is not of this release and key.
    """
    release = Path(release)
    public = _public_key(Path(public_key))
    read_release(release, ReleaseValue)
    signature_bytes = read_signature(signature_path(release) if signature is None else Path(signature))
    with contextlib.suppress(InvalidSignature):
        public.verify(signature_bytes, statement(*read_bytes(release)))
        return fingerprint(public)
    raise ReleaseError(
        f"Expected a signature of {release} by the key {fingerprint(public)}, got one of another release or key, "
        "or the release was changed since. Do not trust it."
    )


def read_signature(path: Path) -> bytes:
    """Return the signature that a file holds, unverified.

    Raises:
        ReleaseError: it holds none.
    """
    with contextlib.suppress(ValueError, KeyError, TypeError, binascii.Error):
        document = parse_object(read_bounded(path, _MOST_BYTES))
        if document["format"] == _FORMAT and document["algorithm"] == "Ed25519":
            return base64.b64decode(document["signature"], validate=True)
    raise ReleaseError(f"Expected a signature of Sfumato in {path}, got none. `sfumato publish sign` writes one.")


def _private_key(path: Path) -> Ed25519PrivateKey:
    key = None
    with contextlib.suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = serialization.load_pem_private_key(read_bounded(path, _MOST_BYTES), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(
            f"Expected an Ed25519 private key in PEM without a password in {path}, got something else. "
            "`sfumato publish sign --new-key FILE` makes one."
        )
    return key


def _public_key(path: Path) -> Ed25519PublicKey:
    key = None
    with contextlib.suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = serialization.load_pem_public_key(read_bounded(path, _MOST_BYTES))
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"Expected an Ed25519 public key in PEM in {path}, got something else. Name another file.")
    return key


def _write(path: Path, content: bytes, *, secret: bool = False, overwrite: bool = False) -> None:
    with atomic_path(path, overwrite=overwrite, secret=secret) as partial:
        write_or_refuse(path, lambda: partial.write_bytes(content))
