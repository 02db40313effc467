"""What two readers can read in two ways is never read as if it were sound."""

import pytest

from resourcesync.errors import PackageError
from tests.support.documents.ambiguous_zips import BODY, CASES, CLASSES
from tests.support.documents.packages import Forged, forge, listed, manifest, unpack


def test_there_are_fourteen_classes_and_a_sound_package_is_read() -> None:
    sound = forge(Forged(b"manifest.xml", manifest(listed("/a"))), Forged(b"a", BODY))

    assert len(CLASSES) == 14
    assert unpack(sound).given == [("http://h/a", BODY)]


@pytest.mark.parametrize("name", CASES)
def test_what_can_be_read_in_two_ways_is_refused_or_its_member_is(name: str) -> None:
    try:
        contents = unpack(CASES[name])
    except PackageError:
        return
    if contents.given:  # a name is compared as it is, and is no path: the others are other members
        assert name.startswith("B3")
        assert contents.given == [("http://h/a", BODY)]
        assert len(contents.unlisted) == 1
    else:
        assert [uri for uri, _ in contents.faults] == ["http://h/a"]
