"""A crash report is sent to strangers: no secret of an address or a command line is in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.crash import MOST_REPORTS, write_crash_report
from resourcesync.errors import BadResponseError

SECRETS = st.text("abcXYZ019-._~%&=:;@?#/+!$'\"\\ é", min_size=8, max_size=24).map(
    lambda text: f"s3cr{text}t"
)
ADDRESSES = st.sampled_from(
    [
        *("https://{}@h.example/a", "https://me:{}@h.example:8080/a/b.xml"),
        *("https://h.example/a?key={}", "https://h.example/a?id=1&key={}&then=2"),
        *("https://me:{0}@h.example/a?key={0}", "oai:https://me:{}@h.example/oai", "/a/b?key={}"),
    ]
)
MESSAGES = st.sampled_from(
    ["{}", "no place for {}", "{!r} is no key", "{} and then {}: no", "a\n{}"]
)


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


def report_of(error: Exception, arguments: list[str]) -> str:
    evidence = dict(write_crash_report(error, arguments).evidence)
    return Path(evidence["report"]).read_text("utf-8") + evidence["error"]


def raised(error: Exception, cause: Exception) -> Exception:
    def fail() -> None:
        raise error from cause

    try:
        fail()
    except Exception as caught:  # noqa: BLE001 - as the edge does
        return caught
    return error


@given(SECRETS, ADDRESSES, MESSAGES, st.sampled_from([ValueError, KeyError, BadResponseError]))
def test_no_secret_of_an_address_is_in_the_report_wherever_the_address_stands(
    secret: str, form: str, message: str, kind: type[Exception]
) -> None:
    address = form.format(secret)
    text = message.format(address, address)
    error = raised(kind(text), raised(ValueError(text), KeyError(address)))
    error.add_note(f"while {address} was asked")

    for arguments in (["pull", address, "m"], ["publish", ".", f"--url={address}"], []):
        report = report_of(error, arguments)
        assert secret not in report
        assert secret[:10] not in report


def test_values_of_options_that_carry_secrets_are_left_out() -> None:
    arguments = ["publish", "x:y", "-o", "header=Authorization: hush", "-o", "header=Cookie: hush"]
    arguments += ["--with", "password=hush", "--with=token=hush", "--out", "there"]

    report = report_of(ValueError("x"), arguments)

    assert "hush" not in report
    assert "publish x:y -o header=(hidden) -o header=(hidden) --with password=(hidden)" in report
    assert "--out there" in report


def test_the_newest_reports_stay(state: Path) -> None:
    problems = [write_crash_report(ValueError(), []) for _ in range(MOST_REPORTS + 2)]

    left = list(state.rglob("crash-*.txt"))
    assert len(left) == MOST_REPORTS
    assert Path(dict(problems[-1].evidence)["report"]) in left
