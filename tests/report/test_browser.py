"""The page in a real browser, at the width of a phone and of a desk: no error, and all text within its boxes.

Chromium opens a page that holds the report in a frame of the width under test, measures it, and prints what it found.
"""

import html
import json
import re
import shutil
import subprocess

import pandas as pd
import pytest

from fixtures import tables
from sfumato import ConditionalGaussian
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
    release = ConditionalGaussian(epsilon=1.0).fit(frame, schema=schema, target="income")
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
