"""A link ``monitor``: when a mirror need not read a newer Resource List, and when it must."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

FIRST, SECOND, THIRD = (f"2026-01-0{day}T00:00:00Z" for day in (2, 3, 4))
FILES = {"/a.txt": b"a", "/b.txt": b"b"}
TERMS = 'xmlns:dcterms="http://purl.org/dc/terms/"'


class MonitoredSource(TinySource):
    """A Source whose Capability List says that a Change List leads to all of its Resource List."""

    def tell(
        self, *, monitor: str = "/changelist.xml", valid: str = FIRST, changes: bool = True
    ) -> None:
        link = f'<rs:ln rel="monitor" href="{self.url}{monitor}" {TERMS} dcterms:valid="{valid}"/>'
        about = '<rs:md capability="resourcelist"/>'
        listed = f"<url><loc>{self.url}/resourcelist.xml</loc>{about}{link}</url>"
        pointers = [listed, self.pointer("/changelist.xml", "changelist")]
        self.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
        self.announce(FIRST, ["/a.txt"] if changes else [])

    def announce(self, since: str, targets: list[str]) -> None:
        entries = []
        for target in targets:
            body = self.answers[target].body
            digest = hashlib.sha256(body).hexdigest()
            entries.append(
                f"<url><loc>{self.url}{target}</loc><lastmod>{SECOND}</lastmod>"
                f'<rs:md change="updated" datetime="{SECOND}" hash="sha-256:{digest}"'
                f' length="{len(body)}"/></url>'
            )
        head = f'<rs:md capability="changelist" from="{since}"/>'
        self.put_document("/changelist.xml", head, entries)

    def list_anew(self) -> None:
        self.put("/c.txt", b"c")
        entries = [self.entry(target, self.answers[target].body) for target in (*FILES, "/c.txt")]
        head = f'<rs:md capability="resourcelist" at="{THIRD}"/>'
        self.put_document("/resourcelist.xml", head, entries)

    def pull(self) -> set[str]:
        self.asked.clear()
        assert run(["pull", self.url, "mirror", "-q"]) == 0
        return {asked.target for asked in self.asked}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MonitoredSource]:
    monkeypatch.chdir(tmp_path)
    with MonitoredSource() as made:
        made.offer(FILES, at=FIRST)
        yield made


def test_a_list_that_a_followed_change_list_leads_to_is_not_requested(
    source: MonitoredSource,
) -> None:
    source.tell()
    source.pull()
    source.pull()
    source.list_anew()

    assert "/resourcelist.xml" not in source.pull()


@pytest.mark.parametrize(
    "told",
    [{"monitor": "/other.xml"}, {"valid": THIRD}, {"valid": "no time"}, {"changes": False}],
    ids=["another Change List", "since a later list", "since no time", "no change yet"],
)
def test_without_the_whole_promise_a_newer_list_is_read(
    told: dict[str, str | bool], source: MonitoredSource
) -> None:
    source.tell(**told)  # type: ignore[arg-type]  # each has the type of its name
    source.pull()
    source.pull()
    source.list_anew()

    assert "/resourcelist.xml" in source.pull()
    assert set(files_of(Path("mirror"))) == {"a.txt", "b.txt", "c.txt"}


def test_after_a_gap_a_newer_list_is_read_whatever_is_promised(source: MonitoredSource) -> None:
    source.tell()
    source.pull()
    source.put("/b.txt", b"other")
    source.announce(SECOND, ["/b.txt"])
    assert run(["pull", source.url, "mirror", "-q"]) == 7
    source.list_anew()

    assert run(["pull", source.url, "mirror", "-q"]) == 0

    assert set(files_of(Path("mirror"))) == {"a.txt", "b.txt", "c.txt"}
