"""Pieces of cards: what they show is text, whoever wrote it."""

import re
from pathlib import Path

import pytest
from markupsafe import Markup

import sfumato.cards
from fixtures.cards import HOSTILE, Card
from sfumato.cards.html import (
    Bar,
    Html,
    banner,
    bars,
    card,
    code,
    facts,
    fold,
    grid,
    interval,
    listing,
    paragraph,
    parts,
    table,
)

SHOWN = " ".join(HOSTILE.replace("\u202e", "\ufffd").split())


def test_text_of_anybody_stays_text() -> None:
    found = Card(
        card(
            HOSTILE,
            paragraph(HOSTILE, code(HOSTILE), quiet=True),
            banner(HOSTILE, alarm=True),
            facts([(HOSTILE, HOSTILE)]),
            table([HOSTILE], [[HOSTILE, HOSTILE]], numbers=[1]),
            fold(HOSTILE, listing(f"{HOSTILE}\n{HOSTILE}")),
            grid([HOSTILE]),
            bars([Bar(1.0)], HOSTILE),
            parts([1.0], HOSTILE),
            interval(0, 1, 2, (0, 3), HOSTILE),
        )
    )
    assert found.text.count(SHOWN) == 13
    assert [" ".join(label.split()) for label in found.labels] == [SHOWN] * 4


def test_a_piece_of_html_made_here_is_not_escaped_again() -> None:
    assert "<code>x</code>" in card("t", paragraph("of ", code("x")))
    assert issubclass(Html, Markup)


def test_a_line_break_in_a_name_does_not_break_a_row() -> None:
    assert "\n" not in table(["a"], [["x\ny"]])
    assert "\n" in listing("x\ny")


def test_intervals_that_are_no_numbers_are_left_out() -> None:
    assert interval(float("nan"), 1, 2, (0, 3), "x") == ""
    assert interval(1, 1, 1, (1, 1), "x") == ""


def test_bars_and_intervals_lie_in_their_box() -> None:
    drawn = [
        *(bars([Bar(0.2, 0.1, 0.9), Bar(0.7)], "b"), 56.0),
        *(bars([], "b"), 56.0),
        *(bars([Bar(0.0)], "b"), 56.0),
        *(interval(-9, 0, 9, (-1, 1), "i"), 14.0),
        *(parts([0.25, 0.75], "p"), 14.0),
    ]
    for picture, height in zip(drawn[::2], drawn[1::2], strict=True):
        for x, y, width, tall in re.findall(r'x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', picture):
            assert -0.01 <= float(x) <= float(x) + float(width) <= 160.01
            assert -0.01 <= float(y) <= float(y) + float(tall) <= height + 0.01


def _luminance(colour: str) -> float:
    parts_ = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts_]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_marks_show_on_light_and_on_dark(ground: str) -> None:
    """WCAG 1.4.11 asks for a contrast of 3 of what a picture is made of; text takes the notebook's colour."""
    folder = Path(sfumato.cards.__file__).parent
    used = set(re.findall(r"#[0-9a-f]{6}", (folder / "html.py").read_text() + (folder / "card.css").read_text()))
    assert len(used) > 4
    for colour in used:
        light, dark = sorted([_luminance(colour), _luminance(ground)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, (colour, ground)


def test_lists_of_a_card_are_set_back_where_a_notebook_floats_them() -> None:
    """JupyterLab has `dl dt {float: left; width: 20%}`: as specific a rule that comes later wins."""
    style = (Path(sfumato.cards.__file__).parent / "card.css").read_text()
    (rule,) = re.findall(r"\.sfumato-card dl>dt,\.sfumato-card dl>dd{([^}]*)}", style)
    assert {"float:none", "width:auto"} <= set(rule.split(";"))


def test_rules_of_tables_are_stronger_than_those_of_notebooks():
    """JupyterLab's `:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td` set all text of cards to the right."""
    style = (Path(sfumato.cards.__file__).parent / "card.css").read_text()
    rules = [
        (one.strip(), body) for names, body in re.findall(r"([^{}]+)\{([^}]*)\}", style) for one in names.split(",")
    ]
    aligned = [name for name, body in rules if "text-align" in body and name != ".sfumato-card"]
    assert len(aligned) == 3
    for name in aligned:
        assert (name.count("."), len(re.findall(r"(?:^|[ >])[a-z]+", name))) >= (2, 2) or name.count(".") > 2, name
