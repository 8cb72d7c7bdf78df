"""The studio's fits charge a ledger: the table's own, wherever a studio works."""

import html
import re

import pytest

from fixtures.studio import given_word
from sfumato import create_ledger, load, read_ledger
from sfumato.data_ledger.ledger_state import check_releases
from sfumato.errors import BudgetExceededError, ConfigError, OutputError
from sfumato.release import files
from sfumato.studio.ledgers import ledger_beside
from sfumato.studio.session import Budget, StudioSession


def ready(folder, table):
    return given_word(StudioSession(folder, str(table)))


def fitted(session, budget):
    session.start(budget)
    session.wait()
    return session.fit


def test_a_fit_opens_the_ledger_beside_the_table_and_charges_it(tmp_path, table):
    session = ready(tmp_path / "studio", table)
    assert fitted(session, Budget(rows=400)).state == "done"
    (fit,) = read_ledger(tmp_path / "people.ledger").fits
    assert (fit.method, fit.status) == ("max-entropy", "finished")
    assert load(session.release_path).certificate.ledger.charge == 1
    (claim,) = check_releases(tmp_path / "people.ledger", [session.release_path])
    assert claim.standing == "known"


def test_two_studios_of_one_table_have_one_account(tmp_path, table):
    budget = Budget(rows=400, total_epsilon=1.1, total_delta=1e-6)
    assert fitted(ready(tmp_path / "a", table), budget).state == "done"
    second = ready(tmp_path / "b", table)
    with pytest.raises(BudgetExceededError, match="can pay for"):
        second.start(budget)
    assert second.fit is None
    assert len(read_ledger(tmp_path / "people.ledger").fits) == 1


def test_a_total_that_does_not_pay_for_the_fit_opens_nothing(tmp_path, table):
    session = ready(tmp_path / "studio", table)
    with pytest.raises(BudgetExceededError):
        session.start(Budget(rows=400, total_epsilon=0.5))
    assert not (tmp_path / "people.ledger").exists()


def test_a_ledger_of_another_name_is_charged(tmp_path, table):
    create_ledger(tmp_path / "mine", epsilon=3.0, delta=1e-5)
    assert fitted(ready(tmp_path / "studio", table), Budget(rows=400, ledger=str(tmp_path / "mine"))).state == "done"
    assert len(read_ledger(tmp_path / "mine").fits) == 1
    assert not (tmp_path / "people.ledger").exists()


@pytest.mark.parametrize("name", ["schema_path", "release_path", "report_path"])
def test_no_file_of_the_studio_is_a_ledger(tmp_path, table, name):
    session = ready(tmp_path / "studio", table)
    with pytest.raises(OutputError, match="is the ledger of this call"):
        session.start(Budget(rows=400, ledger=str(getattr(session, name))))
    with pytest.raises(ConfigError, match="ledger of Sfumato"):
        session.start(Budget(rows=400, ledger=str(table)))


def test_the_page_asks_for_it_and_says_what_is_left(holder, studio, table, tmp_path):
    holder.ask("POST", "/", {"data": str(table)})
    given_word(studio._session)
    _, page = holder.ask("GET", "/budget?epsilon=1&delta=1e-6&rows=400&total_epsilon=2")
    shown = html.unescape(re.sub(r"<[^>]*>", "", page))
    assert f"sfumato ledger create {tmp_path / 'people.ledger'} --epsilon 2 --delta 1e-06" in shown
    assert f"--ledger {tmp_path / 'people.ledger'}" in shown
    assert not (tmp_path / "people.ledger").exists()
    create_ledger(tmp_path / "people.ledger", epsilon=0.5, delta=1e-6)
    _, page = holder.ask("GET", "/budget?epsilon=1&delta=1e-6&rows=400")
    assert 'class="banner alarm"' in page
    assert "ledger create" not in page
    answer, text = holder.ask("POST", "/fit", {"epsilon": "1", "delta": "1e-6", "rows": "400"})
    assert answer.status == 400
    assert "can pay for" in text


def test_a_release_that_cannot_be_written_is_said_to_be_lost(tmp_path, table, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    session = ready(tmp_path / "studio", table)
    monkeypatch.setattr(files, "_write", full)
    fit = fitted(session, Budget(rows=400))
    assert fit.state == "failed"
    assert "its charge stands; nothing of the release is kept." in fit.error


@pytest.mark.parametrize(
    ("name", "ledger"), [("people.csv", "people"), ("people.csv.gz", "people"), ("a.b.csv", "a.b")]
)
def test_the_name_is_the_table_s(tmp_path, name, ledger):
    (tmp_path / name).write_text("a\n1\n")
    assert ledger_beside(str(tmp_path / name), tmp_path / "studio") == tmp_path / f"{ledger}.ledger"


def test_what_lies_elsewhere_has_its_account_in_the_studio_s_folder(tmp_path):
    for data in ("https://example.org/people.csv", "postgresql://host/db?table=people", str(tmp_path / "*.csv")):
        assert ledger_beside(data, tmp_path / "studio") == tmp_path / "studio" / "data.ledger"
