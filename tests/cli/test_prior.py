"""`sfumato fit --prior`: an earlier release is named, and what is none is refused before a charge."""

import pandas as pd
import pytest

from fixtures.parts import part
from sfumato import MaxEntropy, create_ledger, read_ledger


@pytest.fixture
def year(tmp_path):
    """A release of last year, and data and schema of this one."""
    seeded = part(0)  # whose noise is not secret
    rows = seeded.sample(250, seed=2)
    earlier = MaxEntropy(epsilon=1.0, delta=1e-6).fit(rows, schema=seeded.schema)
    seeded.save(tmp_path / "seeded.sfm")
    earlier.save(tmp_path / "last.sfm")
    (tmp_path / "schema.yaml").write_text(str(earlier.schema), encoding="utf-8")
    earlier.sample(250, seed=3).to_csv(tmp_path / "now.csv", index=False)
    create_ledger(tmp_path / "own.ledger", epsilon=2, delta=1e-5)
    return tmp_path


def words(year, *prior: object) -> list[object]:
    fit = ["fit", year / "now.csv", "--schema", year / "schema.yaml", "--epsilon", 1, "--delta", 1e-6]
    return [*fit, "--ledger", year / "own.ledger", "--out", year / "now.sfm", "--prior", *prior]


def test_the_certificate_names_the_prior(call, year):
    assert call(*words(year, year / "last.sfm")).code == 0
    assert call("certificate", year / "now.sfm", "--json").json["prior"]["epsilon"] > 0
    assert read_ledger(year / "own.ledger").spent() > 0


def test_what_is_no_prior_is_refused_before_a_charge(call, year):
    other = pd.DataFrame({"x": [1.0]})
    other.to_csv(year / "rows.csv", index=False)
    for prior in (year / "none.sfm", year / "rows.csv", year / "seeded.sfm"):
        assert call(*words(year, prior)).code != 0
    assert not (year / "now.sfm").exists()
    assert read_ledger(year / "own.ledger").spent() == 0
