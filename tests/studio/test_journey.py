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
from sfumato.columns import Boolean, Image
from sfumato.schema.documents import read_document
from sfumato.studio.session import Budget, StudioSession
from sfumato.studio.simulation import MOST_COLUMNS, simulate

NO_NOISE = 100.0


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


def test_forecasts_shrink_with_epsilon_and_read_no_record(tmp_path, table):
    folder = tmp_path / "studio"
    folder.mkdir()
    (folder / "schema.yaml").write_text(
        "rows: 400\ncolumns:\n  age: {kind: integer, lower: 0, upper: 120}\n  member: {kind: boolean}\n"
    )
    session = StudioSession(folder, str(table))
    table.unlink()
    errors = [session.share_error(Budget(epsilon=epsilon)) for epsilon in (0.5, 1.0, 4.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 4
    outlooks = session.outlooks(Budget(epsilon=1.0), [0.5, 1.0, 4.0])
    assert [outlook.share_error for outlook in outlooks] == pytest.approx(errors, rel=0.02)
    assert [column.name for column in outlooks[0].columns] == ["age", "member"]


@pytest.mark.slow
def test_a_simulation_shows_every_column_and_reads_no_record(tmp_path, table, holder):
    opened(holder, table)
    answered(holder)
    table.write_text("gone")
    errors = {}
    for epsilon in (0.2, 8):
        answer, page = holder.ask("GET", f"/simulation?epsilon={epsilon}&delta=1e-6&rows=400")
        assert answer.status == 200, page
        errors[epsilon] = [float(found) for found in re.findall(r'class="number">([\d.]+) %', page)]
        assert page.count('<th scope="row">') == len(errors[epsilon]) == page.count('role="img"')
    assert sum(errors[8]) < sum(errors[0.2])
    again = holder.ask("GET", "/simulation?epsilon=8&delta=1e-6&rows=400")[1]
    assert again == page


def test_without_a_number_of_rows_nothing_is_simulated(holder, table):
    opened(holder, table)
    answered(holder)
    answer, page = holder.ask("GET", "/simulation?epsilon=1&delta=1e-6")
    assert answer.status == 400
    assert "number of rows" in page


def test_what_discovery_costs_is_taken_off_the_forecast(tmp_path, table):
    folder = tmp_path / "studio"
    folder.mkdir()
    path, errors = folder / "schema.yaml", []
    for age in ("{kind: continuous, lower: 0, upper: 100}", "{kind: continuous, discover: true}"):
        path.write_text(f"columns:\n  age: {age}\n  member: {{kind: boolean}}\n")
        errors.append(StudioSession(folder, str(table)).share_error(Budget(rows=400)))
    assert errors[0] * 1.02 < errors[1] < 2 * errors[0]


@pytest.mark.slow
def test_every_kind_is_invented_within_its_schema():
    document = {
        "rows": 2000,
        "columns": {
            "age": {"kind": "integer", "lower": 0, "upper": 99, "nullable": True},
            "wage": {"kind": "continuous", "lower": 0, "upper": 1e5},
            "day": {"kind": "datetime", "lower": "2020-01-01", "upper": "2024-01-01"},
            "grade": {"kind": "ordinal", "categories": ["a", "b", "c"], "nullable": True},
            "sex": {"kind": "categorical", "categories": ["f", "m"]},
            "one": {"kind": "categorical", "categories": ["only"]},
            "member": "boolean",
        },
    }
    found = simulate(sfumato.Schema.from_dict(document), epsilon=NO_NOISE, delta=1e-6, rows=2000, target="sex")
    assert [column.name for column in found.columns] == list(document["columns"])
    assert all(column.error < 0.07 for column in found.columns)
    noisy = simulate(sfumato.Schema.from_dict(document), epsilon=0.1, delta=1e-6, rows=2000, target=None)
    assert noisy.pairs > found.pairs


def test_images_and_very_wide_tables_are_not_simulated():
    wide = sfumato.Schema(columns={f"c{i}": Boolean() for i in range(MOST_COLUMNS + 1)}, rows=2000)
    image = sfumato.Schema(columns={"pixels": Image(shape=(8, 8))}, rows=2000)
    for schema in (wide, image):
        with pytest.raises(sfumato.errors.ConfigError, match="columns of labels and numbers"):
            simulate(schema, epsilon=1.0, delta=1e-6, rows=2000, target=None)


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
