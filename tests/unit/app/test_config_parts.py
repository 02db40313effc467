"""A configuration in several files: the file, and ``mirrors.d/*.toml`` beside it."""

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.app.configured_mirrors import MirrorConfiguration, find_overlaps
from resourcesync.errors import ConfigurationError
from resourcesync.settings.config_file import read

MAIN = '[defaults]\njobs = 4\n[mirror.one]\nsource = "https://a.example/"\ndest = "one"\n'
PART = '[mirror.two]\nsource = "https://b.example/"\ndest = "two"\nauth = "key"\n'
SECRET = '[auth.key]\ntype = "bearer"\ntoken = { env = "KEY" }\n'


def put(folder: Path, **parts: str) -> Path:
    (folder / "mirrors.d").mkdir()
    for name, text in parts.items():
        (folder / "mirrors.d" / f"{name}.toml").write_text(text)
    (folder / "resourcesync.toml").write_text(MAIN)
    return folder / "resourcesync.toml"


def test_the_parts_are_read_after_the_file_in_the_order_of_their_names(tmp_path: Path) -> None:
    three = PART.replace("two", "three")
    configuration = MirrorConfiguration(read(put(tmp_path, b=three, a=PART + SECRET)))

    assert configuration.names == ("one", "two", "three")
    assert configuration.mirror("two").settings["jobs"].value == 4
    assert configuration.mirror("two").dest == tmp_path / "two"
    assert configuration.mirror("two").settings["source"].origin.endswith("mirrors.d/a.toml:2")
    assert list(configuration.problems()) == []


def test_a_name_in_two_files_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = put(tmp_path, a=PART, b=f"# again\n{PART}")

    with pytest.raises(ConfigurationError, match=r"`two` in \[mirror\] is in .*a\.toml:1 too") as e:
        read(path)
    assert e.value.evidence == (("file", f"{tmp_path}/mirrors.d/b.toml:2"),)


def test_what_is_for_all_mirrors_may_only_be_in_the_file(tmp_path: Path) -> None:
    path = put(tmp_path, a=f"{PART}[defaults]\njobs = 5\n")

    with pytest.raises(ConfigurationError, match=r"`defaults` belongs into resourcesync\.toml"):
        read(path)


def test_a_mistake_in_a_part_is_reported_with_its_file_and_line(tmp_path: Path) -> None:
    configuration = MirrorConfiguration(read(put(tmp_path, a=f'{PART}evrey = "1h"\n{SECRET}')))

    [error] = configuration.problems()

    assert error.evidence == (("file", f"{tmp_path}/mirrors.d/a.toml:5"),)


@pytest.mark.parametrize("reason", ["it is not", "No such"])
def test_a_part_that_is_no_toml_or_leads_nowhere_is_named(tmp_path: Path, reason: str) -> None:
    path = put(tmp_path, a=PART + SECRET, b="[mirror.two" if reason == "it is not" else "")
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
