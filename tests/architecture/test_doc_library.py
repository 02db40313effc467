"""The page on the library is true: its examples are run as written, one after the other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync import MirrorState, Publisher
from resourcesync.app.serving.applications import LateApplication
from resourcesync.server.uvicorn_server import ServerThread

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-from-python.md"
ADDRESS = "https://museum.example"
FILES = {"objects/1.txt": "a jug", "objects/2.txt": "a bowl"}


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve the folder ``public`` of the place where the examples are run."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        path = tmp_path / "public" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    late = LateApplication()
    with ServerThread(late) as server:
        publisher = Publisher("public", url=server.uri)
        publisher.publish()
        late.application = publisher.application()
        yield server.uri.rstrip("/")


def test_the_examples_of_the_page_do_what_it_says(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"__name__": "example"}

    for number, block in enumerate(blocks):
        code = block.replace(ADDRESS, address)
        exec(compile(code, f"{PAGE.name}, example {number + 1}", "exec"), names)

    assert len(blocks) == text.count("```python") == 11
    assert names["report"].state is MirrorState.IN_SYNC
    assert names["audit"].in_sync
    assert names["index"] == {f"{address}/{name}": text.encode() for name, text in FILES.items()}
    assert [change.uri for change in names["mirror"].changes(since=names["position"])] == []
    assert names["done"].resources == len(FILES)
    assert names["count"] == 100
    said = capsys.readouterr()
    assert said.err == ""
    assert "in sync 2 0 0" in said.out
    assert "Resource List 1.1" in said.out
    assert "error" not in said.out
