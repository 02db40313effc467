"""The configuration file: where it is looked for, and how a mistake in it is told."""

import os
from pathlib import Path

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.settings.files import (
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


def found(system: Path) -> Path | None:
    file = find(system=system)
    return None if file is None else file.path


def test_the_first_file_there_is_counts_and_the_others_do_not(here: Path, tmp_path: Path) -> None:
    system = tmp_path / "etc" / NAME
    user = tmp_path / "user" / "resourcesync" / NAME

    assert found(system) is None
    put(system)
    assert found(system) == system
    put(user)
    assert found(system) == user
    put(here / NAME)
    assert found(system) == Path(NAME)
    assert [place.path for place in config_locations(system=system)] == [Path(NAME), user, system]


def test_a_file_that_is_named_is_the_only_one(here: Path, tmp_path: Path) -> None:
    put(here / NAME, "here = 1")
    named = put(tmp_path / "other.toml", "other = 1")

    file = find(named)

    assert file is not None
    assert file.tables == {"other": 1}


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


@pytest.mark.parametrize(
    ("table", "key", "line"),
    [
        (("defaults",), "jobs", 3),
        (("mirror", "arxiv-pdf"), "source", 6),
        (("mirror", "arxiv-pdf"), "audit", 9),
        (("mirror", "arxiv-pdf", "audit"), "every", 10),
        (("mirror", "arxiv-pdf"), "dest", 5),
        (("mirror",), "arxiv-pdf", 5),
        (("nothing",), "at", 0),
    ],
)
def test_the_line_is_that_of_the_key_or_of_its_table(
    table: tuple[str, ...], key: str, line: int, tmp_path: Path
) -> None:
    file = parsed(tmp_path, TEXT)

    assert file.location(table, key) == (f"{file.path}:{line}" if line else str(file.path))


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
