"""Links of resources by rule of the publisher (§14).

A rule is a relation and a template of an address, such as ``describedby:{path}.xml only=*.pdf``:
see ``docs/how-to/publish-a-folder.md``. The result is resolved against the base.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from string import Formatter
from typing import Final
from urllib.parse import unquote, urljoin

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.recording import CatalogueRecording
from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import LAST_PRIORITY, Link, Resource
from resourcesync.model.globs import normal_path, parse_glob
from resourcesync.model.vocabulary import Relation
from resourcesync.ports.originals import Original, Originals, WrappedOriginals

_FIELDS: Final = frozenset({"uri", "path", "dir", "name", "stem", "ext"})
_NAME: Final = re.compile(r"[a-z][a-z0-9.-]*")
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+")
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/|\{uri\}")
_DOCUMENT_RELATIONS: Final = frozenset(
    {
        Relation.UP, Relation.INDEX, Relation.CONTENTS, Relation.ARCHIVES, Relation.HUB,
        Relation.SELF, Relation.RESOURCESYNC, Relation.PATCH,
    }
)  # fmt: skip
"""Relations of a document's place, or of one version of a resource: no rule can express them."""


_OF_NO_FILE: Final = frozenset({Relation.CANONICAL, Relation.COLLECTION})
"""Relations whose targets are no files as a rule: an address of several formats, a collection."""


_OF_VERSIONS: Final = frozenset({Relation.MEMENTO, Relation.TIMEGATE, Relation.TIMEMAP})
"""Relations of the links that follow those of the rules."""


class LinkRule(msgspec.Struct, frozen=True, kw_only=True):
    """A link that a rule gives to resources."""

    relation: str
    template: str  # the address, with fields
    only: str = ""  # a glob of the path below the base; empty for all
    media_type: str = ""
    priority: int | None = None
    always: bool = False  # also where the target would be below the base and no resource
    text: str = ""  # as it was given


def parse_rule(text: str) -> LinkRule:
    """Read a rule: ``REL:TEMPLATE [only=GLOB] [type=MIME] [pri=N] [always]``.

    A relation that is a URI is followed by a blank instead of a colon.
    """
    head, *words = text.split() or [""]
    relation, _, template = head.partition(":")
    if _URI.fullmatch(head):
        relation, template = head, words.pop(0) if words else ""
    if not template or (relation != head and not _NAME.fullmatch(relation)):
        raise _rule_error(text, "it does not have the form REL:TEMPLATE")
    if relation in _DOCUMENT_RELATIONS:
        raise _rule_error(text, f"{relation} cannot be the relation of a rule")
    rule = LinkRule(
        relation=relation,
        template=_checked(text, template),
        always=relation in _OF_NO_FILE,
        text=text,
    )
    return _with_options(rule, text, words)


def _with_options(rule: LinkRule, text: str, words: Sequence[str]) -> LinkRule:
    for word in words:
        name, _, value = word.partition("=")
        if word == "always":
            rule = replace(rule, always=True)
        elif name == "only" and value:
            parse_glob(value)
            rule = replace(rule, only=value)
        elif name == "type" and "/" in value:
            rule = replace(rule, media_type=value)
        elif name == "pri" and value.isdecimal() and 1 <= int(value) <= LAST_PRIORITY:
            rule = replace(rule, priority=int(value))
        else:
            raise _rule_error(text, f"{word!r} is not understood")
    return rule


def _checked(text: str, template: str) -> str:
    try:
        parts = [item for item in Formatter().parse(template) if item[1] is not None]
    except ValueError as error:
        raise _rule_error(text, "its braces do not match") from error
    if any(name not in _FIELDS or form or turn for _, name, form, turn in parts):
        raise _rule_error(text, f"its fields can be {', '.join(sorted(_FIELDS))}")
    return template


def _rule_error(text: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{text!r} is not a link rule: {reason}",
        hint="write it such as 'describedby:{path}.xml only=*.pdf'",
    )


def links_by_rule(
    resource: Resource, rules: Iterable[LinkRule], base: str, exists: Callable[[str], bool]
) -> tuple[Link, ...]:
    """Return the links that rules give a resource, in their order."""
    path = resource.uri.removeprefix(base)
    found: list[Link] = []
    for rule in rules:
        if rule.only and not parse_glob(rule.only).matches(normal_path(unquote(path)), None):
            continue
        href = rule.template.format_map(_fields(resource.uri, path))
        # A name such as urn:x.pdf must not become an absolute address.
        href = urljoin(base, href if _ABSOLUTE.match(rule.template) else f"./{href}")
        if href == resource.uri and rule.relation != Relation.DUPLICATE:
            continue
        if href.startswith(base) and not rule.always and not exists(href):
            continue
        found.append(
            Link(rel=rule.relation, href=href, media_type=rule.media_type, priority=rule.priority)
        )
    return tuple(found)


def _ending(template: str) -> str:
    name = template.rpartition("}")[2].rpartition("/")[2]
    return "" if name in {".", ".."} else name


def _fields(uri: str, path: str) -> dict[str, str]:
    folder, _, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    return {
        "uri": uri,
        "path": path,
        "dir": f"{folder}/" if folder else "",
        "name": name,
        "stem": stem if dot else name,
        "ext": f".{ending}" if dot else "",
    }


class LinkedOriginals(WrappedOriginals):
    """Originals with the links that rules give to their resources (``Originals``).

    The links are computed when a resource is read, and again when a possible target comes or goes.
    """

    def __init__(self, originals: Originals, rules: Sequence[LinkRule], base: str) -> None:
        super().__init__(originals)
        self._rules = tuple(rules)
        self._base = base if base.endswith("/") else base + "/"
        self._useless: dict[str, bool] = {}
        self._endings = tuple({_ending(rule.template) for rule in rules if not rule.always})

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read the bytes once; return the resource with its links, and its fingerprint."""
        resource, fingerprint = self._originals.measure(original)
        links: list[Link] = []
        for rule in self._rules:
            found = links_by_rule(resource, [rule], self._base, self._exists)
            self._useless[rule.text] = self._useless.get(rule.text, True) and not found
            links += found
        return replace(resource, links=(*resource.links, *links)), fingerprint

    def relink(self, recording: CatalogueRecording) -> int:
        """Record as updated what links to targets that came or went; return how many."""
        if not any(uri.endswith(self._endings) for uri in recording.created_and_deleted()):
            return 0
        count = 0
        for resource, fingerprint in recording.resources():
            links = self._present_links(resource, recording.has_resource)
            if links != resource.links:
                recording.updated(replace(resource, links=links), fingerprint)
                count += 1
        return count

    def _present_links(
        self, resource: Resource, is_published: Callable[[str], bool]
    ) -> tuple[Link, ...]:
        possible = links_by_rule(resource, self._rules, self._base, lambda _: True)
        found = links_by_rule(resource, self._rules, self._base, is_published)
        if not possible or found == tuple(link for link in resource.links if link in possible):
            return resource.links
        others = [link for link in resource.links if link not in possible]
        place = next(
            (at for at, link in enumerate(others) if link.rel in _OF_VERSIONS), len(others)
        )
        return (*others[:place], *found, *others[place:])

    def unmatched(self) -> tuple[str, ...]:
        """Return the rules that gave no resource a link."""
        return tuple(text for text, is_useless in self._useless.items() if is_useless)

    def _exists(self, uri: str) -> bool:
        stream = self._originals.open(uri)
        if stream is None:
            return False
        stream.close()
        return True
