"""The forms of operators: nothing is done without the token, or for a page of another site."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlencode, urlsplit

import pytest

from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.dashboard.app import Pages
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.operator_actions import OperatorApplication
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.dashboard_values import NOW, Seen, detail
from tests.support.servers.listening import get

TOKEN = "a-token-of-this-test"
FORM = "application/x-www-form-urlencoded"
PULL = {"name": "museum", "action": "pull", "token": TOKEN}


class Operations:
    def __init__(self) -> None:
        self.done: list[str] = []

    def operate(self, action: str, name: str, number: int) -> bool:
        if action == "release" and number != 28:
            raise ConfigurationError(f"28 deletions held here, and {number} confirmed")
        if name == "full":
            raise StorageError("the disk is full")
        if name == "museum":
            self.done.append(action)
        return name == "museum"


@pytest.fixture
def operations() -> Operations:
    return Operations()


@pytest.fixture
def host(operations: Operations) -> Iterator[str]:
    health = OperationsApplication(look=lambda: None)
    operator = OperatorApplication(TOKEN, operations.operate)
    with ServerThread(Pages({}, lambda: NOW, health, operator)) as server:
        yield urlsplit(server.uri).netloc


def post(host: str, form: Mapping[str, str], **fields: str) -> tuple[int, str]:
    fields = {"content_type": FORM, **fields}
    status, _, found = get(f"//{host}", "/act", method="POST", body=urlencode(form), **fields)
    return status, found.get("location", "")


def test_with_the_token_a_mirror_is_pulled_paused_and_resumed(
    host: str, operations: Operations
) -> None:
    for action in ("pull", "pause", "resume"):
        found = post(host, {**PULL, "action": action}, origin=f"http://{host}")
        assert found == (303, "mirror?name=museum")
    assert post(host, PULL) == (303, "mirror?name=museum")  # no page at all, such as curl
    assert post(host, PULL, sec_fetch_site="same-origin", origin="https://x")[0] == 303
    assert operations.done == ["pull", "pause", "resume", "pull", "pull"]


def test_held_deletions_are_released_by_who_writes_their_exact_number(
    host: str, operations: Operations
) -> None:
    for number in ("27", "0", "", "280", "twenty", "9" * 400):
        assert post(host, {**PULL, "action": "release", "number": number})[0] == 409
    assert post(host, {**PULL, "action": "release"})[0] == 409
    assert operations.done == []
    assert post(host, {**PULL, "action": "release", "number": " 28 "})[0] == 303
    assert operations.done == ["release"]


@pytest.mark.parametrize(
    ("form", "fields", "status"),
    [
        ({**PULL, "token": "another"}, {}, 403),
        ({**PULL, "token": ""}, {}, 403),
        ({**PULL, "token": "\udcff"}, {}, 400),
        ({"name": "museum", "action": "pull"}, {}, 403),
        (PULL, {"origin": "https://evil.example"}, 403),
        (PULL, {"origin": "null"}, 403),
        (PULL, {"sec_fetch_site": "cross-site"}, 403),
        (PULL, {"sec_fetch_site": "same-site"}, 403),
        (PULL, {"content_type": "text/plain"}, 403),
        ({**PULL, "action": "remove"}, {}, 400),
        ({**PULL, "name": "nobody"}, {}, 404),
        ({**PULL, "name": "full", "action": "resume"}, {}, 503),
        ({**PULL, "more": "x" * 20_000}, {}, 413),
    ],
)
def test_anything_else_does_nothing(
    host: str, operations: Operations, form: dict[str, str], fields: dict[str, str], status: int
) -> None:
    assert get(f"//{host}", f"/act?{urlencode(PULL)}")[0] == 405, "no token in an address"
    raw = {name: text.encode("utf-8", "surrogateescape") for name, text in form.items()}
    assert post(host, raw, **fields)[0] == status  # type: ignore[arg-type]  # bytes are encoded too
    assert operations.done == []


def test_without_a_token_configured_the_pages_only_read() -> None:
    health = OperationsApplication(look=lambda: None)
    with ServerThread(Pages({}, lambda: NOW, health)) as server:
        assert post(urlsplit(server.uri).netloc, PULL)[0] == 405
    assert "token" not in mirror_page(detail("museum"))
    seen = Seen(mirror_page(detail("museum"), can_act=True))
    assert "act" in seen.addresses
    assert {"Pull now", "Pause"} <= set(seen.texts)
    assert not {"Resume", "Release"} & set(seen.texts)
