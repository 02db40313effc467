"""Which names some file system takes for a mirror's own folder."""

from urllib.parse import quote

import pytest

from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.names import NameMapping
from resourcesync.model.own_names import has_own_name
from resourcesync.ports import is_copy_path

BASE = "https://museum.example/"
OWN = [
    ".resourcesync",
    ".ReSourceSync",
    ".RESOURCESYNC",
    ".resourcesync.",  # Windows drops dots and blanks at the end
    ".resourcesync. .",
    ".resourcesync:stream",  # a stream of the same file in NTFS
    ".resourcesync::$INDEX_ALLOCATION",
    "RESOUR~1",  # its short name in FAT and NTFS, and that after many of one beginning
    "re4f2a~1",
    ".re\u017fourcesync",  # the long s is an s without case
    ".resource\u00adsync",  # ext4 without case ignores it
    "\u200c.resourcesync",  # HFS+ ignores it
    ".resourcesync\ufeff",
    "\uff0eresourcesync",  # a code page has a dot for it
    ".\uff32esourcesync",
    "\u115f.\u3164r\ufe0fesourcesync",
]


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("folder", ["", "a/", "a/b/c/"])
@pytest.mark.parametrize("profile", FileSystemProfile)
def test_no_path_has_a_name_of_the_own_folder_and_each_leads_back(
    profile: FileSystemProfile, folder: str, name: str
) -> None:
    mapping = NameMapping(base=BASE, profile=profile)
    for tail in (f"{folder}{quote(name)}", f"{folder}{quote(name)}/state.db"):
        path = mapping.path(BASE + tail)

        assert not has_own_name(path)
        assert mapping.path(mapping.uri(path) or "") == path
    assert has_own_name(name)
    assert not is_copy_path(f"{folder}{name}")
    assert not is_copy_path(f"{folder}{name}/state.db")
