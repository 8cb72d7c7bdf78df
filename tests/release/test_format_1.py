"""A release of format 1, written on 2026-11-21, loads and samples for ever."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato

FIXTURE = Path(__file__).parent / "fixtures" / "format_1.sfm"


def test_the_release_loads_and_samples_in_its_domain():
    release = sfumato.load(FIXTURE)
    table = release.sample(1000, seed=3)
    assert isinstance(table, pa.Table)
    assert table.column_names == ["age", "city", "grade", "paid", "seen", "member"]
    columns = table.to_pydict()
    assert set(columns["city"]) <= {"a", "b", "elsewhere"}
    assert set(columns["grade"]) == {"low", "mid", "high"}
    assert all(value is None or 18 <= value <= 100 for value in columns["age"])
    assert all(0 <= value <= 1000 for value in columns["paid"])
    assert table.schema.field("seen").type == pa.date32()
    assert release.sample(1000, seed=3).equals(table)


def test_its_certificate_can_still_be_recomputed():
    certificate = sfumato.load(FIXTURE).certificate
    assert not certificate.private, "it was made with a seed"
    assert certificate.recompute() == pytest.approx(certificate.epsilon, abs=1e-6)
    certificate.verify()


def test_its_measurements_carry_their_noise():
    names = {m.name: m for m in sfumato.load(FIXTURE).measurements}
    assert set(names) == {"counts of cells by class", "second moments by class"}
    assert all(m.noise_std > 0 for m in names.values())
