"""Where secrets come from, and that no message, repr or file ever has one."""

import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.app.fetchers import fetch_settings
from resourcesync.errors import ConfigurationError
from resourcesync.settings import credentials
from resourcesync.settings.credentials import MOST_BYTES, read_credentials
from resourcesync.settings.mirror import Credentials, Network

SECRET = "hunter2-s3cret"
HOME = "https://source.example"
ENV = {"TOKEN": SECRET, "EMPTY": "", "LINES": f"{SECRET}\nX: y"}


def read(table: dict[str, object], environ: dict[str, str] | None = None) -> Credentials:
    return read_credentials("mine", table, home=HOME, environ=ENV if environ is None else environ)


def bearer(token: object) -> dict[str, object]:
    return {"type": "bearer", "token": token}


def refused(table: dict[str, object], environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(table, environ)
    error: BaseException | None = caught.value
    told = ""
    while error is not None:
        told += f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert SECRET not in told
    return str(caught.value)


def test_a_credential_of_the_service_manager_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "arxiv").write_text(SECRET)
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}

    assert read(bearer({"credential": "arxiv"}), environ).fields[0][1] == f"Bearer {SECRET}"
    assert "one of" in refused(bearer({"credential": "../arxiv"}), environ)
    assert "empty or missing" in refused(bearer({"credential": "arxiv"}), {})


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (f"import sys; print('{SECRET}'); print('{SECRET}', file=sys.stderr); sys.exit(3)", "3"),
        (f"import time; print('{SECRET}', flush=True); time.sleep(9)", "longer than"),
        (f"print('{SECRET}'); print('{SECRET}')", "more than one line"),
        (f"print('{SECRET}' * {MOST_BYTES})", "more than"),
        (f"import sys; sys.stdout.buffer.write(b'{SECRET}' + bytes([255]))", "is not UTF-8"),
        ("pass", "empty"),
        (f"print('{SECRET} {SECRET}')", "not a bearer token"),
    ],
)
def test_a_command_that_fails_tells_nothing_of_what_it_wrote(
    program: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "COMMAND_SECONDS", 0.5)

    assert told in refused(bearer({"command": [sys.executable, "-S", "-c", program]}))


def test_any_header_may_carry_a_secret_to_any_one_origin() -> None:
    found = read(
        {
            "type": "header",
            "name": "X-Api-Key",
            "value": {"env": "TOKEN"},
            "origin": "https://cdn.example",
        }
    )

    assert found == Credentials(origin="https://cdn.example", fields=(("X-Api-Key", SECRET),))
    assert SECRET not in repr(found)
    assert SECRET not in repr(Network(credentials=(found,), headers=found.fields))


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, "`type`"),
        ({"type": "digest"}, "`type`"),
        ({"type": ["bearer"]}, "`type`"),
        ({"type": "bearer"}, "`token`"),
        (bearer(SECRET), "must not contain the secret itself"),
        (bearer({"env": "TOKEN", "file": "x"}), "one of"),
        (bearer({"vault": "x"}), "one of"),
        (bearer({"env": 1}), "string"),
        (bearer({"env": "EMPTY"}), "the environment variable EMPTY, which is not set or is empty"),
        (bearer({"env": "MISSING"}), "the environment variable MISSING, which is not set"),
        (bearer({"env": "LINES"}), "not a bearer token"),
        (bearer({"file": "/nonexistent/x"}), "cannot be read"),
        (bearer({"command": "echo x"}), "list"),
        (bearer({"command": []}), "list"),
        (bearer({"command": ["/nonexistent/x"]}), "cannot be run"),
        (bearer({"command": ["a\0b"]}), "list"),
        ({**bearer({"env": "TOKEN"}), "tokn": "x"}, "`tokn`"),
        ({"type": "basic", "password": {"env": "TOKEN"}}, "`username`"),
        ({"type": "basic", "username": "a:b", "password": {"env": "TOKEN"}}, "colon"),
        ({"type": "header", "name": "X", "value": {"env": "LINES"}}, "cannot be sent"),
        ({"type": "header", "name": "X Y", "value": {"env": "TOKEN"}}, "header"),
    ],
)
def test_a_mistake_is_named_and_the_secret_is_not(table: dict[str, object], told: str) -> None:
    assert told in refused(table)


def netrc_file(folder: Path, text: str, mode: int = 0o600) -> dict[str, object]:
    path = folder / "netrc"
    path.write_text(text)
    path.chmod(mode)
    return {"type": "netrc", "file": str(path)}


def test_a_netrc_gives_what_it_has_for_that_host_only(tmp_path: Path) -> None:
    text = f"machine source.example login me password {SECRET}\ndefault login a password b\n"
    table = netrc_file(tmp_path, text)

    word = b64encode(f"me:{SECRET}".encode()).decode()
    assert read(table).fields == (("Authorization", f"Basic {word}"),)
    assert read({"type": "netrc"}, {"NETRC": str(table["file"])}) == read(table)
    assert "no entry" in refused({**table, "origin": "https://other.example:8443"})


OF_HOME = f"machine source.example login me password {SECRET}"


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        *((OF_HOME, mode, "by other users") for mode in (0o640, 0o604, 0o620, 0o666)),
        (f"machine source.example {SECRET}", 0o600, ""),
        (f"passwd {SECRET}", 0o600, ""),
        ("\xff", 0o600, ""),
    ],
)
def test_a_netrc_that_is_broken_or_others_can_read_is_told_without_what_stands_in_it(
    tmp_path: Path, text: str, mode: int, told: str
) -> None:
    table = netrc_file(tmp_path, text, mode)
    Path(str(table["file"])).write_bytes(text.encode("latin-1"))

    assert told in refused(table)
    assert "not an ordinary file" in refused({"type": "netrc", "file": str(tmp_path)})
    assert "cannot be read" in refused({"type": "netrc", "file": str(tmp_path / "none")})


@given(st.dictionaries(st.text(max_size=8), st.none() | st.text() | st.lists(st.text())))
def test_no_table_whatever_leads_to_another_error(table: dict[str, Any]) -> None:
    for kind in ("bearer", "basic", "header"):
        with pytest.raises(ConfigurationError):
            read({**table, "type": kind, "token": table, "password": table, "value": table})


def test_each_origin_gets_its_own_and_two_for_one_field_are_a_mistake() -> None:
    own = Credentials(fields=(("Authorization", "Bearer a"),))
    other = Credentials(origin="https://CDN.example:443", fields=(("X-Key", "b"),))
    network = Network(headers=(("X-Own", "c"),), credentials=(own, other))

    assert fetch_settings(network, f"{HOME}/list.xml").headers == {
        HOME: (("X-Own", "c"), ("Authorization", "Bearer a")),
        "https://cdn.example": (("X-Key", "b"),),
    }
    assert fetch_settings(network, "").headers == {"https://cdn.example": (("X-Key", "b"),)}
    with pytest.raises(ConfigurationError, match="two secrets"):
        fetch_settings(Network(credentials=(own, own)), HOME)
