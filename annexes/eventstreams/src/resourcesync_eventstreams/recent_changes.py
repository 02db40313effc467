"""Events of the stream ``recentchange`` of Wikimedia EventStreams, as changes of pages. Pure.

Their fields are described at https://www.mediawiki.org/wiki/Manual:RCFeed and
https://schema.wikimedia.org (``mediawiki/recentchange``). An event names a page, never its bytes:
``length`` is that of the wikitext, not of the representation at the URI, so it is left out.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec

from resourcesync.errors import ConfigurationError, DiscontinuityError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.timestamps import format_w3c, from_microseconds, parse_w3c
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.originals import Omission
from resourcesync_eventstreams.event_stream import ServerSentEvent
from resourcesync_eventstreams.pending_changes import DecodedEvent, printable

GAPS: Final = "gaps"
"""The key by which an operator accepts lost changes."""
ACCEPTED: Final = "accept"
KEYS: Final = frozenset({"wiki", "namespace", "uri", "since"})
_CANARY: Final = "canary"
_NAMES: Final = ("wiki", "title", "namespace", "server_name", "server_url")
_LONGEST_GAP: Final = timedelta(hours=2)
"""Canary events come each hour, so a whole stream is never silent for longer."""
_KINDS: Final = {"new": ChangeKind.CREATED, "edit": ChangeKind.UPDATED}
_LOGGED: Final = {
    ("delete", "delete"): ChangeKind.DELETED,
    ("delete", "delete_redir"): ChangeKind.DELETED,
    ("delete", "delete_redir2"): ChangeKind.DELETED,
    ("delete", "restore"): ChangeKind.CREATED,
    ("import", "upload"): ChangeKind.CREATED,
    ("import", "interwiki"): ChangeKind.CREATED,
    ("upload", "upload"): ChangeKind.CREATED,
    ("upload", "overwrite"): ChangeKind.UPDATED,
    ("upload", "revert"): ChangeKind.UPDATED,
}
"""Changes of a page, by ``log_type`` and ``log_action``; no others change its bytes."""
_PATH_SAFE: Final = ";@$!*(),/~:-._"
"""Characters that MediaWiki does not escape in the path of a page."""


class _Meta(msgspec.Struct):
    uri: str = ""
    domain: str = ""
    dt: str = ""


class _RecentChange(msgspec.Struct):
    meta: _Meta = msgspec.field(default_factory=_Meta)
    type: str | int = ""
    title: str = ""
    namespace: int = 0
    timestamp: int | None = None
    wiki: str = ""
    server_name: str = ""
    server_url: str = ""
    log_type: str | None = None
    log_action: str | None = None
    log_params: Any = None


_decode: Final = msgspec.json.Decoder(_RecentChange).decode


class RecentChangeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The selection from the stream, and the URIs of pages.

    Attributes:
        wikis: Names such as ``enwiki``; empty for all.
        namespaces: Numbers; empty for all.
        uri: A template of ``{wiki}``, ``{title}`` and the like; empty for the event's own URI.
    """

    wikis: frozenset[str] = frozenset()
    namespaces: frozenset[int] = frozenset()
    uri: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Self:
        """Return the selection by the options of an account."""
        template = values.get("uri", "")
        try:
            template.format_map(dict.fromkeys(_NAMES, ""))
            namespaces = frozenset(map(int, _listed(values.get("namespace", ""))))
        except (ValueError, KeyError, IndexError, AttributeError) as error:
            raise ConfigurationError(
                f"the option uri or namespace cannot be used: {error}",
                hint="there are {server_name}, {server_url}, {namespace} too; write them such as: "
                "--with namespace=0,14 --with uri=https://HOST/{wiki}/{title}",
            ) from error
        if template and "{title}" not in template:
            raise ConfigurationError("the option uri needs {title}, to tell one page from another")
        wikis = frozenset(_listed(values.get("wiki", "")))
        return cls(wikis=wikis, namespaces=namespaces, uri=template)

    def includes(self, namespace: int | None) -> bool:
        """True if pages of a namespace are selected; ``None`` is an unknown one."""
        return not self.namespaces or namespace in self.namespaces


