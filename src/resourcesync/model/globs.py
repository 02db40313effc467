"""Globs of paths, for what is mirrored and what is published. Pure.

A glob is compared with the path of a URI in its normal form, so ``%7e`` is ``~``. What each sign
matches: ``docs/how-to/choose-what-is-mirrored.md``.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync.model.own_names import MAX_URI, decode_unreserved

_FOREIGN_SYNTAX: Final = re.compile(r"[\[\]{}\\#]|^!")
_TO_ESCAPE: Final = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@/?%-]|%(?![0-9A-Fa-f]{2})")
_ANY_FOLDERS: Final = "**"


class Glob(msgspec.Struct, frozen=True):
    """Pattern for URIs: of path and query, or of the path alone.

    A whole folder matches if all that can be in it does.
    """

    matches_query: bool
    matches_folders: bool
    expression: re.Pattern[str]

    def matches(self, path: str, query: str | None) -> bool:
        """True if the glob matches."""
        if not self.matches_query:
            return self.expression.fullmatch(path) is not None
        return query is not None and self.expression.fullmatch(f"{path}?{query}") is not None

    def matches_all_below(self, folder: str) -> bool:
        """True if the glob matches everything that can be in a folder."""
        return self.matches_folders and self.expression.fullmatch(f"{folder}/") is not None


@lru_cache(maxsize=256)
def parse_glob(text: str) -> Glob:
    """Return the pattern of a glob.

    Its regular expression never backtracks over a ``*``, except in a last segment, so its time is
    bounded by the product of the two lengths, whatever is written.
    """
    _check_glob(text)
    location, question, query = normal_glob(text).partition("?")
    segments = location.split("/")
    if location.startswith("/"):
        segments = segments[1:]
    else:
        segments = [_ANY_FOLDERS, *segments] if location else [_ANY_FOLDERS]
    if segments[-1] == "" and location:
        segments[-1] = _ANY_FOLDERS
    expression = _path_expression(segments)
    if question:
        expression += r"\?" + _literals(query, ".", "")
    is_deep = segments[-1] == _ANY_FOLDERS and not question
    return Glob(bool(question), is_deep, re.compile(expression, re.DOTALL))


def normal_path(path: str) -> str:
    """Return the relative path of a file, which may have any characters, as globs match it."""
    return "/" + quote(path, safe="/!$&'()*+,;=:@", errors="surrogateescape")


def _check_glob(text: str) -> None:
    hint = ""
    if not text or len(text) > MAX_URI:
        reason = f"it must have 1 to {MAX_URI:,} characters"
    elif _FOREIGN_SYNTAX.search(text):
        reason = "[ ] { } \\ # and a leading ! are not supported"
        hint = "write several globs, or exclude by a glob"
    elif any(_ANY_FOLDERS in s and s != _ANY_FOLDERS for s in text.partition("?")[0].split("/")):
        reason = "** must be alone between slashes"
        hint = "write it as in /docs/**/*.html"
    else:
        return
    raise ConfigurationError(
        f"{text[:100]!r} is not a valid glob: {reason}", hint=hint, code="glob"
    )


def normal_glob(text: str) -> str:
    """Return a glob in the characters of a normalised URI."""
    text = _TO_ESCAPE.sub(lambda found: quote(found[0], safe="", errors="surrogatepass"), text)
    return decode_unreserved(text)


def _path_expression(segments: list[str]) -> str:
    """Return the expression for a path; each segment includes the slash before it."""
    groups: list[list[str]] = [[]]
    for segment in segments:
        if segment == _ANY_FOLDERS:
            groups.append([])
        else:
            groups[-1].append(segment)
    first, *later = (
        "".join("/" + _literals(s, "[^/?]", r"(?=[/?]|\Z)") for s in g) for g in groups
    )
    if not later:
        return first
    *middle, last = later
    held = "".join(f"(?>(?:/[^/?]*+)*?{group})" for group in middle if group)
    return first + held + (f"(?:/[^/?]*+)*?{last}" if last else "(?:/[^/?]*+)++")


def _literals(text: str, wild: str, end: str) -> str:
    """Return the expression for text with ``*``: each piece matches where it first occurs."""
    head, *pieces = map(re.escape, re.split(r"\*+", text))
    if not pieces:
        return head + end
    *middle, tail = pieces
    held = "".join(f"(?>{wild}*?{piece})" for piece in middle)
    return head + held + (f"{wild}*{tail}" if tail else f"{wild}*+") + end
