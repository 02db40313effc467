"""The configuration file: where it is looked for, and how a mistake in it is told."""

import os
from pathlib import Path

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.settings.config_file import (
    MOST_BYTES,
    NAME,
    ConfigFile,
    config_locations,
    find,
    overrides,
    read,
)

TEXT = """\
# mirrors
[defaults]
jobs = 64

[mirror."arxiv-pdf"]   # ours
source = "https://arxiv.example/"
"evrey" = "15m"

[mirror.arxiv-pdf.audit]
every = "7d"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return folder


def put(path: Path, text: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parsed(path: Path, text: str) -> ConfigFile:
    return read(put(path / "some.toml", text))


def test_a_file_that_is_named_must_be_there(here: Path) -> None:
    put(here / NAME)

    with pytest.raises(ConfigurationError, match="there is no configuration file nowhere"):
        find(Path("nowhere.toml"))


@pytest.mark.parametrize("below", [".", "objects/deep"])
def test_what_a_source_wrote_into_a_mirror_is_no_configuration(
    below: str, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / ".resourcesync").mkdir()
    folder = here / below
    put(folder / NAME, "[defaults]\njobs = 1\n")
    monkeypatch.chdir(folder)

    assert find(system=tmp_path / "none") is None
    assert not config_locations()[0].counts
    assert find(folder / NAME) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_counts_only_when_it_is_named(here: Path, tmp_path: Path) -> None:
    os.chown(put(here / NAME), 12345, 12345)

    with pytest.raises(ConfigurationError, match="belongs to another user") as caught:
        find(system=tmp_path / "none")

    assert caught.value.hint == f"if you trust it, name it: --config {NAME}"
    assert find(here / NAME) is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[defaults\n", "it is not TOML: .*line 1"),
        (b"a = 1\na = 2\n", "it is not TOML"),
        (b"a = '\xff'\n", "it is not UTF-8"),
        (b"a = " + b"[" * 100_000, "nested too deep"),
        (b"a = " + b"9" * 10_000, "it is not TOML"),
        (b"#" * (MOST_BYTES + 1), "more than 16777216 bytes"),
    ],
    ids=["syntax", "twice", "octets", "deep", "digits", "large"],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(
    data: bytes, reason: str, tmp_path: Path
) -> None:
    path = put(tmp_path / NAME, data)

    with pytest.raises(ConfigurationError, match=f"{NAME} cannot be used: .*{reason}"):
        read(path)


def test_a_mistake_is_told_with_file_line_table_and_key(tmp_path: Path) -> None:
    file = parsed(tmp_path, TEXT)

    error = file.unknown_key_error(("mirror", "arxiv-pdf"), "evrey", ("every", "source"))

    assert error.message == "unknown key `evrey` in [mirror.arxiv-pdf]"
    assert error.evidence == (("file", f"{file.path}:7"),)
    assert error.hint == "did you mean `every`?"


def test_a_table_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"`a` in \[mirror\] must be a table"):
        parsed(tmp_path, "[mirror]\na = 1\n").table("mirror", "a")
    with pytest.raises(ConfigurationError, match=r"^`mirror` must be a table"):
        parsed(tmp_path, "mirror = 1\n").table("mirror", "a")


def test_the_environment_sets_single_keys_of_a_mirror() -> None:
    environ = {
        "RESOURCESYNC_MIRROR__ARXIV_PDF__JOBS": "5",
        "RESOURCESYNC_MIRROR__ARXIV_PDF__MAX_DELETE": "1%",
        "RESOURCESYNC_MIRROR__ARXIV__JOBS": "6",
        "RESOURCESYNC_MIRROR__ARXIV_PDF__": "7",
        "OTHER": "8",
    }

    assert overrides("arxiv-pdf", environ) == {
        "jobs": ("RESOURCESYNC_MIRROR__ARXIV_PDF__JOBS", "5"),
        "max_delete": ("RESOURCESYNC_MIRROR__ARXIV_PDF__MAX_DELETE", "1%"),
    }
    assert overrides("none", environ) == {}
