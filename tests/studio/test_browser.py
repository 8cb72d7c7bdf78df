"""The studio in a real browser: the address lets it in, and pages fit a phone and a desk without a complaint."""

import html
import json
import re
import shutil
import subprocess

import pytest

from fixtures.chromium import Chromium

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: install Debian's chromium"),
]
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="frame" style="border:0;width:{width}px;height:2000px" srcdoc="{page}"></iframe><pre id="found">nothing</pre>
<script>
document.getElementById("frame").addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument, inputs = [...page.querySelectorAll("input, select")];
  document.getElementById("found").textContent = JSON.stringify({{
    overhang: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    landmarks: page.querySelectorAll("main, nav, header").length,
    unnamed: inputs.filter(e => e.type !== "hidden" && !e.labels.length).length
  }});
}});
</script>"""


def dump(folder, address):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000", "--window-size=1500,2000"]
    done = subprocess.run([*command, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_printed_address_lets_a_browser_in(studio, tmp_path):
    page, said = dump(tmp_path, studio.url)
    assert "<h1>Your table</h1>" in page
    assert said == []


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("path", ["/", "/questions", "/budget"])
def test_pages_fit_and_every_field_has_a_label(holder, table, tmp_path, path, width):
    holder.ask("POST", "/", {"data": str(table)})
    _, page = holder.ask("GET", path)
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(width=width, page=html.escape(page)), encoding="utf-8")
    shown, said = dump(tmp_path, probe.as_uri())
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown, re.S)[1]))
    assert found == {"overhang": 0, "landmarks": 3, "unnamed": 0}
    assert said == []


NAMELESS = {"textbox", "combobox", "checkbox", "radio", "button", "link", "progressindicator", "region"}


@pytest.mark.parametrize("width", [390, 1440])
def test_columns_are_a_table_for_screen_readers_and_show_the_fields_of_their_kind(studio, table, tmp_path, width):
    studio._session.open(str(table))
    with Chromium(tmp_path) as tab:
        tab.open(studio.url, width)
        tab.open(f"http://127.0.0.1:{studio.port}/questions", width)
        told = [node for node in tab.do("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
        roles = [node["role"]["value"] for node in told]
        assert {"table", "rowheader", "cell", "group", "complementary"} <= set(roles)
        names = {(node["role"]["value"], node.get("name", {}).get("value", "").strip()) for node in told}
        assert not {role for role, name in names if role in NAMELESS and not name}
        assert ("combobox", "Kind of member") in names
        fields = """(kind => {
            document.getElementById("kind1").value = kind;
            return ["lower1", "labels1", "nullable1"].map(id => document.getElementById(id).checkVisibility());
        })"""
        assert tab.run(f"{fields}('continuous')") == [True, False, True]
        assert tab.run(f"{fields}('categorical')") == [False, True, True]
        assert tab.run(f"{fields}('boolean')") == [False, False, True]
        tab.run("document.getElementById('hidden1').click()")
        assert tab.run(f"{fields}('continuous')")[:2] == [False, False]
        assert tab.complaints == []


def test_another_epsilon_is_chosen_by_keys_and_shown_before_it_is_spent(studio, table, tmp_path):
    studio._session.open(str(table))
    studio._session.schema_path.write_text("rows: 400\ncolumns: {age: {kind: integer, lower: 0, upper: 99}}\n")
    button = "[...document.querySelectorAll('main button')].filter(e => e.checkVisibility()).map(e => e.textContent)"
    with Chromium(tmp_path) as tab:
        tab.open(studio.url, 1440)
        tab.open(f"http://127.0.0.1:{studio.port}/budget?epsilon=1", 1440)
        assert "Spend ε = 1 and fit" in tab.run(button)
        tab.run("document.getElementById('e0').focus()")
        tab.press(" ")
        assert tab.run("document.querySelector(':checked').value") == "0.1"
        assert tab.run(button)[-1] == "Show the cost of ε = 0.1"  # nothing is spent that was not shown
        assert tab.complaints == []
