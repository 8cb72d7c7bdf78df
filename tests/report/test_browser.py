"""The page in a real browser, at the width of a phone and of a desk: no error, and all text within its boxes.

Chromium opens a page that holds the report in a frame of the width under test, measures it, and prints what it found;
or it is led by its own protocol, with real keys, and says what a screen reader would be told.
"""

import html
import json
import re
import shutil
import subprocess

import pandas as pd
import pytest

from fixtures import linked, tables
from fixtures.chromium import Chromium
from sfumato import MaxEntropy
from sfumato.report import write_report
from sfumato.schema.schema import Schema

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: install Debian's chromium"),
]

PROBE = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="frame" style="border:0;width:{width}px;height:2000px" srcdoc="{page}"></iframe><pre id="found">nothing</pre>
<script>
document.getElementById("frame").addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument, out = [], scrolls = e => e.closest(".scroll");
  page.querySelectorAll("details").forEach(d => d.open = true);
  for (const e of page.querySelectorAll("body *:not(rect):not(.skip)")) {{
    const box = e.getBoundingClientRect();
    if (box.right > {width} + 1 && !scrolls(e)) out.push(e.tagName + " " + Math.round(box.right));
  }}
  const seconds = performance.getEntriesByType("navigation")[0].duration / 1000;
  document.getElementById("found").textContent = JSON.stringify({{
    over: out.slice(0, 5), wide: page.documentElement.scrollWidth, width: page.documentElement.clientWidth,
    ground: getComputedStyle(page.body).backgroundColor, heading: page.querySelector("h1").textContent, seconds
  }});
}});
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with long names, a long label, a picture of every kind."""
    long = "a_name_without_a_single_place_to_break_" * 2
    kinds = {**{k: v for k, v in tables.schema().to_dict()["columns"].items() if k != "id"}}
    kinds[long] = {"kind": "categorical", "categories": ["W" * 70, "b"]}
    schema = Schema.from_dict({"columns": kinds, "rows": 240})
    frame = pd.DataFrame(tables.frame().drop(columns="id")).assign(**{long: ["W" * 70, "b"] * 120})
    release = MaxEntropy(epsilon=1.0).fit(frame, schema=schema, target="income")
    path = tmp_path_factory.mktemp("page") / "p.html"
    write_report(release, path, real=frame)
    return path


def browse(folder, page, width, *options):
    probe = folder / "probe.html"
    text = PROBE.format(width=width, page=html.escape(page.read_text(encoding="utf-8")))
    probe.write_text(text, encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000", "--window-size=1500,2000"]
    done = subprocess.run(
        [*command, *options, "--dump-dom", probe.as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-2000:]
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1])), said


@pytest.mark.parametrize("width", [360, 1440])
def test_all_text_is_within_its_boxes(page, tmp_path, width):
    found, said = browse(tmp_path, page, width)
    assert found["heading"] == "Report on a synthetic data release"
    assert found["over"] == []
    assert found["wide"] <= found["width"]
    assert said == []  # no error, nothing that the content policy refused


def test_it_follows_the_dark_scheme(page, tmp_path):
    light, _ = browse(tmp_path, page, 800)
    dark, _ = browse(tmp_path, page, 800, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    assert light["ground"] == "rgb(255, 255, 255)"
    assert dark["ground"] == "rgb(21, 21, 26)"


OUTSIDE = """(() => {
  const found = [], seen = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const blocks = "p, li, td, th, dd, dt, h1, h2, h3, summary, caption, figcaption, svg, span, div, section";
  const block = e => e.closest(blocks);
  for (let node; node = walk.nextNode();) {
    const host = node.parentElement, text = node.textContent.trim();
    if (!text || host.closest(".skip, style") || !host.checkVisibility()) continue;  // closed details have boxes
    const range = document.createRange(); range.selectNodeContents(node);
    const box = block(host).getBoundingClientRect(), scrolls = host.closest(".scroll");
    for (const at of range.getClientRects()) {
      if (!at.width) continue;
      const inside = at.left >= box.left - 1 && at.right <= box.right + 1;
      const beyond = !scrolls && (at.left < 0 || at.right > innerWidth + 1);
      if (!inside || beyond) found.push("outside: " + text.slice(0, 60));
      seen.push([at, text]);
    }
  }
  seen.sort((a, b) => a[0].top - b[0].top);
  seen.forEach(([a, text], i) => {
    for (let j = i + 1; j < seen.length && seen[j][0].top < a.bottom - 3; j++) {
      const b = seen[j][0];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - b.top > 4)
        found.push("over each other: " + text.slice(0, 40) + " | " + seen[j][1].slice(0, 40));
    }
  });
  return [...new Set(found)].slice(0, 8).concat(
    document.documentElement.scrollWidth > innerWidth ? ["the page is wider than the screen"] : []);
})()"""
FOCUSED = """(() => {
  const all = [...document.querySelectorAll("a[href], summary, [tabindex], button, input, select, textarea")];
  const it = document.activeElement, style = getComputedStyle(it);
  const seen = style.outlineStyle !== "none" && it.getBoundingClientRect().right > 0;
  return {place: all.indexOf(it), all: all.length, seen};
})()"""


@pytest.fixture(scope="module")
def reports(page, tmp_path_factory):
    """Of a table with and without records, of pictures, of linked rows."""
    folder = tmp_path_factory.mktemp("reports")
    found = {"beside records": page}
    fitted = {
        "table": MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), target="income"),
        "images": MaxEntropy(epsilon=5.0).fit(tables.images(), schema=tables.image_schema()),
        "linked": MaxEntropy(epsilon=5.0).fit(linked.visits(400), schema=linked.schema(units=400)),
    }
    for name, release in fitted.items():
        found[name] = folder / f"{name}.html"
        write_report(release, found[name])
    return found


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


KINDS = ["beside records", "table", "images", "linked"]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_leaves_its_box_or_lies_on_another(reports, tab, kind, width):
    tab.complaints.clear()
    tab.open(reports[kind].as_uri(), width)
    assert tab.run(OUTSIDE) == []
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert tab.run(OUTSIDE) == []
    assert tab.complaints == []


def test_that_the_probe_sees_what_it_looks_for(reports, tab):
    tab.open(reports["table"].as_uri(), 390)
    tab.run("document.querySelector('h2').style.cssText = 'white-space: nowrap; width: 3rem'")
    tab.run("document.querySelectorAll('dd')[1].style.marginTop = '-4rem'")
    assert {line.partition(":")[0] for line in tab.run(OUTSIDE)} == {"outside", "over each other"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_control_is_reached_by_tab_in_order_and_shows_it(reports, tab, kind):
    tab.open(reports[kind].as_uri(), 1440)
    found = []
    while True:
        tab.press("Tab")
        at = tab.run(FOCUSED)
        if at["place"] < 0 or at["place"] in found:
            break
        assert at["seen"], at
        found.append(at["place"])
        assert len(found) <= at["all"]
    shown = tab.run("""[...document.querySelectorAll("a[href], summary, [tabindex], button, input, select, textarea")]
        .map((e, i) => [i, e.checkVisibility()]).filter(([_, there]) => there).map(([i, _]) => i)""")
    assert found == shown


@pytest.mark.parametrize("kind", ["beside records", "table"])
def test_details_open_and_close_by_keys_and_links_go_where_they_say(reports, tab, kind):
    tab.open(reports[kind].as_uri(), 1440)
    tab.press("Tab")
    assert tab.run("document.activeElement.textContent") == "Skip to the content"
    tab.press("Enter")
    assert tab.run("location.hash") == "#content"
    for i in range(tab.run("document.querySelectorAll('summary').length")):
        tab.run(f"""(outer => {{ if (outer) outer.open = true; }})(
            document.querySelectorAll('details')[{i}].parentElement.closest('details'))""")
        tab.run(f"document.querySelectorAll('summary')[{i}].focus()")
        for key, opened in (("Enter", True), (" ", False), (" ", True), ("Enter", False)):
            tab.press(key)
            assert tab.run(f"document.querySelectorAll('details')[{i}].open") is opened
    tab.open(reports[kind].as_uri(), 1440)
    for i in range(tab.run("document.querySelectorAll('nav a').length")):
        tab.run(f"document.querySelectorAll('nav a')[{i}].focus()")
        tab.press("Enter")
        assert tab.run("document.querySelector(':target').checkVisibility()")
        assert tab.run("document.querySelector('details:has(:target)')?.open") in (True, None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_summary_comes_first_and_the_rest_is_folded(reports, tab, kind):
    tab.open(reports[kind].as_uri(), 1440)
    assert tab.run("document.documentElement.scrollHeight") < 1800
    shown = tab.run("[...document.querySelectorAll('h2')].filter(e => !e.closest('details')).map(e => e.textContent)")
    assert shown[0] == "In short"
    assert set(shown) <= {"In short", "What it is good for"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_screen_reader_is_told(reports, tab, kind):
    tab.open(reports[kind].as_uri(), 1440)
    assert tab.run("document.documentElement.lang") == "en"
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tab.do("Accessibility.getFullAXTree")["nodes"]
        if not node["ignored"]
    ]
    roles = [role for role, _ in told]
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert roles.count(landmark) == 1, landmark
    assert tab.run("document.querySelectorAll('h1').length") == 1
    assert [role for role, name in told if role in ("image", "region", "navigation", "link") and not name.strip()] == []
    assert "columnheader" in roles
    assert "rowheader" in roles
    for unsaid in ("svg:not([aria-hidden] svg, [aria-hidden], [role=img][aria-label])", "th:not([scope])"):
        assert tab.run(f"document.querySelectorAll('{unsaid}').length") == 0
