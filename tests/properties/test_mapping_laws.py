"""Laws of the mapping by escapes, which rules use, on hostile URIs."""

import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.escapes import EscapedMapping
from resourcesync.discovery.uris import normalise, origin
from resourcesync.errors import OutOfScopeError
from tests.support.documents.hostile_uris import (
    BASE,
    ancestors,
    assert_safe,
    hostile_uris,
    seeded_uris,
)

LAWFUL = settings(max_examples=75)
BASES = (BASE, f"{BASE}data/", f"{BASE}v1.0/A/", "http://con/")


def accepted(uris: Iterable[str]) -> dict[str, str]:
    """The URIs that are not refused, with their normal forms."""
    normal = {}
    for uri in uris:
        try:
            normal[uri] = normalise(uri)
        except OutOfScopeError:
            continue
    return normal


def assert_laws(mapping: EscapedMapping, uris: Iterable[str]) -> int:
    """Check every law that speaks of a set of URIs; return how many were accepted."""
    is_folded = mapping.profile is FileSystemProfile.PORTABLE  # as by some file systems
    owners: dict[str, str] = {}
    normal = accepted(uris)
    for uri, norm in normal.items():
        path = mapping.path(uri)
        assert_safe(path)
        seen = unicodedata.normalize("NFC", path.casefold()) if is_folded else path
        assert owners.setdefault(seen, norm) == norm, (path, norm)
        if not {"!7"}.intersection(path.split("/")):
            assert mapping.uri(path) == norm
        else:
            assert mapping.uri(path) is None
    folders = {folder for path in owners for folder in ancestors(path)}
    assert not folders & owners.keys()
    return len(normal)


@pytest.mark.parametrize("profile", FileSystemProfile)
@pytest.mark.parametrize("base", BASES)
def test_twenty_thousand_hostile_uris_keep_the_laws(base: str, profile: FileSystemProfile) -> None:
    uris = list(seeded_uris(BASES.index(base) + 10 * (profile is FileSystemProfile.POSIX), 2_500))

    count = assert_laws(EscapedMapping(base=base, profile=profile), uris)

    assert count > 1_000


@LAWFUL
@given(hostile_uris(), st.sampled_from(list(FileSystemProfile)))
def test_equivalent_spellings_share_one_place_and_what_is_no_uri_has_none(
    uri: str, profile: FileSystemProfile
) -> None:
    mapping = EscapedMapping(base=BASE, profile=profile)
    for normal in accepted([uri]).values():
        assert normalise(normal) == normal
        assert normal.isascii()
        assert normal.startswith(f"{origin(uri)}/")
        assert origin(normal) == origin(uri)
        assert mapping.path(uri) == mapping.path(normal)
        return
    with pytest.raises(OutOfScopeError):
        mapping.path(uri)


NAMES = st.one_of(
    st.sampled_from(
        [
            *("", ".", "..", "!0", "!1", "a!1", "!6", "http", "a.example", "!7", "a!8", "v1.0"),
            "a.b!8",
            *("x.html", "a!9", "!9", "!3f!9", "!41", "!zz", "%41", "%c3", "CON", "é.x", "a\0.x"),
        ]
    ),
    st.text(max_size=6),
)


@LAWFUL
@given(st.lists(NAMES, max_size=6).map("/".join), st.sampled_from(list(FileSystemProfile)))
def test_a_path_that_is_no_place_has_no_uri(path: str, profile: FileSystemProfile) -> None:
    mapping = EscapedMapping(base=BASE, profile=profile)

    uri = mapping.uri(path)

    assert uri is None or mapping.path(uri) == path
