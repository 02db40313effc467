"""Laws of the mapping ``tree``: files have the names that their URIs say, but where two clash."""

import re
import unicodedata
from collections.abc import Iterable
from random import Random
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.destination.mapping import MAX_PATH, FileSystemProfile
from resourcesync.destination.mapping.escapes import EscapedMapping
from resourcesync.destination.mapping.names import NameMapping
from resourcesync.destination.path_assignment import relocated_uris
from resourcesync.discovery.uris import normalise
from resourcesync.errors import OutOfScopeError
from resourcesync.ports import is_copy_path
from tests.support.documents.hostile_uris import BASE, ancestors, hostile_uris, seeded_uris

LAWFUL = settings(max_examples=150)
PROFILES = list(FileSystemProfile)
# Few pieces, so that sets of them clash in every way.
CLASHING = st.lists(
    st.builds(
        lambda names, slash: BASE + "/".join(names) + slash,
        st.lists(
            st.sampled_from(
                ["a", "A", "b", "a+b", "a%2Bb", "index.html", "%C3%A9", "e%CC%81", "a!9", "a-b"]
            ),
            min_size=1,
            max_size=3,
        ),
        st.sampled_from(["", "/"]),
    ),
    max_size=14,
)


def seen(path: str, profile: FileSystemProfile) -> str:
    """A path as the least discerning file system of its kind sees it."""
    if profile is FileSystemProfile.POSIX:
        return path
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def unlike(name: str) -> str:
    """A name as a file system sees it that drops and folds all that any of them does."""
    name = name.partition(":")[0].rstrip(". ")
    letters = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cf")


def accepted(uris: Iterable[str]) -> list[str]:
    found = []
    for uri in uris:
        try:
            found.append(normalise(uri))
        except OutOfScopeError:
            continue
    return sorted(set(found))


def mapping_of(
    uris: Iterable[str], profile: FileSystemProfile, base: str = BASE, *, pages: bool = False
) -> NameMapping:
    free = NameMapping(base=base, profile=profile, pages=pages)
    named = sorted((free.key(free.preferred_path(uri)), uri) for uri in uris)
    return replace(free, relocated=frozenset(relocated_uris(named)))


def assert_safe(path: str, profile: FileSystemProfile) -> None:
    assert 0 < len(path.encode()) <= MAX_PATH
    names = path.split("/")
    for name in names:
        assert unlike(name) != ".resourcesync"
        assert name not in ("", ".", "..")
        assert len(name.encode()) <= 255
        assert not set("\0\\").intersection(name)
        assert name.isprintable()
        if profile is FileSystemProfile.PORTABLE:
            assert not set(':*?"<>|').intersection(name)
            assert not name.endswith((".", " "))
            assert name.casefold().partition(".")[0] not in ("con", "prn", "aux", "nul", "com1")


def assert_laws(
    uris: Iterable[str], profile: FileSystemProfile, base: str = BASE, *, pages: bool = False
) -> int:
    good = accepted(uris)
    mapping = mapping_of(good, profile, base, pages=pages)
    owners: dict[str, str] = {}
    for uri in good:
        path = mapping.path(uri)
        assert_safe(path, profile)
        assert owners.setdefault(seen(path, profile), uri) == uri, (path, uri)
        if uri not in mapping.relocated:
            assert path == mapping.preferred_path(uri)
    folders = {folder for path in owners for folder in ancestors(path)}
    assert not folders & owners.keys()
    return len(good)


@settings(max_examples=300)
@given(
    uris=st.lists(hostile_uris(), max_size=12) | CLASHING,
    profile=st.sampled_from(PROFILES),
    pages=st.booleans(),
)
def test_no_two_uris_share_a_path_and_none_is_inside_another(
    uris: list[str], profile: FileSystemProfile, *, pages: bool
) -> None:
    assert_laws(uris, profile, pages=pages)


def test_pages_without_an_ending_are_folders_that_every_server_serves() -> None:
    mapping = NameMapping(base=BASE, profile=FileSystemProfile.POSIX, pages=True)
    paths = {
        "": "index.html",
        "docs": "docs/index.html",
        "docs/": "docs/index.html",
        "docs/v1.2": "docs/v1.2/index.html",
        "docs/intro": "docs/intro/index.html",
        "a.html": "a.html",
        "feed.xml": "feed.xml",
        "q?x=1": "q!3fx=1",
    }

    assert {name: mapping.path(BASE + name) for name in paths} == paths
    assert mapping.uris("docs/index.html") == [
        f"{BASE}{n}" for n in ("docs", "docs/index.html", "docs/")
    ]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("base", [BASE, f"{BASE}data/"])
