"""What a notebook shows of schemas, plans, releases, certificates, ledgers, audits, estimates and answers."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato
from fixtures import linked, tables
from fixtures.cards import HOSTILE, Card
from sfumato import DPMix, IndependentItems, MaxEntropy, NonPrivate, Schema
from sfumato.audit import audit
from sfumato.errors import PrivacyWarning
from sfumato.privacy.plan import Plan, Stage
from sfumato.report.release_card import MOST_COLUMNS

LABEL = f"{HOSTILE} label"


@pytest.fixture(scope="module")
def hostile():
    """A release whose names and labels are markup, fitted with secret noise."""
    names = [HOSTILE, f"{HOSTILE} 2", "<b>n</b>", "plain"]
    columns = {
        names[0]: {"kind": "categorical", "categories": [LABEL, "<i>b</i>"]},
        names[1]: {"kind": "categorical", "categories": ["x", "y"], "source": "law"},
        names[2]: {"kind": "integer", "lower": 0, "upper": 100},
        names[3]: {"kind": "continuous", "lower": 0, "upper": 1, "resolution": 0.01},
    }
    schema = Schema.from_dict({"rows": 2_000, "columns": columns})
    rng = np.random.default_rng(0)
    number = rng.integers(0, 101, 2_000)
    frame = pd.DataFrame({
        names[0]: np.where(number + rng.integers(0, 40, 2_000) > 70, LABEL, "<i>b</i>"),
        names[1]: np.array(["x", "y"])[rng.integers(0, 2, 2_000)],
        names[2]: number,
        names[3]: rng.random(2_000).round(2),
    })  # fmt: skip
    return MaxEntropy(epsilon=3.0).fit(frame, schema=schema, target=names[0])


def test_a_release_says_what_it_is_what_it_cost_and_what_it_can_answer(hostile) -> None:
    found = Card(hostile._repr_html_())
    assert found.text.startswith("Release: synthetic rows of 4 columns, method max-entropy")
    for said in (
        "Guarantee: epsilon = 3, delta = ",
        "as likely without you",
        "Lines: where the records' own share is",
        "It answers, with intervals: mean, quantiles and variance of <b>n</b>, plain",
        "release.mean('<b>n</b>')",
        "release.sample(1_000)",
    ):
        assert said in found.text, said
    assert found.tags.count("svg") == 5  # the columns, and the budget
    assert any("categorical, most often" in label for label in found.labels)


@pytest.mark.slow
def test_hostile_names_stay_text_in_every_card(hostile, tmp_path) -> None:
    ledger = tmp_path / "ledger"
    sfumato.create_ledger(ledger, epsilon=2.0, delta=1e-5)
    unit = Schema.from_dict(
        {"rows": 500, "unit": {"column": HOSTILE, "max_rows": 2},
         "columns": {HOSTILE: "identifier", "x": {"kind": "integer", "lower": 0, "upper": 9}}}
    )  # fmt: skip
    frame = pd.DataFrame({HOSTILE: np.arange(500) // 2, "x": np.arange(500) % 10})
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    release = method.fit(frame, schema=unit, ledger=ledger)
    first, number = HOSTILE, "<b>n</b>"
    cards = [
        hostile, hostile.schema, hostile.certificate, hostile.mean(number, by=first),
        hostile.crosstab(first, f"{HOSTILE} 2"), hostile.answers(most_pairs=2), release, release.certificate,
        method.description(unit), sfumato.read_ledger(ledger), sfumato.describe(frame),
        Plan([Stage(name=HOSTILE, noise_multiplier=2.0, measures=HOSTILE)]),
    ]  # fmt: skip
    for shown in cards:
        found = Card(shown._repr_html_())
        assert "<b>n</b>" in found.text or "alert('x')" in found.text, type(shown)


def test_numbers_of_estimates_are_on_their_cards(hostile) -> None:
    one = hostile.mean("plain")
    found = Card(one._repr_html_()).text
    assert f"{one.value:.4g}" in found
    assert all(f"{end:.4g}" in found for end in one.interval())
    groups = hostile.mean("plain", by=HOSTILE)
    page = Card(groups._repr_html_())
    assert all(f"{e.value:.4g}" in page.text for e in groups.values())
    assert page.tags.count("svg") == len(groups)


def test_regressions_show_their_terms(hostile) -> None:
    fitted = hostile.ols("plain ~ `<b>n</b>`")
    found = Card(fitted._repr_html_())
    assert all(f"{value:.4g}" in found.text for value in [*fitted.params, *fitted.bse])
    assert "plain ~ `<b>n</b>`: least squares" in found.text
    assert found.tags.count("svg") == len(fitted.params)
    groups = Card(hostile.ols("plain ~ `<b>n</b>`", by=HOSTILE)._repr_html_())
    assert "<i>b</i>" in groups.text
    both = sfumato.combine([(1.0, 0.1), (1.5, 0.1)] * 10)
    assert "Combined results of 20 replicates" in Card(both._repr_html_()).text


def test_answers_are_a_frame_that_shows_a_card(hostile) -> None:
    found = hostile.answers(most_pairs=1)
    assert "questions" in Card(found._repr_html_()).text
    part = found[found["answered"] == "no"]
    assert type(part) is pd.DataFrame
    assert list(found.columns)[:3] == ["kind", "first", "second"]


@pytest.mark.slow
def test_what_is_not_private_says_so() -> None:
    seeded = MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), seed=1)
    plain = MaxEntropy(epsilon=NonPrivate()).fit(tables.frame(), schema=tables.schema())
    for release in (seeded, plain):
        for shown in (release, release.certificate):
            found = Card(shown._repr_html_()).text
            assert "NOT PRIVATE" in found
            assert "as likely without you" not in found
    draft = Schema.from_dict({**tables.schema().to_dict(), "draft": True})
    assert "read off the records" in Card(draft._repr_html_()).text


def test_facts_read_off_the_records_are_told() -> None:
    draft = Schema.from_dict({**tables.schema().to_dict(), "draft": True})
    with pytest.warns(PrivacyWarning):
        release = MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=draft, accept_draft=True)
    for shown in (release, release.certificate):
        assert "NOT covered by the guarantee" in Card(shown._repr_html_()).text


def test_a_schema_says_what_is_public_and_what_is_bought() -> None:
    found = Card(sfumato.describe(tables.frame(), {"age": {"kind": "integer", "lower": 0, "upper": 120}})._repr_html_())
    for said in ("0 to 120", "to find out", "columns: id:", "age: {kind: integer, lower: 0, upper: 120}"):
        assert said in found.text, said


@pytest.mark.slow
def test_a_wide_release_pictures_its_first_columns() -> None:
    names = [f"c{i}" for i in range(MOST_COLUMNS + 6)]
    schema = Schema.from_dict({"rows": 300, "columns": dict.fromkeys(names, "boolean")})
    frame = pd.DataFrame(np.random.default_rng(0).random((300, len(names))) < 0.5, columns=names)
    found = Card(MaxEntropy(epsilon=1.0).fit(frame, schema=schema)._repr_html_())
    assert found.tags.count("svg") == MOST_COLUMNS + 1
    assert "And 6 more columns." in found.text


@pytest.mark.slow
def test_linked_rows_images_sets_and_mixtures_have_cards() -> None:
    visits = MaxEntropy(epsilon=5.0).fit(linked.visits(400), schema=linked.schema(units=400))
    found = Card(visits._repr_html_())
    assert "Estimates with intervals: none." in found.text
    assert "release.report" not in found.text
    pictures = MaxEntropy(epsilon=1.0).fit(
        dict(zip("xy", tables.images(), strict=True)), schema=tables.image_schema(), target="y"
    )
    assert "img" in Card(pictures._repr_html_()).tags
    mixed = DPMix(epsilon=1.0, mixture_degree=4).fit(tables.frame(), schema=tables.schema(), target="income")
    assert "a data set of mixtures" in Card(mixed._repr_html_()).text
    sets = Schema.from_dict(
        {"rows": 60, "columns": {"basket": {"kind": "set", "items": ["<b>a</b>", "b", "c"], "max_length": 3}}}
    )
    baskets = pa.table({"basket": [["<b>a</b>"], ["b", "c"], []] * 20})
    shown = Card(IndependentItems(epsilon=1.0).fit(baskets, schema=sets)._repr_html_())
    assert "basket: how many items" in shown.text


def test_the_card_of_a_release_is_a_function_of_it(hostile, tmp_path) -> None:
    hostile.save(tmp_path / "r.sfm")
    assert sfumato.load(tmp_path / "r.sfm")._repr_html_() == hostile._repr_html_()


def test_an_audit_shows_its_bounds_and_stays_a_dictionary() -> None:
    schema = Schema.from_dict({"rows": 40, "columns": {"a": "boolean"}})
    found = audit(MaxEntropy(epsilon=1.0), schema, fits=20, seed=0)
    assert isinstance(found, dict)
    text = Card(found._repr_html_()).text
    assert "No attack broke the certificate" in text
    assert "20 shadow fits" in text
    broken = type(found)({**found, "epsilon_lower": 9.0, "holds": False})
    assert "more out of the method than its certificate allows" in Card(broken._repr_html_()).text


def test_an_overdrawn_ledger_is_an_alarm(tmp_path) -> None:
    sfumato.create_ledger(tmp_path / "l", epsilon=1.0, delta=1e-6)
    state = sfumato.read_ledger(tmp_path / "l")
    found = Card(state._repr_html_())
    assert "No fit has charged it yet." in found.text
    assert "Spent: epsilon = 0 of 1" in found.text


@pytest.mark.slow
def test_cards_import_no_plotting_library(tmp_path) -> None:
    code = (
        "import sys, pandas as pd, sfumato\n"
        "frame = pd.DataFrame({'a': [True, False] * 50})\n"
        "release = sfumato.fit(frame, {'rows': 100, 'columns': {'a': 'boolean'}}, epsilon=1.0)\n"
        "assert '<svg' in release._repr_html_()\n"
        "print({'matplotlib', 'jinja2', 'sklearn', 'IPython', 'PIL'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "set()"
