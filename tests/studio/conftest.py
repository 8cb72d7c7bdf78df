import http.client
import threading
from urllib.parse import urlencode, urlsplit

import pytest

from fixtures.sampling import few_simulations
from sfumato.studio.server import Studio
from sfumato.studio.session import StudioSession

__all__ = ["few_simulations"]


class Visitor:
    """A browser, as far as the studio sees one."""

    def __init__(self, studio):
        self.studio, self.cookie = studio, None

    def ask(self, method, path, body=None, **headers):
        link = http.client.HTTPConnection("127.0.0.1", self.studio.port, timeout=60)
        own = f"127.0.0.1:{self.studio.port}"
        sent = {"Host": own} | ({"Cookie": self.cookie} if self.cookie else {})
        if method == "POST":
            sent |= {"Origin": f"http://{own}", "Content-Type": "application/x-www-form-urlencoded"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in sent.items() if value is not None}
        link.request(method, path, urlencode(body) if isinstance(body, dict) else body, sent)
        answer = link.getresponse()
        text = answer.read().decode()
        link.close()
        return answer, text

    def enter(self):
        parts = urlsplit(self.studio.url)
        answer, _ = self.ask("GET", f"{parts.path}?{parts.query}")
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].split(";")[0]
        return answer


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    rows = "\n".join(f"{20 + i % 50},{'yes' if i % 3 else 'no'}" for i in range(400))
    path.write_text(f"age,member\n{rows}\n")
    return path


@pytest.fixture
def studio(tmp_path):
    found = Studio(StudioSession(tmp_path / "studio"))
    thread = threading.Thread(target=found.run)
    thread.start()
    yield found
    found.stop()
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def stranger(studio):
    return Visitor(studio)


@pytest.fixture
def holder(studio):
    visitor = Visitor(studio)
    visitor.enter()
    return visitor