def parse_since(values: Mapping[str, str]) -> datetime | None:
    """Return the time from which the stream is read at first."""
    if "since" not in values:
        return None
    try:
        return parse_w3c(values["since"])
    except ValueError as error:
        raise ConfigurationError(
            f"the option since: {error}", hint="such as 2026-01-31T12:00:00Z"
        ) from error


def decode_recent_change(
    event: ServerSentEvent,
    after: datetime | None,
    *,
    chosen: RecentChangeFilter,
    accept_gaps: bool = False,
) -> DecodedEvent:
    """Return the content of an event of the stream."""
    if event.kind != "message":
        return DecodedEvent((), None)
    try:
        said = _decode(event.data)
        moment = _moment(said)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        return DecodedEvent((Omission(name=printable(event.data), reason=str(error)[:300]),), None)
    if after is not None and moment is not None and not accept_gaps:
        _check_reach(after, moment)
    if said.meta.domain == _CANARY or (chosen.wikis and said.wiki not in chosen.wikis):
        return DecodedEvent((), moment)
    return DecodedEvent(tuple(_changes(said, chosen, moment)), moment)


def _check_reach(last: datetime, then: datetime) -> None:
    if then - last <= _LONGEST_GAP:
        return
    raise DiscontinuityError(
        "the stream does not reach back to the last event read",
        evidence=(
            ("last", format_w3c(last)),
            ("then", format_w3c(then)),
            ("kept", "what was recorded before"),
        ),
        hint=f"to continue without the lost changes, set the option {GAPS}: "
        f"--with {GAPS}={ACCEPTED}",
        code="feed-gap",
    )


def _changes(
    said: _RecentChange, chosen: RecentChangeFilter, moment: datetime | None
) -> Iterator[Change]:
    if said.type == "log" and said.log_type == "move":
        yield from _moved(said, chosen, moment)
        return
    kind = _KINDS.get(str(said.type))
    if said.type == "log":
        kind = _LOGGED.get((said.log_type or "", said.log_action or ""))
    if kind is not None and chosen.includes(said.namespace):
        yield _change(kind, _uri(said, chosen, said.title), moment)


def _moved(
    said: _RecentChange, chosen: RecentChangeFilter, moment: datetime | None
) -> Iterator[Change]:
    """Yield the changes of a move: the old page is gone, unless it becomes a redirect."""
    params = said.log_params if isinstance(said.log_params, dict) else {}
    leads_on = str(params.get("noredir", "0")) in {"0", ""}
    if chosen.includes(said.namespace):
        kind = ChangeKind.UPDATED if leads_on else ChangeKind.DELETED
        yield _change(kind, _uri(said, chosen, said.title), moment)
    target = params.get("target")
    if isinstance(target, str) and target and chosen.includes(_namespace_of(target, said)):
        yield _change(ChangeKind.CREATED, _uri(said, chosen, target), moment)


def _namespace_of(target: str, said: _RecentChange) -> int | None:
    """Return the namespace that a page was moved to, as far as its title shows it."""
    prefix, colon, _ = target.partition(":")
    if not colon:
        return 0
    return said.namespace if said.namespace and said.title.startswith(f"{prefix}:") else None


def _change(kind: ChangeKind, uri: str, moment: datetime | None) -> Change:
    lastmod = None
    if moment is not None and kind is not ChangeKind.DELETED:
        lastmod = moment.replace(microsecond=0)
    return Change(kind=kind, time=moment, resource=Resource(uri=uri, lastmod=lastmod))


def _uri(said: _RecentChange, chosen: RecentChangeFilter, title: str) -> str:
    if chosen.uri:
        return chosen.uri.format_map(
            {
                "wiki": quote(said.wiki, safe=""),
                "title": _quoted(title),
                "namespace": said.namespace,
                "server_name": said.server_name,
                "server_url": said.server_url,
            }
        )
    if title == said.title:
        return said.meta.uri
    base = said.meta.uri.removesuffix(_quoted(said.title))
    if base == said.meta.uri:
        base = f"{said.server_url}/wiki/"
    return base + _quoted(title)


def _quoted(title: str) -> str:
    """Return a title as MediaWiki writes it in a URL."""
    return quote(title.replace(" ", "_"), safe=_PATH_SAFE)


def _moment(said: _RecentChange) -> datetime | None:
    if said.meta.dt:
        return parse_w3c(said.meta.dt)
    return None if said.timestamp is None else from_microseconds(said.timestamp * 1_000_000)


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
