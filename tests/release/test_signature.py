"""Signatures: of these bytes by this key, or refused; and keys that nobody else reads and nothing replaces."""

import hashlib
import json
import os
import shutil
import stat
import subprocess

import pytest

import sfumato
from sfumato.errors import ConfigError, OutputError, ReleaseError
from sfumato.release.signature import new_key, public_path, sign_release, signature_path, verify_release
from sfumato.release_front import load


@pytest.fixture
def signed(small, tmp_path):
    """A release, signed; and its public key."""
    small.save(tmp_path / "r.sfm")
    new_key(tmp_path / "key")
    sign_release(tmp_path / "r.sfm", tmp_path / "key")
    return tmp_path / "r.sfm", tmp_path / "key.pub"


def test_a_signature_holds_for_what_was_signed_in_both_forms(signed, small, tmp_path):
    release, key = signed
    found = verify_release(release, key)
    assert found.startswith("SHA256:")
    assert sign_release(release, tmp_path / "key", tmp_path / "other.sig") == found
    small.save(tmp_path / "folder")
    assert verify_release(tmp_path / "folder", key, signature_path(release)) == found


def test_a_changed_release_another_key_and_no_signature_are_refused(signed, tmp_path):
    release, key = signed
    new_key(tmp_path / "other")
    with pytest.raises(ReleaseError, match="another release or key"):
        verify_release(release, tmp_path / "other.pub")
    (tmp_path / "x").mkdir()
    shutil.unpack_archive(release, tmp_path / "folder", "zip")
    manifest = json.loads((tmp_path / "folder" / "manifest.json").read_text("utf-8"))
    (tmp_path / "folder" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")  # the same, other bytes
    load(tmp_path / "folder")
    with pytest.raises(ReleaseError, match="another release or key"):
        verify_release(tmp_path / "folder", key, signature_path(release))
    with pytest.raises(ReleaseError, match="Expected a signature"):
        verify_release(tmp_path / "folder", key)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": "sfumato signature 1"}', b"\xff", b"x" * 70_000])
def test_what_is_no_signature_is_refused(signed, content):
    release, key = signed
    signature_path(release).write_bytes(content)
    with pytest.raises(ReleaseError, match="Expected a signature"):
        verify_release(release, key)


@pytest.mark.parametrize("field", ["format", "algorithm", "signature"])
@pytest.mark.parametrize("value", [None, 1, "x", ["x"]])
def test_a_malformed_signature_is_refused(signed, field, value):
    release, key = signed
    content = json.loads(signature_path(release).read_text("utf-8"))
    signature_path(release).write_text(json.dumps({**content, field: value}), encoding="utf-8")
    with pytest.raises(ReleaseError):
        verify_release(release, key)


def test_a_private_key_is_its_owners_alone_and_never_replaced(tmp_path):
    before = os.umask(0)
    try:
        new_key(tmp_path / "key")
    finally:
        os.umask(before)
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    content = (tmp_path / "key").read_bytes()
    with pytest.raises(OutputError, match="exists"):
        new_key(tmp_path / "key")
    public_path(tmp_path / "taken").write_bytes(b"")
    with pytest.raises(OutputError, match="exists"):
        new_key(tmp_path / "taken")
    assert (tmp_path / "key").read_bytes() == content
    assert not (tmp_path / "taken").exists()


def test_other_keys_are_refused_before_anything_is_written(signed, tmp_path):
    release, key = signed
    for path in (key, tmp_path / "none", release):
        with pytest.raises(ConfigError, match="private key"):
            sign_release(release, path, tmp_path / "out.sig")
    assert not (tmp_path / "out.sig").exists()
    with pytest.raises(ConfigError, match="public key"):
        verify_release(release, tmp_path / "key")
    with pytest.raises(OutputError, match="exists"):
        sign_release(release, tmp_path / "key")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_makes_keys_and_finds_the_fingerprint(signed, tmp_path):
    release, key = signed
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(tmp_path / "k")], check=True)
    sign_release(release, tmp_path / "k", tmp_path / "k.sig")
    command = ["openssl", "pkey", "-pubin", "-in", str(key), "-outform", "DER"]
    der = subprocess.run(command, check=True, capture_output=True).stdout
    assert verify_release(release, key) == f"SHA256:{hashlib.sha256(der).hexdigest()}"


def test_python_names_take_paths_as_text(small, tmp_path):
    small.save(tmp_path / "r.sfm")
    made = sfumato.new_key(str(tmp_path / "k"))
    assert sfumato.sign_release(str(tmp_path / "r.sfm"), str(tmp_path / "k")) == made
    assert sfumato.verify_release(str(tmp_path / "r.sfm"), str(tmp_path / "k.pub")) == made
