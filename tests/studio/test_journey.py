"""From a CSV to a release and its report, by the forms of the pages alone."""

import html
import http.client
import re
import signal
import subprocess
import sys
import tracemalloc
from urllib.parse import urlsplit

import pytest

import sfumato
from fixtures.studio import given_word, schema_form
from sfumato.privacy import words
from sfumato.schema.documents import read_document
from sfumato.studio.session import Budget, StudioSession


def opened(holder, table):
    answer, _ = holder.ask("POST", "/", {"data": str(table)})
    assert answer.headers["location"] == "/questions"


def answered(holder):
    answer, text = holder.ask("POST", "/questions", schema_form(holder) | {"public": "on", "act": "on"})
    assert (answer.status, answer.headers["location"]) == (303, "/budget"), text


def test_named_questions_are_shown(holder, studio, table):
    opened(holder, table)
    path = studio._session.schema_path
    columns = "{age: {kind: integer, lower: 0, upper: 100}, member: boolean}"
    path.write_text(f"columns: {columns}\nrows: 400\nquestions: ['mean: age by member']\n", encoding="utf-8")
    assert "<code>mean: age by member</code>" in holder.ask("GET", "/questions")[1]


@pytest.mark.slow
def test_from_a_csv_to_a_release_and_its_report(holder, studio, table):
    opened(holder, table)
    answered(holder)
    session = studio._session
    assert "draft" not in read_document(session.schema_path)
    choice = {"epsilon": "2", "delta": "1e-6", "rows": "400", "target": ""}
    answer, page = holder.ask("GET", "/budget?epsilon=2&delta=1e-6&rows=400")
    assert answer.status == 200
    assert "sfumato fit" in re.sub(r"<[^>]*>", "", page)
    answer, text = holder.ask("POST", "/fit", choice)
    assert answer.status == 303, text
    assert holder.ask("POST", "/fit", choice)[0].status == 400  # one fit at a time, and no release is replaced
    session.wait()
    assert session.fit.state == "done", session.fit.error
    _, page = holder.ask("GET", "/fit")
    assert "Done." in page
    assert "http-equiv" not in page
    assert "drawn from the release alone" in page
    assert "Certificate: what this release cost" in page
    answer, text = holder.ask("POST", "/pack", {"title": "Members"})
    assert answer.status == 303, text
    assert "SHA256SUMS" in holder.ask("GET", "/fit")[1]
    answer, report = holder.ask("GET", "/report")
    assert answer.status == 200
    assert "Report on a synthetic data release" in report
    release = sfumato.load(session.release_path)
    assert release.certificate.epsilon <= 2
    assert release.certificate.private


def test_what_a_fit_keeps_and_what_is_left_out_is_shown(holder, studio, tmp_path):
    wards = ("ab"[i % 2] if i % 3 else f"rare{i % 39}" for i in range(600))
    rows = "".join(f"{ward},{i % 90}\n" for i, ward in enumerate(wards))
    table = tmp_path / "codes.csv"
    table.write_text(f"ward,age\n{rows}a,1,c,d\n")
    opened(holder, table)
    assert "1 record is left out" in re.sub(r"\s+", " ", holder.ask("GET", "/questions")[1])
    answered(holder)
    _, page = holder.ask("GET", "/budget?epsilon=2&delta=1e-6&rows=600")
    assert re.search(r"labels of 'ward' are kept from about \d+ rows on", html.unescape(page))
    answer, text = holder.ask("POST", "/fit", {"epsilon": "2", "delta": "1e-6", "rows": "600", "target": ""})
    assert answer.status == 303, text
    studio._session.wait()
    page = re.sub(r"<[^>]*>", " ", holder.ask("GET", "/fit")[1])
    assert "What is kept of each column" in page
    assert "% of rows are 'other'" in html.unescape(page)
    assert "Declare this to keep" in page


def test_a_closed_studio_goes_on_where_it_was(holder, studio, table):
    opened(holder, table)
    answered(holder)
    later = StudioSession(studio._session.folder, str(table))
    assert not later.schema().draft


def test_a_fit_is_written_though_nobody_asks_again(tmp_path, table):
    session = StudioSession(tmp_path / "studio", str(table))
    given_word(session)
    session.start(Budget(rows=400))
    assert not session._thread.daemon
    session.wait()
    assert session.release_path.exists()
    assert session.report_path.exists()


def test_a_draft_is_not_fitted(holder, studio, table):
    opened(holder, table)
    answer, text = holder.ask("POST", "/fit", {"epsilon": "1", "delta": "1e-6", "rows": "400"})
    assert answer.status == 400
    assert "draft" in text
    assert studio._session.fit is None


def test_bad_numbers_are_refused_by_name(holder, table):
    opened(holder, table)
    for query in ("epsilon=x", "epsilon=nan", "epsilon=-1&delta=1e-6", "rows=1.5", "rows=1e400"):
        assert holder.ask("GET", f"/budget?{query}")[0].status == 400


def test_forecasts_are_those_of_the_plan_and_read_no_record(holder, studio, table):
    opened(holder, table)
    answered(holder)
    table.write_text("gone")
    schema = studio._session.schema()
    for epsilon in (0.5, 4.0):
        _, page = holder.ask("GET", f"/budget?epsilon={epsilon}&delta=1e-6&rows=400")
        plan = sfumato.MaxEntropy(epsilon=epsilon, delta=1e-6).description(schema, n_public=400)
        lines = words.forecasts(plan)
        assert lines
        assert all(f"<li>{line}</li>" in html.unescape(page) for line in lines)


def peak_of_drafting(folder, blocks):
    folder.mkdir()
    path = folder / f"{blocks}.csv"
    block = "".join(f"{20 + i % 50},{'yes' if i % 3 else 'no'}\n" for i in range(10_000))
    with path.open("w") as file:
        file.write("age,member\n")
        file.writelines(block for _ in range(blocks))
    tracemalloc.start()
    StudioSession(folder / f"studio{blocks}", str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_five_times_the_rows_a_million_take_less_than_twice_the_memory(tmp_path):
    """What Python holds, without what a thread of another test may hold; Arrow's reader goes by blocks."""
    few, many = (
        min(peak_of_drafting(tmp_path / f"{blocks} {turn}", blocks) for turn in range(2)) for blocks in (20, 100)
    )
    assert many < 2 * few


@pytest.mark.slow
def test_ctrl_c_ends_the_studio_when_the_fit_has_ended(tmp_path, table):
    folder = tmp_path / "studio"
    session = StudioSession(folder, str(table))
    given_word(session)
    command = [sys.executable, "-m", "sfumato", "studio", str(table), "--folder", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        url = urlsplit(process.stdout.readline().split()[1])
        link = http.client.HTTPConnection(url.netloc, timeout=60)
        link.request("GET", f"/?{url.query}")
        answer = link.getresponse()
        answer.read()
        sent = {"Cookie": answer.headers["set-cookie"].split(";")[0], "Origin": f"http://{url.netloc}"}
        link.request("POST", "/fit", "epsilon=1&delta=1e-6&rows=400", sent)
        answer = link.getresponse()
        answer.read()
        link.close()
        assert answer.status == 303
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert {path.name for path in folder.iterdir()} == {"schema.yaml", "release.sfm", "report.html"}
