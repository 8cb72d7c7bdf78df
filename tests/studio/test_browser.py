"""The studio in a real browser: the address lets it in, and pages fit a phone and a desk without a complaint."""

import html
import json
import re
import shutil
import subprocess

import pytest

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
@pytest.mark.parametrize("path", ["/", "/questions", "/budget", "/simulation?rows=400"])
def test_pages_fit_and_every_field_has_a_label(holder, table, tmp_path, path, width):
    holder.ask("POST", "/", {"data": str(table)})
    _, page = holder.ask("GET", path)
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(width=width, page=html.escape(page)), encoding="utf-8")
    shown, said = dump(tmp_path, probe.as_uri())
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown, re.S)[1]))
    assert found == {"overhang": 0, "landmarks": 3, "unnamed": 0}
    assert said == []
