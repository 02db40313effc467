"""The configuration file and ``mirrors.d/*.toml``: where they are, and how mistakes are told."""

import os
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.app.configured_mirrors import MirrorConfiguration, find_overlaps
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


MAIN = '[defaults]\njobs = 4\n[mirror.one]\nsource = "https://a.example/"\ndest = "one"\n'
PART = '[mirror.two]\nsource = "https://b.example/"\ndest = "two"\nauth = "key"\n'
SECRET = '[auth.key]\ntype = "bearer"\ntoken = { env = "KEY" }\n'


def with_parts(folder: Path, **parts: str) -> Path:
    (folder / "mirrors.d").mkdir()
    for name, text in parts.items():
        (folder / "mirrors.d" / f"{name}.toml").write_text(text)
    (folder / "resourcesync.toml").write_text(MAIN)
    return folder / "resourcesync.toml"


def test_the_parts_are_read_after_the_file_in_the_order_of_their_names(tmp_path: Path) -> None:
    three = PART.replace("two", "three")
    configuration = MirrorConfiguration(read(with_parts(tmp_path, b=three, a=PART + SECRET)))

    assert configuration.names == ("one", "two", "three")
    assert configuration.mirror("two").settings["jobs"].value == 4
    assert configuration.mirror("two").dest == tmp_path / "two"
    assert configuration.mirror("two").settings["source"].origin.endswith("mirrors.d/a.toml:2")
    assert list(configuration.problems()) == []


def test_a_name_in_two_files_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = with_parts(tmp_path, a=PART, b=f"# again\n{PART}")

    with pytest.raises(ConfigurationError, match=r"`two` in \[mirror\] is in .*a\.toml:1 too") as e:
        read(path)
    assert e.value.evidence == (("file", f"{tmp_path}/mirrors.d/b.toml:2"),)


def test_what_is_for_all_mirrors_may_only_be_in_the_file(tmp_path: Path) -> None:
    path = with_parts(tmp_path, a=f"{PART}[defaults]\njobs = 5\n")

    with pytest.raises(ConfigurationError, match=r"`defaults` belongs into resourcesync\.toml"):
        read(path)


def test_a_mistake_in_a_part_is_reported_with_its_file_and_line(tmp_path: Path) -> None:
    configuration = MirrorConfiguration(
        read(with_parts(tmp_path, a=f'{PART}evrey = "1h"\n{SECRET}'))
    )

    [error] = configuration.problems()

    assert error.evidence == (("file", f"{tmp_path}/mirrors.d/a.toml:5"),)


@pytest.mark.parametrize("reason", ["it is not", "No such"])
def test_a_part_that_is_no_toml_or_leads_nowhere_is_named(tmp_path: Path, reason: str) -> None:
    path = with_parts(tmp_path, a=PART + SECRET, b="[mirror.two" if reason == "it is not" else "")
    (tmp_path / "mirrors.d" / "b.toml").rename(tmp_path / "mirrors.d" / "gone.toml")
    if reason == "No such":
        (tmp_path / "mirrors.d" / "gone.toml").unlink()
        (tmp_path / "mirrors.d" / "gone.toml").symlink_to("nowhere.toml")

    with pytest.raises(ConfigurationError, match=rf"gone\.toml cannot be used: {reason}"):
        read(path)


FOLDERS = st.dictionaries(
    st.sampled_from("ABCDEF"),
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3).map(lambda names: Path("/", *names)),
)


def pairwise_overlaps(folders: Mapping[str, Path]) -> set[str]:
    return {
        one
        for one, two in permutations(folders, 2)
        if folders[one].is_relative_to(folders[two]) or folders[two].is_relative_to(folders[one])
    }


@given(FOLDERS)
def test_folders_overlap_if_one_is_or_contains_another(folders: dict[str, Path]) -> None:
    found = find_overlaps(folders)

    assert found.keys() == pairwise_overlaps(folders)
    for name, text in found.items():
        words, _, other = text.partition(" the folder of [mirror.")
        other = other.partition("]")[0]
        assert other != name
        mine, theirs = folders[name], folders[other]
        assert {
            "is": mine == theirs,
            "is inside": theirs in mine.parents,
            "contains": mine in theirs.parents,
        }[words]