def test_twenty_thousand_hostile_uris_keep_the_laws(base: str, profile: FileSystemProfile) -> None:
    uris = seeded_uris(len(base) + 10 * (profile is FileSystemProfile.POSIX), 5_000)

    assert assert_laws(uris, profile, base) > 2_000


@LAWFUL
@given(CLASHING, st.sampled_from(PROFILES), st.integers(0, 99))
def test_who_yields_depends_on_the_set_alone_and_is_somebody_for_whom_another_is_there(
    uris: list[str], profile: FileSystemProfile, seed: int
) -> None:
    good = accepted(uris)
    shuffled = Random(seed).sample(good, len(good))
    mapping = mapping_of(good, profile)
    keys = [mapping.key(mapping.preferred_path(uri)) for uri in good]

    assert mapping.relocated == mapping_of(shuffled, profile).relocated
    for uri in mapping.relocated:
        key = mapping.key(mapping.preferred_path(uri))
        assert keys.count(key) > 1 or any(other.startswith(f"{key}/") for other in keys)


# The own folder's name, each letter in the forms that some file system does not tell from it.
LIKE_OWN = st.builds(
    lambda letters, end: quote("".join(letters) + end),
    st.tuples(
        *(
            st.sampled_from(
                [
                    letter,
                    letter.upper(),
                    chr(ord(letter) + 0xFEE0),
                    f"{letter}\xad",
                    f"\u200c{letter}",
                ]
            )
            for letter in ".resourcesync"
        )
    ),
    st.sampled_from(["", "", ".", " ", ". .", ":x", "::$DATA"]),
)


@LAWFUL
@given(
    st.lists(st.one_of(LIKE_OWN, st.sampled_from(["a", "RESOUR~1", ""])), min_size=1, max_size=4),
    st.sampled_from(PROFILES),
)
def test_no_path_has_a_name_that_a_file_system_takes_for_the_own_folder(
    names: list[str], profile: FileSystemProfile
) -> None:
    uri = BASE + "/".join(names)
    for normal in accepted([uri, f"{uri}?x"]):
        mapping = NameMapping(base=BASE, profile=profile)
        path = mapping.path(normal)

        found = path.split("/")
        assert ".resourcesync" not in map(unlike, found)
        assert not any(re.match(r"(?i)resour~1", name) for name in found)
        assert is_copy_path(path)
        assert is_copy_path(EscapedMapping(base=BASE, profile=profile).path(normal))
        assert mapping.uris(path)


@LAWFUL
@given(hostile_uris(), st.sampled_from(PROFILES))
def test_every_path_leads_back_to_its_uri_unless_another_spelling_says_the_same(
    uri: str, profile: FileSystemProfile
) -> None:
    for normal in accepted([uri]):
        mapping = NameMapping(base=BASE, profile=profile)
        path = mapping.path(normal)
        assert mapping.path(uri) == path == mapping.preferred_path(normal)
        found = mapping.uris(path)
        assert all(mapping.path(name) == path for name in found)
        if normal not in found and not path.startswith("!7/") and "/!7/" not in path:
            assert (
                not found
                or unquote(found[0]) == unquote(normal)
                or profile is FileSystemProfile.PORTABLE
            )


@LAWFUL
@given(
    st.lists(
        st.text(
            st.characters(min_codepoint=0x20, max_codepoint=0x24F, exclude_characters="/\\\x7f"),
            min_size=1,
            max_size=12,
        ).filter(lambda name: name.isprintable() and name.strip(".") and "!" not in name),
        min_size=1,
        max_size=4,
    )
)
def test_the_names_of_a_tree_come_back_as_they_were(names: list[str]) -> None:
    uri = BASE + "/".join(quote(name) for name in names)
    path = NameMapping(base=BASE, profile=FileSystemProfile.POSIX).path(uri)

    like_escapes = any("%" in name for name in names)
    assert path == "/".join(names) or like_escapes or not is_copy_path("/".join(names))
