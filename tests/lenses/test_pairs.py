"""Every pair of shapes, with every verb: works, or is refused. `pytest -s -m slow` prints the table."""

from __future__ import annotations

import pytest

from fixtures.shape_pairs import VERBS, Case, pairs, refusal

ROWS = {"units"}  # of single rows there are no units to ask of
LINKED = {"estimators"}
REFUSED: dict[str, set[str]] = {
    "plain": ROWS,
    "rules": ROWS | {"estimators"},
    "unit": ROWS,
    "linked": LINKED,
    "tables": LINKED,
    "sets": ROWS | {"unique_rows", "estimators"},
    "weight": ROWS,
    "rules+unit": ROWS | {"estimators"},
    "rules+linked": LINKED,
    "rules+tables": LINKED,
    "rules+sets": ROWS | {"unique_rows", "estimators"},
    "rules+weight": ROWS | {"estimators"},
    "unit+sets": ROWS | {"unique_rows", "estimators"},
    "unit+weight": ROWS,
    "linked+sets": LINKED | {"unique_rows"},
    "linked+weight": LINKED | {"evaluate", "report"},
    "tables+sets": LINKED | {"unique_rows"},
    "tables+weight": LINKED | {"evaluate", "report"},
    "sets+weight": ROWS | {"unique_rows", "estimators"},
}


def named(shapes: tuple[str, ...]) -> str:
    return "+".join(shapes) or "plain"


@pytest.mark.parametrize("shapes", pairs(), ids=named)
def test_a_pair_is_fitted_and_sampled_or_refused(shapes):
    found = refusal(Case(shapes), "fit")
    print(named(shapes), found or "works")
    assert bool(found) == ("fit" in REFUSED[named(shapes)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shapes", pairs(), ids=named)
def test_a_pair_with_every_verb(shapes):
    case = Case(shapes)
    found = {verb: refusal(case, verb) for verb in VERBS}
    print("\n" + named(shapes), *(f"\n  {verb:12} {said or 'works'}" for verb, said in found.items()))
    assert {verb for verb, said in found.items() if said} == REFUSED[named(shapes)]
