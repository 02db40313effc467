"""The page on feeding an index is true: its program is run as written, beside a copied file."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY, FILES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "feed-an-index.md"


def test_the_program_for_a_vector_store_has_the_text_of_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    text = PAGE.read_text("utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"__name__": "example"}

    with TinySource() as source:
        source.offer(FILES, at=EARLY)
        code = program.replace("https://docs.example.org", source.url)
        exec(compile(code, PAGE.name, "exec"), names)
        base = source.url.rstrip("/")

    store = names["store"]
    assert set(store.uris()) == {f"{base}{name}" for name, body in FILES.items() if body}
    assert Path("position").read_text()
    store.delete(store.ids(store.uris()[0]))
    assert len(store.uris()) == len([body for body in FILES.values() if body]) - 1
