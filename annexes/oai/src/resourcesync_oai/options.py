"""Options of a repository: keys and their values."""

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from fnmatch import translate
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import format_w3c
from resourcesync_oai.documents.item_metadata import ItemMetadata, MetadataFile
from resourcesync_oai.documents.records import parse_datestamp

_ADDRESS: Final = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?", re.IGNORECASE)
_DURATION: Final = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_FREQUENCIES: Final = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
CLOSED: Final = (
    "info:eu-repo/semantics/closedAccess",
    "info:eu-repo/semantics/restrictedAccess",
    "info:eu-repo/semantics/embargoedAccess",
    "http*://purl.org/coar/access_right/c_14cb",
    "http*://purl.org/coar/access_right/c_16ec",
    "http*://purl.org/coar/access_right/c_f1cf",
    "restricted",
    "embargo",
    "metadata.only",
)
"""Texts in the metadata of an item that mark its files as not public: the terms of OpenAIRE, the
concepts of COAR (metadata only, restricted, embargoed), and DSpace's own."""


class OaiOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a repository: what is published, and how it is harvested.

    Attributes:
        endpoint: The base URL of the provider.
        prefixes: Formats to publish; empty for all that the provider lists.
        sets: ``setSpec`` of the sets to publish; empty for everything.
        begin: Only records of this datestamp or later; empty for all.
        files: Patterns of the addresses of files; empty for those that metadata lists as files.
        rewrite: A text in the addresses of files, and its replacement; or empty. A ``*`` in the
            first is any text, and a ``*`` in the replacement is that text.
        files_from: Formats read to find files, and not published.
        bundles: Kinds of listed files, such as ``ORIGINAL``; empty for all.
        restricted: Patterns of rights texts that exclude the files of an item.
        measure: Request files by HEAD, for length, media type and access.
        names: ``files`` ends the names of metadata with ``.xml``, ``dspace`` does not.
        collections: The address of a set, with ``{set}`` or ``{handle}`` in it.
        overlap: Seconds before the last harvest for which changes are requested again.
        window: Days of one list of a full harvest; 0 for a single list.
        changefreq: The ``changefreq`` of all resources; empty for none.
    """

    endpoint: str
    prefixes: tuple[str, ...] = ("oai_dc",)
    sets: tuple[str, ...] = ()
    begin: str = ""
    files: tuple[str, ...] = ()
    rewrite: tuple[str, ...] = ()
    files_from: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ("ORIGINAL", "CONTENT")
    restricted: tuple[str, ...] = CLOSED
    measure: bool = False
    names: str = "files"
    collections: str = ""
    overlap: float = 2 * 86_400.0
    window: int = 0
    changefreq: str = ""

    def digest(self, base_uri: str) -> str:
        """Return a text that differs if the published resources would differ."""
        told = [getattr(self, name) for name in self.__struct_fields__ if name not in _NOT_DIGESTED]
        return hashlib.sha256(msgspec.json.encode([base_uri, told])).hexdigest()

    def select_files(self, findings: ItemMetadata) -> tuple[MetadataFile, ...]:
        """Return the files to publish, if they are public."""
        found = (self._rewritten(file) for file in findings.files if self._is_selected(file))
        return tuple({file.uri: file for file in found}.values())

    def is_restricted(self, findings: ItemMetadata) -> bool:
        """True if the metadata marks the files as not public."""
        return any(_matches(self.restricted, text) for text in findings.rights)

    def collection(self, spec: str) -> str:
        """Return the address of a set."""
        if not self.collections:
            joint = "&" if "?" in self.endpoint else "?"
            prefix = self.prefixes[0] if self.prefixes else "oai_dc"
            query = f"verb=ListRecords&metadataPrefix={prefix}&set={_quoted(spec)}"
            return f"{self.endpoint}{joint}{query}"
        handle = re.sub(r"^(?:col|com)_", "", spec).replace("_", "/", 1)
        return self.collections.replace("{set}", _quoted(spec)).replace("{handle}", _quoted(handle))

    def _rewritten(self, file: MetadataFile) -> MetadataFile:
        if not self.rewrite:
            return file
        before, after = self.rewrite
        pattern = re.escape(before).replace(re.escape("*"), "(.*?)", 1)
        return replace(
            file,
            uri=re.sub(pattern, lambda m: after.replace("*", m[m.re.groups]), file.uri, count=1),
        )

    def _is_selected(self, file: MetadataFile) -> bool:
        if not file.is_listed:
            return _matches(self.files, file.uri)
        if file.bundle and self.bundles and file.bundle.upper() not in self.bundles:
            return False
        return not self.files or _matches(self.files, file.uri)


_NOT_DIGESTED: Final = frozenset({"overlap", "window"})


def parse_options(address: str, values: Mapping[str, str]) -> OaiOptions:
    """Return the options of an operator."""
    endpoint = address.partition(":")[2]
    if not _ADDRESS.fullmatch(endpoint):
        shown = re.sub(r"//[^/]*@", "//…@", address)  # no secrets in messages
        raise ConfigurationError(
            f"{shown[:200]} is not an OAI-PMH provider",
            hint="write oai: and the base URL, such as oai:https://repo.example/oai/request",
        )
    chosen: dict[str, object] = {}
    for key, value in values.items():
        if key not in _KEYS:
            raise ConfigurationError(
                f"{key}=… is not known for oai:", hint=f"known: {', '.join(sorted(_KEYS))}"
            )
        name, read = _KEYS[key]
        try:
            chosen[name] = read(value.strip())
        except ValueError as error:
            raise ConfigurationError(f"{key}={value[:100]}: {error}") from None
    return OaiOptions(endpoint=endpoint, **chosen)  # type: ignore[arg-type] # each was read above


def _split_list(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise ValueError("it is empty")
    return found


def _prefixes(text: str) -> tuple[str, ...]:
    return () if text == "*" else _split_list(text)


def _bundles(text: str) -> tuple[str, ...]:
    return () if text == "*" else tuple(word.upper() for word in _split_list(text))


def _restricted(text: str) -> tuple[str, ...]:
    return () if text == "no" else _split_list(text)


def _moment(text: str) -> str:
    found = parse_datestamp(text)
    if found is None:
        raise ValueError("write a day or a time as 2026-01-31 or 2026-01-31T00:00:00Z")
    return format_w3c(found)


def _replacement(text: str) -> tuple[str, ...]:
    before, arrow, after = text.partition("=>")
    if not arrow or not before.strip() or not (before + after).isascii():
        raise ValueError("write OLD=>NEW")
    if before.count("*") > 1 or after.count("*") > before.count("*"):
        raise ValueError("write one * at most in each, and none in NEW alone")
    return before.strip(), after.strip()


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError("write yes or no")
    return text == "yes"


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("write a time such as 12h or 2d")
    return float(int(match[1]) * _UNITS[match[2]])


def _days(text: str) -> int:
    return max(1, round(timedelta(seconds=_seconds(text)) / timedelta(days=1)))


def _template(text: str) -> str:
    if not _ADDRESS.fullmatch(text) or ("{set}" not in text and "{handle}" not in text):
        raise ValueError("write an address with {set} or {handle} in it")
    return text


def _one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"write one of {', '.join(known)}")
        return text

    return read


_KEYS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "prefixes": ("prefixes", _prefixes),
    "sets": ("sets", _split_list),
    "from": ("begin", _moment),
    "files": ("files", _split_list),
    "rewrite": ("rewrite", _replacement),
    "files-from": ("files_from", _split_list),
    "bundles": ("bundles", _bundles),
    "restricted": ("restricted", _restricted),
    "measure": ("measure", _yes_or_no),
    "names": ("names", _one_of("files", "dspace")),
    "collections": ("collections", _template),
    "overlap": ("overlap", _seconds),
    "window": ("window", _days),
    "changefreq": ("changefreq", _one_of(*_FREQUENCIES)),
}


@lru_cache(maxsize=64)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))


def _matches(globs: tuple[str, ...], text: str) -> bool:
    return any(_pattern(glob).match(text) for glob in globs)


def _quoted(text: str) -> str:
    return quote(text, safe="/")
