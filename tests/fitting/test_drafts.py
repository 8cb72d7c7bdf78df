"""Fits of drafts: refused before anything is spent, and not covered where they are accepted."""

from dataclasses import replace

import pytest

from fixtures import tables
from sfumato import DPMix, MaxEntropy, create_ledger, load, read_ledger, tune
from sfumato.errors import PrivacyWarning, ReleaseError, SchemaError
from sfumato.privacy import words
from sfumato.report import write_report
from sfumato.schema.schema import Schema

METHOD = MaxEntropy(epsilon=1.0, delta=1e-5)
DRAFT = replace(tables.schema(), draft=True)
PART = replace(tables.schema(), sources={"age": {"upper": "data"}, "sex": "standard"})


@pytest.fixture(scope="module")
def accepted():
    with pytest.warns(PrivacyWarning, match="NOT covered by the guarantee"):
        return METHOD.fit(tables.frame(), schema=DRAFT, accept_draft=True)


@pytest.mark.parametrize("schema", [DRAFT, PART])
def test_hardening_7_a_draft_is_refused_before_anything_is_spent(tmp_path, schema):
    ledger = tmp_path / "l"
    create_ledger(ledger, epsilon=2.0, delta=1e-4)
    before = ledger.read_bytes()
    for call in (
        lambda: METHOD.fit(tables.frame(), schema=schema, ledger=ledger, checkpoint=tmp_path / "c"),
        lambda: tune(tables.frame(), method=[METHOD], schema=schema, ledger=ledger),
        lambda: DPMix(epsilon=1.0).fit(tables.frame(), schema=schema, ledger=ledger),
    ):
        with pytest.raises(SchemaError, match="accept_draft=True"):
            call()
    assert (ledger.read_bytes(), read_ledger(ledger).fits) == (before, ())
    assert {path.name for path in tmp_path.iterdir()} <= {"l", "l.lock"}


def test_a_draft_by_its_path(tmp_path):
    DRAFT.save(tmp_path / "d.yaml")
    with pytest.raises(SchemaError, match="got a draft"):
        METHOD.fit(tables.frame(), schema=tmp_path / "d.yaml")


def test_hardening_7_the_certificate_says_what_is_not_covered(accepted, tmp_path):
    certificate = accepted.certificate
    assert certificate.read_off == ("every fact that the draft declares",)
    assert words.NOT_COVERED == "facts were read off the records: NOT covered by the guarantee"
    assert words.NOT_COVERED in certificate.assumptions[0]
    assert not any("without looking at the records" in said for said in certificate.assumptions)
    assert words.NOT_COVERED in words.meaning(certificate)[0]
    assert "NOT COVERED" in repr(certificate)
    accepted.save(tmp_path / "r.sfm")
    again = load(tmp_path / "r.sfm")
    assert (again.schema.draft, again.certificate) == (True, certificate)
    with pytest.raises(SchemaError, match="got a draft"):
        METHOD.fit(tables.frame(), schema=again.schema)


def test_a_certificate_that_hides_them_is_refused(accepted):
    hiding = replace(accepted, certificate=replace(accepted.certificate, read_off=()))
    with pytest.raises(ReleaseError, match="read off the records"):
        hiding.check()


def test_facts_of_the_data_are_named_in_the_certificate():
    with pytest.warns(PrivacyWarning, match="'age' \\(upper\\)"):
        certificate = METHOD.fit(tables.frame(), schema=PART, accept_draft=True).certificate
    assert certificate.read_off == ("'age' (upper)",)
    assert certificate.origins[:2] == ("standard: 'sex'", "read off the records: 'age' (upper)")


@pytest.mark.slow
@pytest.mark.audit
def test_a_search_says_it_in_its_certificate():
    with pytest.warns(PrivacyWarning):
        certificate = tune(tables.frame(), method=[METHOD], schema=DRAFT, accept_draft=True).certificate
    assert words.NOT_COVERED in certificate.assumptions[0]
    assert not any("without looking at the records" in said for said in certificate.assumptions)


def test_plans_work_with_drafts():
    assert METHOD.plan(DRAFT).stages
    assert METHOD.description(DRAFT).read_off


def test_what_is_bought_is_not_read_off():
    columns = {"sex": {"kind": "categorical", "discover": True}, "member": {"kind": "boolean"}}
    columns["age"] = {"kind": "integer", "lower": 0, "upper": 100, "source": "law"}
    from sfumato import OpenSchema

    schema = OpenSchema.from_dict({"rows": 240, "columns": columns})
    release = METHOD.fit(tables.frame(), schema=schema)
    assert release.schema.sources == {"sex": "discovered", "age": "law"}
    assert release.certificate.origins == (
        "law: 'age'", "estimated by the fit: 'sex'", "the holder's word: 'member', the number of rows",
    )  # fmt: skip
    assert release.certificate.read_off == ()
    assert isinstance(release.schema, Schema)


@pytest.mark.slow
@pytest.mark.audit
def test_the_page_is_an_alarm(accepted, tmp_path):
    write_report(accepted, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert words.NOT_COVERED in page
    assert 'class="banner alarm"' in page
    assert 'class="banner safe"' not in page
    assert "may be published" not in page
    assert "read off the records: &#39;sex&#39;" in page
