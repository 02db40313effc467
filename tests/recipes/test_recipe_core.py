"""The recipe for CORE is typed, and its lists are read as the aggregator's client reads them."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of, free_port, running, script
from tests.support.software.aggregator_client import AggregatorClient

PAPERS = ("jug", "bowl with a blank é", "cup")


class Papers:
    """A folder of papers that is served, and the recipe."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url, self.papers = f"http://127.0.0.1:{port}/", folder / "papers"
        stands_for = {
            "https://repo.example/": self.url,
            "https://repo.example": self.url,
            "/srv/papers": str(self.papers),
            "127.0.0.1:8080": f"127.0.0.1:{port}",
        }
        self.typed = TypedPage(RECIPES / "core.md", folder, stands_for)
        for name in PAPERS:
            self.put(name, f"%PDF {name}")

    def put(self, name: str, text: str) -> None:
        (self.papers / "2026").mkdir(parents=True, exist_ok=True)
        (self.papers / "2026" / f"{name}.pdf").write_text(text)
        (self.papers / "2026" / f"{name}.xml").write_text(f"<dc>{name}</dc>")

    def remove(self, name: str) -> None:
        for path in (self.papers / "2026").glob(f"{name}.*"):
            path.unlink()

    def nightly(self) -> str:
        (line,) = self.typed.blocks("text")
        return self.typed.succeed(line[line.index("resourcesync") :])

    def present(self) -> dict[str, bytes]:
        return {f"{self.url}{quote(path)}": body for path, body in files_of(self.papers).items()}


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Papers]:
    port = free_port()
    made = Papers(tmp_path, port)
    publish, serve, _ = made.typed.blocks("sh")
    made.typed.succeed(publish)
    with running(script("resourcesync"), *serve.split()[1:], port=port, cwd=tmp_path):
        yield made


def test_the_client_of_the_aggregator_sees_every_change(repository: Papers) -> None:
    client = AggregatorClient(f"{repository.url}.well-known/resourcesync")
    assert client.visit() == 2 * len(PAPERS)
    assert client.copies == repository.present()
    jug = f"{repository.url}2026/jug"
    assert client.described_by[f"{jug}.pdf"] == f"{jug}.xml"

    for step in range(3):
        repository.put("jug", f"%PDF version {step}")
        repository.put(f"new {step}", "%PDF new")
        repository.nightly()
        assert client.visit() == 3, "a paper, and a new one with its metadata"
        assert client.copies == repository.present()
    repository.remove("cup")
    repository.nightly()
    repository.put("jug", "%PDF last")
    repository.nightly()
    assert client.visit() == 3
    assert client.copies == repository.present()
    assert client.visit() == 0


def test_the_source_is_sound_and_a_mirror_has_papers_and_metadata(repository: Papers) -> None:
    repository.put("jug", "%PDF again")
    repository.nightly()

    told = repository.typed.succeed(repository.typed.blocks("sh")[2])

    assert "0 errors, 0 warnings" in told
    assert "all hashes verified" in told
    assert files_of(repository.typed.folder / "check") == files_of(repository.papers)
