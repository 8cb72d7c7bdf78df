"""A hostile page in another tab: nothing it can send is answered, and nothing is left where it could read."""

import socket
import subprocess
import sys

import pytest


def test_only_this_machine_is_listened_to(studio):
    assert studio._socket.getsockname()[0] == "127.0.0.1"
    with socket.socket() as other, pytest.raises(OSError, match="refused"):
        other.connect(("127.0.0.2", studio.port))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", ""]
)
def test_a_foreign_name_for_this_machine_is_refused(studio, holder, host):
    answer, text = holder.ask("GET", "/", Host=host.format(port=studio.port))
    assert answer.status in (400, 421)
    assert "<form" not in text


def test_its_second_name_is_taken(studio, holder):
    assert holder.ask("GET", "/", Host=f"localhost:{studio.port}")[0].status == 200


@pytest.mark.parametrize(
    "path", ["/", "/questions", "/budget", "/fit", "/report", "/?token=", "/?token=wrong", "/fit?token=x"]
)
def test_without_the_token_nothing_is_shown(stranger, path):
    answer, text = stranger.ask("GET", path)
    assert answer.status == 403
    assert "<form" not in text
    assert "set-cookie" not in answer.headers


def test_a_wrong_cookie_is_no_cookie(stranger, studio):
    stranger.cookie = f"sfumato_studio_{studio.port}=x"
    assert stranger.ask("GET", "/")[0].status == 403


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(stranger, studio):
    answer = stranger.enter()
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert answer.headers["location"] == "/"
    assert studio.url.split("token=")[1] not in cookie


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": None},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": None, "Sec_Fetch_Site": "none"},
    ],
)
def test_a_form_of_another_page_changes_nothing_even_with_the_cookie(holder, studio, table, headers):
    answer, _ = holder.ask("POST", "/", {"data": str(table)}, **headers)
    assert answer.status == 403
    assert studio._session.data is None
    assert not studio._session.folder.exists()


def test_a_link_of_another_page_is_not_followed(holder):
    assert holder.ask("GET", "/", Sec_Fetch_Site="cross-site")[0].status == 403


@pytest.mark.parametrize("path", ["/", "/nothing", "/report"])
def test_every_answer_forbids_scripts_frames_and_copies(holder, path):
    answer, _ = holder.ask("GET", path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/report/../../x", "//etc/passwd", "/schema.yaml"]
)
def test_no_path_leads_to_files(holder, path):
    answer, text = holder.ask("GET", path)
    assert answer.status == 404
    assert "root:" not in text


def test_a_long_form_is_not_read(holder):
    assert holder.ask("POST", "/", "data=" + "x" * 100_000)[0].status == 413


def test_markup_in_what_is_typed_is_text(holder):
    _, text = holder.ask("POST", "/", {"data": "<b>x</b>.csv"})
    assert "<b>x" not in text


def test_the_command_prints_the_address_and_nothing_else(tmp_path, table):
    command = [sys.executable, "-m", "sfumato", "studio", str(table), "--folder", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert line.startswith("Open http://127.0.0.1:")
    assert "token=" in line
    assert err == ""
    assert "age" not in out
