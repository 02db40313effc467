"""The pages of ``serve --admin``: what became of a Source, who follows it, whether it is sound."""

from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.cli.render.serve_pages import ServePages, Validation
from tests.support.sources.own_source import CALLBACKS, published_for_days, source_pages


@pytest.fixture
def root(tmp_path: Path) -> Path:
    published_for_days(tmp_path / "demo", days=2)
    return tmp_path / "demo"


@pytest.fixture
def shown(root: Path) -> Iterator[tuple[str, ServePages]]:
    with source_pages(root) as found:
        yield found


def get(address: str) -> str:
    with urlopen(address, timeout=30) as answer:
        assert answer.headers["content-security-policy"].startswith("default-src 'none';")
        return str(answer.read().decode())


def test_who_is_subscribed_is_told_without_what_only_they_may_know(
    shown: tuple[str, ServePages],
) -> None:
    page = get(shown[0])
    assert "https://two.example:8443" in page
    assert "changenotification.xml" in page
    assert "up to date" in page
    assert [callback for callback in CALLBACKS if callback.rpartition("/")[2] in page] == []


def test_documents_are_judged_when_asked_and_again_when_they_are_others(
    root: Path, shown: tuple[str, ServePages]
) -> None:
    address, pages = shown
    assert "Not validated since" in get(address)
    report = get(f"{address}validate")
    assert "<h1>" in report
    assert '<a href="./" aria-current="page">Source</a>' in report
    assert "no error" in get(address)
    assert pages.source(7).validated.documents > 3
    ended = pages.source(7).validated.ended
    assert get(f"{address}validate?again=1") == report  # not all the time
    assert pages.source(7).validated.ended == ended

    path = root / "resourcesync" / "changelist.xml"
    path.write_text(path.read_text().replace('change="updated"', 'change="mended"'))
    assert "have changed since" in get(address)
    assert "mended" in get(f"{address}validate")
    assert ">errors<" in get(address)


def test_a_validation_that_takes_too_long_or_cannot_be_is_said_to_be_so(tmp_path: Path) -> None:
    slow = Validation(tmp_path, SystemClock(), seconds=0.0)
    assert slow.request((), again=False) == ""
    assert slow.view(()).error == "The validation took longer than 0 s and was stopped."
    empty = Validation(tmp_path, SystemClock())
    assert empty.request((), again=False) == ""
    assert "no ResourceSync documents" in empty.view(()).error
    assert not empty.view(()).is_good
