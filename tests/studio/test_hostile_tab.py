"""A hostile page in a second tab of the browser that has the studio open: real Chromium, which has the cookie.

Chromium is led by its own protocol over tornado's client, which comes with Dask.
"""

import asyncio
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest

websocket = pytest.importorskip("tornado.websocket", reason="no tornado: it comes with Dask")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: install Debian's chromium"),
]
HOSTILE = """<!DOCTYPE html><meta charset="utf-8"><title>waiting</title>
<iframe name="sink"></iframe><iframe id="inside" src="{studio}/questions"></iframe>
<form id="form" method="post" action="{studio}/" target="sink"><input name="data" value="{table}"></form>
<script>
const got = {{}};
async function tried(name, act) {{ try {{ got[name] = await act(); }} catch (error) {{ got[name] = "refused"; }} }}
window.addEventListener("load", async () => {{
  document.getElementById("form").submit();
  await tried("read", async () => await (await fetch("{studio}/questions", {{credentials: "include"}})).text());
  await tried("blind", async () => (await fetch("{studio}/questions",
    {{credentials: "include", mode: "no-cors"}})).type + (await (await fetch("{studio}/questions",
    {{credentials: "include", mode: "no-cors"}})).text()));
  await tried("posted", async () => await (await fetch("{studio}/", {{method: "POST", credentials: "include",
    mode: "no-cors", body: new URLSearchParams({{data: "{table}"}})}})).text());
  await tried("framed", async () => document.getElementById("inside").contentDocument.body.innerText);
  const other = window.open("{studio}/questions");
  await new Promise(done => setTimeout(done, 1500));
  await tried("opened", async () => other.document.body.innerText);
  document.title = JSON.stringify(got);
}});
</script>"""


class Tabs:
    """Tabs of one browser, through its debugging protocol."""

    def __init__(self, link):
        self._link, self._number = link, 0

    async def do(self, method, session=None, **settings):
        self._number += 1
        call = {"id": self._number, "method": method, "params": settings}
        await self._link.write_message(json.dumps(call | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(await self._link.read_message())
            if answer.get("id") == self._number:
                return answer.get("result")  # none where a page is on its way

    async def open(self, address):
        target = (await self.do("Target.createTarget", url=address))["targetId"]
        return (await self.do("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]

    async def value(self, session, expression):
        found = await self.do("Runtime.evaluate", session, expression=expression, returnByValue=True)
        return None if found is None else found["result"].get("value")

    async def wait_for(self, session, expression, wanted):
        for _ in range(100):
            found = await self.value(session, expression)
            if wanted(found):
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"never came: {found!r}")


@pytest.fixture
def debugged(tmp_path):
    """The address at which a browser of our own takes orders."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--disable-popup-blocking", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            found = re.search(r"listening on (ws://\S+)", line)
            if found:
                break
        threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would stop it
        yield found[1]
        process.kill()


@pytest.fixture
def hostile(tmp_path):
    """Serves a folder on this machine: the nearest a foreign page can come, one port beside the studio."""
    folder = tmp_path / "hostile"
    folder.mkdir()

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_hostile_tab_reads_nothing_and_changes_nothing(studio, table, debugged, hostile, host):
    folder, port = hostile
    address = f"http://127.0.0.1:{studio.port}"
    (folder / "page.html").write_text(HOSTILE.format(studio=address, table=table), encoding="utf-8")

    async def attack(tabs):
        own = await tabs.open(studio.url)
        await tabs.wait_for(own, "document.title", lambda title: title and title.startswith("Your table"))
        other = await tabs.open(f"http://{host}:{port}/page.html")
        got = json.loads(await tabs.wait_for(other, "document.title", lambda title: title and title.startswith("{")))
        # the holder's own tab still works, by the very form that the hostile page copied
        assert studio._session.data is None
        await tabs.value(own, f"document.querySelector('[name=data]').value = {json.dumps(str(table))}")
        await tabs.value(own, "document.querySelector('main form button').click()")
        await tabs.wait_for(own, "document.title", lambda title: title and title.startswith("Questions"))
        return got

    async def whole():
        link = await websocket.websocket_connect(debugged)
        try:
            return await attack(Tabs(link))
        finally:
            link.close()
            while await link.read_message() is not None:
                pass

    got = asyncio.run(whole())
    assert got["read"] == "refused"
    assert got["framed"] in ("refused", "")
    assert got["opened"] == "refused"
    for name in ("blind", "posted"):
        assert got[name] in ("refused", "", "opaque"), got
    assert studio._session.data == str(table)
