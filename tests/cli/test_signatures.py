"""`sign`, `verify` and `report --public-key`: exit codes, sentences and files."""

import json

import pytest

from fixtures.releases import SMALL, fit, small_frame
from sfumato.privacy import words


@pytest.fixture
def folder(tmp_path, monkeypatch, remembered_accounts):
    monkeypatch.chdir(tmp_path)
    fit(small_frame(), SMALL, "label").save("r.sfm")
    return tmp_path


def test_sign_verify_and_report(folder, call):
    assert call("publish", "sign", "--new-key", "key").code == 0
    assert call("publish", "sign", "r.sfm", "--key", "key").code == 0
    fingerprint = json.loads((folder / "r.sfm.sig").read_text("utf-8"))["key"]
    result = call("certificate", "r.sfm", "--public-key", "key.pub")
    assert result.code == 0
    assert fingerprint in result.out.replace("\n", "")
    assert call("certificate", "r.sfm", "--public-key", "key.pub", "--json").json["signed_by"] == fingerprint
    assert "signed_by" not in call("certificate", "r.sfm", "--json").json
    assert call("report", "r.sfm", "--out", "page.html", "--public-key", "key.pub").code == 0
    assert words.signed(fingerprint) in (folder / "page.html").read_text("utf-8")
    made = call("publish", "sign", "--new-key", "other", "--json").json
    assert (made["written"], made["public_key"], made["key"] == fingerprint) == ("other", "other.pub", False)
    again = call("publish", "sign", "r.sfm", "--key", "key", "--overwrite", "--json").json
    assert again == {"written": "r.sfm.sig", "key": fingerprint}
    assert call("certificate", "r.sfm", "--public-key", "other.pub").code == 1
    assert call("report", "r.sfm", "--out", "no.html", "--public-key", "other.pub").code == 1
    assert not (folder / "no.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [("publish", "sign"), ("publish", "sign", "r.sfm"), ("publish", "sign", "r.sfm", "--new-key", "k"),
     ("publish", "sign", "r.sfm", "--key", "none"), ("certificate", "r.sfm", "--public-key", "none"),
     ("certificate", "r.sfm", "--signature", "r.sfm.sig")],
)  # fmt: skip
def test_a_wrong_call_ends_with_2_and_writes_nothing(folder, call, arguments):
    assert call(*arguments).code == 2
    assert [entry.name for entry in folder.iterdir()] == ["r.sfm"]


def test_certificate_says_what_was_checked(folder, call):
    said = " ".join(call("certificate", "r.sfm").out.split())
    assert "The certificate belongs to this file: checksums match." in said
    assert "3 of 3 noisy statistics have the noise level that is stated" in said
