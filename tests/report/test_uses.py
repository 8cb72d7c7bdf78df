"""Verdicts by use: none is better than what became of the columns."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from fixtures import tables
from sfumato import DPMix, MaxEntropy, Schema
from sfumato.columns.kinds import Boolean, Open
from sfumato.errors import SchemaWarning
from sfumato.report.column_lines import ColumnLine
from sfumato.report.estimates import estimates_of
from sfumato.report.uses import CLASSIFIER, REGRESSIONS, SOFTWARE, TABLES, UseVerdict, limit_verdicts, uses_of

GOOD = [UseVerdict(use, "good", "Little noise.") for use in (TABLES, REGRESSIONS, CLASSIFIER, SOFTWARE)]


def line(name, lost, is_number=False):
    return ColumnLine(name, "kind", "estimated", "kept", lost, "its loss" if lost else "", "a cure", is_number)


def words(found):
    return [verdict.word for verdict in found]


def test_a_lost_column_is_the_first_reason():
    kept = [line(f"x{i}", 0.0) for i in range(3)]
    found = limit_verdicts(GOOD, [*kept, line("icd", 0.83)], "x0")
    assert words(found) == ["poor", "good", "with care", "with care"]
    assert found[0].why == "icd: its loss. Little noise."
    assert found[1].why == "Little noise."
    assert words(limit_verdicts(GOOD, [*kept, line("icd", 0.83)], "icd")) == ["poor", "good", "poor", "with care"]
    assert words(limit_verdicts(GOOD, [*kept, line("icd", 0.1)], "icd")) == [
        "with care",
        "good",
        "with care",
        "with care",
    ]
    assert words(limit_verdicts(GOOD, [*kept, line("icd", 0.01)])) == ["good"] * 4
    assert words(limit_verdicts(GOOD, [*kept, line("crp", 1.0, is_number=True)])) == [
        "poor",
        "poor",
        "with care",
        "with care",
    ]


def test_one_of_many_columns_is_for_care_and_no_verdict_gets_better():
    lines = [line("icd", 0.83), *(line(f"x{i}", 0.0) for i in range(30))]
    assert words(limit_verdicts(GOOD, lines)) == ["with care", "good", "with care", "with care"]
    poor = [dataclasses.replace(verdict, word="poor") for verdict in GOOD]
    assert words(limit_verdicts(poor, lines)) == ["poor"] * 4
    unknown = [dataclasses.replace(verdict, word="not measured") for verdict in GOOD]
    assert limit_verdicts(unknown, lines) == unknown


def test_many_lost_columns_are_named_up_to_three():
    (verdict,) = limit_verdicts(GOOD[:1], [line(f"c{i}", 0.9 - i / 100) for i in range(5)])
    assert verdict.why == "c0: its loss; c1: its loss; c2: its loss; and 2 more columns. Little noise."


def test_of_a_release():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.integers(0, 900, 3_000).astype(str), "member": rng.random(3_000) < 0.5})
    schema = Schema(columns={"code": Open(kind="categorical"), "member": Boolean()}, rows=3_000)
    with pytest.warns(SchemaWarning, match="Declare bounds or labels"):
        release = MaxEntropy(epsilon=1, delta=1e-6).fit(frame, schema=schema, seed=0)
    found = {verdict.use: verdict for verdict in uses_of(release)}
    assert found[TABLES].word == "poor"
    assert found[TABLES].why.startswith("code: every row has the same label. ")
    assert found[SOFTWARE].word == "with care"
    assert uses_of(release, estimates_of(release)) == list(found.values())


@pytest.mark.slow
def test_mixtures_have_none():
    release = DPMix(epsilon=4.0, mixture_degree=20, n_mixtures=50).fit(
        tables.frame(300), schema=tables.schema(), n_public=300, target="income", seed=0
    )
    assert uses_of(release) == []
