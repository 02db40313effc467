"""The sets of resources that a Source offers, and the choice of one (§4, §8).

Each set has a Capability List of its own. Only the operator knows which is wanted, so none is ever
chosen by guessing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import astuple, replace

from resourcesync.errors import ConfigurationError, Evidence, quoted
from resourcesync.model.timestamps import Microseconds
from resourcesync.model.vocabulary import Dialect

_UNPLAIN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ENDING: Final = re.compile(r"(?:\.xml|\.txt)?(?:\.gz)?\Z", re.IGNORECASE)
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z)", re.IGNORECASE)
_MAX_NAME: Final = 60
_SHOWN: Final = 20


class SourceLists(msgspec.Struct, frozen=True, kw_only=True):
    """The lists that discovery found.

    Attributes:
        entry: The document that answered first, after redirects.
        dialect: Dialect of that document.
        description: The Source Description, if there is one.
        capability_list: The Capability List of the set, if there is one.
        resource_list: The Resource List, its index, or a plain sitemap; ``None`` if there is none.
        change_list: The Change List or its index, or an archive where there is nothing else;
            ``None`` if there is none.
        is_sitemap: True if ``resource_list`` is a plain sitemap: it promises less.
        resource_dump: The Resource Dump or its index; ``None`` if there is none.
        change_dump: The Change Dump or its index; ``None`` if there is none.
        change_list_archive: The archive of Change Lists; ``None`` if none is offered.
        change_dump_archive: The archive of Change Dumps; ``None`` if none is offered.
        monitor: The Change List that leads to all of the Resource List, as the Source says by a
            link ``monitor``; ``None`` if it does not.
        monitored_since: The moment from which it does, in microseconds.
        road: The way to the entry, in words; empty when it is the address itself.
        unanswered: An address where better lists may be, and why it could not be looked at: the
            server failed, or its robots.txt disallows it. Empty if there is none.
        superseded_by: The Capability List of the lists that took the place of an archived one,
            which is followed alone; empty if the lists are those of the present.
    """

    entry: str
    dialect: Dialect
    description: str | None = None
    capability_list: str | None = None
    resource_list: str | None = None
    change_list: str | None = None
    is_sitemap: bool = False
    resource_dump: str | None = None
    change_dump: str | None = None
    change_list_archive: str | None = None
    change_dump_archive: str | None = None
    monitor: str | None = None
    monitored_since: Microseconds | None = None
    road: str = ""
    unanswered: str = ""
    superseded_by: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceLists) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[object, ...]:
        return astuple(replace(self, road="", unanswered=""))

    @property
    def set_uri(self) -> str:
        """Identity of this set among those of the Source."""
        return self.documents[0]

    @property
    def documents(self) -> tuple[str, ...]:
        """All that was found of the set, the Capability List first; the entry if that is all."""
        lists = (self.capability_list, self.resource_list, self.change_list)
        dumps = (self.resource_dump, self.change_dump)
        return tuple(uri for uri in (*lists, *dumps) if uri) or (self.entry,)


class OfferedSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set of resources that a Source offers.

    Attributes:
        uri: Its Capability List; of a site without one, its sitemap.
        described_by: A document about the set; empty when the Source names none.
    """

    uri: str
    described_by: str = ""


class SetChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of a set where a Source offers several.

    ``requested`` is a URI, a name or a number; ``pinned`` the set followed so far, which no other
    can replace if ``is_bound``. ``folder`` is for the commands that an error shows, and
    ``is_moved`` if they are those of a move.
    """

    requested: str = ""
    pinned: str = ""
    is_bound: bool = False
    folder: str = ""
    is_moved: bool = False


ANY: Final = SetChoice()
"""No choice: a Source with several sets is an error that lists them."""


def names_of(offered: Sequence[OfferedSet]) -> tuple[str, ...]:
    """Return a name for each set: safe as the name of a folder, no two alike.

    It is the last folder of the set's URI; where those are alike or missing, the file's name, or
    both; else a number.
    """
    places = [_place(offered_set.uri) for offered_set in offered]
    folders = [_safe_name(folder) for folder, _ in places]
    files = [_safe_name(file) for _, file in places]
    both = [_safe_name(f"{folder}-{file}") for folder, file in places]
    for names in (folders, files, both):
        if all(names) and len({name.lower() for name in names}) == len(names):
            return tuple(names)
    return tuple(f"set-{number}" for number in range(1, len(offered) + 1))


def _place(uri: str) -> tuple[str, str]:
    try:
        path = unquote(urlsplit(uri).path)
    except ValueError:
        return "", ""
    folders, _, file = path.rpartition("/")
    folders = folders.removesuffix("/resourcesync") or folders
    return folders.rpartition("/")[2], _ENDING.sub("", file, count=1)


def _safe_name(text: str) -> str:
    name = _UNPLAIN.sub("-", text).strip(".-")[:_MAX_NAME].strip(".-")
    return f"set-{name}" if _DEVICE.match(name) else name


def choose(offered: Sequence[OfferedSet], choice: SetChoice, address: str) -> OfferedSet:
    """Return the set that is meant: of several, the only one below a path that was given."""
    if choice.requested and not (choice.is_bound and choice.requested == choice.pinned):
        return _matching(offered, choice, address)
    for offered_set in offered:
        if offered_set.uri == choice.pinned:
            return offered_set
    if choice.is_bound:
        raise ConfigurationError(
            "this Source no longer offers the set that this mirror follows",
            evidence=(("here", choice.pinned), *_shown(offered)),
            hint="pull another set into another folder",
            code="set-gone",
        )
    below = () if choice.pinned else tuple(_below(offered, address))
    if len(offered) == 1 or len(below) == 1:
        return (below or offered)[0]
    more = "" if choice.is_moved else "; or all of them: --all-sets"
    raise ConfigurationError(
        f"this Source offers {len(offered)} sets of resources",
        evidence=(*_shown(offered), *_commands(offered, choice, address)),
        hint="give the address of one of them instead"
        if not choice.folder
        else f"choose one of them: --set NAME{more}",
        code="several-sets",
    )


def _below(offered: Sequence[OfferedSet], address: str) -> Iterator[OfferedSet]:
    folder = f"{address.rstrip('/')}/"
    if urlsplit(folder).path != "/":
        yield from (each for each in offered if each.uri.startswith(folder))


def _matching(offered: Sequence[OfferedSet], choice: SetChoice, address: str) -> OfferedSet:
    word = choice.requested
    for offered_set in offered:
        if offered_set.uri == word:
            return offered_set
    for names in (names_of(offered), [_place(offered_set.uri)[0] for offered_set in offered]):
        found = [i for i, name in enumerate(names) if name.lower() == word.lower()]
        if len(found) == 1:
            return offered[found[0]]
    if word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= len(offered):
        return offered[int(word[:9]) - 1]
    raise ConfigurationError(
        f"this Source offers no set {word[:200]!r}",
        evidence=(*_shown(offered), *_commands(offered, choice, address)),
        hint="name it by its URI, or by its name or number in this list: --set NAME",
        code="no-such-set",
    )


def _shown(offered: Sequence[OfferedSet]) -> Evidence:
    names = names_of(offered)
    lines: list[tuple[str, str]] = []
    for number, (name, offered_set) in enumerate(zip(names, offered, strict=True), start=1):
        about = f", described by {offered_set.described_by}" if offered_set.described_by else ""
        lines.append(("set", f"{number}  {name}  {offered_set.uri}{about}"))
    more = len(lines) - _SHOWN
    if more > 0:
        lines[_SHOWN:] = [("set", f"and {more} more")]
    return tuple(lines)


def _commands(offered: Sequence[OfferedSet], choice: SetChoice, address: str) -> Evidence:
    if not choice.folder:
        return ()
    source, folder = quoted(address, "https://HOST/"), quoted(choice.folder, "DIR")
    places = f"{folder} --moved {source}" if choice.is_moved else f"{source} {folder}"
    sets = [f"--set {quoted(name, 'NAME')}" for name in names_of(offered)[:_SHOWN]]
    sets += [] if choice.is_moved else ["--all-sets"]
    return tuple(("run", f"resourcesync pull {places} {option}") for option in sets)
