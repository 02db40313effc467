"""Lines of text output, the formats of numbers, times and names, and the hiding of secrets. Pure.

Normal output hides only the user information of addresses: a query is part of a resource's name.
A crash report is sent to strangers, so it hides queries too, and rather too much than too little.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import unquote

from resourcesync.errors import quoted
from resourcesync.model.formatting import counted

QUIET, NORMAL, DETAIL = 0, 1, 2
"""Levels of a line: shown even with ``-q``, shown by default, shown with ``-v``."""

LABEL_WIDTH: Final = 10


class TextLine(NamedTuple):
    """One line of text output."""

    text: str  # escaped when shown: it may be text of a Source
    label: str = ""
    level: int = NORMAL


_UTC_MOMENT: Final = re.compile(r"(?<![\w-])(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)Z(?!\w)")


def with_local_times(text: str) -> str:
    """Return a text with the times that ``moment`` wrote as local times: ``12:04:09 +01:00``.

    The zone is that of this machine (``TZ``); in UTC they stay as they are.
    """
    return _UTC_MOMENT.sub(_local_time, text) if "Z" in text else text


def _local_time(written: re.Match[str]) -> str:
    try:
        local = datetime.fromisoformat(f"{written[1]}+00:00").astimezone()
    except (ValueError, OverflowError, OSError):  # no such day; a text of a Source
        return written[0]
    day, _, time = local.isoformat().partition("T")
    return f"{day} {time[:8]} {time[8:]}" if local.utcoffset() else written[0]


def with_mirror(hint: str, folder: str) -> str:
    """Return a hint with the folder of the mirror that it is about."""
    return hint.replace(" MIRROR", f" {quoted(folder, 'MIRROR')}")


def labelled(line: TextLine) -> tuple[str, str]:
    """Return a line's label with its padding, and its text."""
    if not line.label:
        return "", line.text
    if len(line.label) == 1:
        return f"{line.label} ", line.text
    gap = LABEL_WIDTH if len(line.label) < LABEL_WIDTH else len(line.label) + 3
    return line.label.ljust(gap), line.text


HIDDEN: Final = "(hidden)"
_SECRET_OPTIONS: Final = frozenset({"--with"})
_HEADER: Final = re.compile(r"(-o|--option=)?header=")
# An address begins a value or a word: one within a query is part of a name. The text behind a
# user's colon is not a port; a password may contain an unescaped slash.
_USER_INFO: Final = re.compile(
    r"""(?<![^\s"'`(<\[,])((?:[a-z][a-z0-9+.-]*:)*//|https?:/)"""
    r"""(?:[^/?#\s]*|[^/?#\s@\[]*:(?![0-9]*(?:[/?#,\s"']|$))\S*)@""",
    re.IGNORECASE,
)
_MIN_SECRET_LENGTH: Final = 4


def without_users(text: str) -> str:
    """Return a text with the user information of the addresses in it hidden, and nothing else."""
    return _USER_INFO.sub(rf"\1{HIDDEN}@", text) if "@" in text else text


def without_queries(text: str) -> str:
    """Return a text with the possible secrets of addresses hidden: user information and query.

    All from the beginning of the first address to the last ``@``, and from the first ``?`` (in an
    address also ``#``) to the end, is hidden, wherever the secrets really begin and end.
    """
    return _split_address(text)[0]


def shown_arguments(arguments: Sequence[str]) -> list[str]:
    """Return a command line without its possible secrets."""
    shown, is_secret = [], False
    for argument in arguments:
        name = argument.partition("=")[0]
        header = _HEADER.match(argument)
        if header is not None:
            shown.append(f"{header[0]}{HIDDEN}")
        elif is_secret:
            shown.append(HIDDEN)
        elif name in _SECRET_OPTIONS and name != argument:
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(without_queries(argument))
        is_secret = not is_secret and argument in _SECRET_OPTIONS
    return shown


def secret_strings(arguments: Iterable[str]) -> list[str]:
    """Return the hidden parts of the addresses on a command line, longest first.

    A message may contain such a part without its address, so they are removed everywhere.
    """
    found: set[str] = set()
    for hidden in (piece for argument in arguments for piece in _split_address(argument)[1]):
        for part in (hidden, *hidden.split("&"), *hidden.split("@")):
            found.update((part, part.partition("=")[2], part.partition(":")[2]))
    found |= {unquote(word) for word in found}
    found |= {repr(word)[1:-1] for word in found}
    return sorted(
        (word for word in found if len(word) >= _MIN_SECRET_LENGTH), key=len, reverse=True
    )


def _split_address(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with secrets hidden, and the hidden parts."""
    start = text.find("//")
    start = start + 2 if start >= 0 else 0
    asks = [text.find("?"), text.find("#", start) if start else -1]
    query = min((place for place in asks if place >= 0), default=len(text))
    at = text.rfind("@")
    begin = min(start, query)
    if at >= query:  # a password with a question mark, or a query with an @: both are possible
        return f"{text[:begin]}{HIDDEN}", (text[begin:at], text[begin:], text[query + 1 :])
    head = f"{text[:begin]}{HIDDEN}{text[at:query]}" if at >= begin else text[:query]
    tail = f"{text[query]}{HIDDEN}" if query < len(text) else ""
    return head + tail, (text[begin:at] if at >= begin else "", text[query + 1 :])


def clause_of(text: str) -> str:
    """Return a clause as a phrase: ``section 12.1``, or the name of another document."""
    return f"section {text}" if text[:1].isdigit() else text


def leniency_line(fields: Mapping[str, object]) -> TextLine:
    """Return the line about a departure from the rules that was tolerated."""
    where = f"{fields['uri']}, line {fields['line']}" if fields["line"] else str(fields["uri"])
    rule = f"; rule {fields['rule']}" if fields["rule"] else ""
    places = counted(int(str(fields["count"])), "place")
    return TextLine(f"{fields['reason']}  ({places}; {where}{rule})", "Lenient", DETAIL)


SERVER_VERIFIED: Final = "verified by the server's digest"
"""Words for copies that the server's own digest proves, and no list."""


def proof(fields: Mapping[str, object]) -> str:
    """Return how the bytes of an ``item`` event were proven; empty if they were not."""
    if fields.get("fixity") == "server-verified":
        return SERVER_VERIFIED
    if fields.get("bad_digest"):
        return "its digest field is malformed"
    algorithm = str(fields.get("hash") or "").partition(":")[0]
    return f"{algorithm} verified" if fields.get("verified") else ""
