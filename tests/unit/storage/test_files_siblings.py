"""Files that are opened one after the other: the same files, never more of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.files import FileSelection
from tests.support.sources.trees import BASE, originals, put

_NAMES = """
a b%20c d/x d/y d/e/z .env d/.git skip/s d/skip/s gone d/gone link d/link linked/x out/secret d/out
pipe d d/ d/../a d//x d/%2e%2e/a d/%61 d/e/..%2f..%2fa d/x?y %C3%BC/f
"""
_ELSEWHERE = ["https://other.example/data/a", "a", "/etc/passwd", BASE.removesuffix("/"), ""]
_URIS = [*(BASE + name for name in _NAMES.split()), BASE, *_ELSEWHERE]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    names = ("a", "b c", "d/x", "d/y", "d/e/z", ".env", "d/.git", "skip/s", "d/skip/s", "ü/f")
    for name in names:
        put(root, name, content=name.encode())
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(b"secret")
    (root / "link").symlink_to("d/x")
    (root / "d/link").symlink_to("../a")
    (root / "linked").symlink_to("d")
    (root / "out").symlink_to(outside)
    (root / "d/out").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    return root


def _read(opening: Callable[[str], BinaryIO | None], uri: str) -> bytes | None:
    stream = opening(uri)
    if stream is None:
        return None
    with stream:
        return stream.read()


@settings(max_examples=100, deadline=None)
@given(order=st.lists(st.sampled_from(_URIS), min_size=1, max_size=12))
def test_in_any_order_the_same_files_are_opened_as_one_by_one(tree: Path, order: list[str]) -> None:
    found = originals(tree, selection=FileSelection(skip=frozenset({"skip", "d/skip"})))
    alone = [_read(found.open, uri) for uri in order]

    with found.reading() as opening:
        together = [_read(opening, uri) for uri in order]

    assert together == alone


def test_a_folder_that_became_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(tmp_path, "root/d/x", "root/e/x", content=b"inside")
    put(outside, "x", "y", content=b"secret")
    found = originals(tmp_path / "root")

    with found.reading() as opening:
        assert _read(opening, BASE + "d/x") == b"inside"
        for name in "de":
            (tmp_path / "root" / name).rename(tmp_path / f"was-{name}")
            (tmp_path / "root" / name).symlink_to(outside)
        names = ("d/x", "d/y", "e/x", "e/y")
        seen = {_read(opening, BASE + name) for name in names}

    assert b"secret" not in seen


def test_no_descriptor_stays_open(tree: Path) -> None:
    before = os.listdir("/proc/self/fd")

    with originals(tree).reading() as opening:
        for uri in _URIS:
            _read(opening, uri)
        _read(opening, BASE + "d/e/z")

    assert os.listdir("/proc/self/fd") == before
