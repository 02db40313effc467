"""Compares our reader with the second one: ``python -m fuzz.differential --count 100000``."""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urljoin

from fuzz.accounts import OVER_STRICT, URI, Account, Fields, ours
from fuzz.documents import generate
from fuzz.mutation import mutate
from fuzz.randomness import chance, probably

STRICTER: Final = frozenset({"xml-dtd", "xml-encoding", "document-limit", "gzip"})
"""Codes with which we refuse what well-formed XML may be; `tests` hold a document of each."""

_ODD_VERSION: Final = re.compile(rb"""(\xef\xbb\xbf)?<\?xml\s+version\s*=\s*["'](?!1\.\d+["'])""")
"""A version of XML that is none: libxml2 looks at it, expat does not."""


def document(seed: int | str, number: int) -> bytes:
    """Return one document of a campaign; one in twelve is damaged afterwards."""
    random = chance("differential", seed, number)
    data = generate(random)
    if probably(random, 12):
        data = mutate(random, data, (data,))
    return data


def difference(data: bytes, second: Callable[[bytes], Account]) -> str:
    """Return in what the two readers differ; nothing when they agree."""
    account, other = ours(data), second(data)
    if account.failure != other.failure:
        if account.failure in STRICTER or (other.failure == "xml" and account.failure):
            return ""
        if other.failure == OVER_STRICT or (other.failure == "xml" and _ODD_VERSION.match(data)):
            return ""
        if (
            account.failure == "xml" and other.odd_names
        ):  # expat knows the names of the fourth edition
            return ""
        return f"failure: ours {account.failure!r}, theirs {other.failure!r}"
    if account.failure:
        return ""
    return "; ".join(_differences(account, other))


def _differences(account: Account, other: Account) -> Iterator[str]:
    if facts(account.header) != facts(other.header):
        yield f"header: ours {facts(account.header)}, theirs {facts(other.header)}"
    if len(account.entries) != len(other.entries):
        yield f"entries: ours {len(account.entries)}, theirs {len(other.entries)}"
    for mine, their in zip(account.entries, other.entries, strict=False):
        if facts(mine) != facts(their):
            yield f"entry: ours {facts(mine)}, theirs {facts(their)}"
    if len(account.refusals) != len(other.refusals):
        yield f"refusals: ours {account.refusals}, theirs {other.refusals}"
    for code, codes in zip(account.refusals, other.refusals, strict=False):
        if not code <= codes:
            yield f"refusal: ours {set(code)}, theirs {set(codes)}"


def facts(told: Fields) -> Fields:
    """Return what both readers are to agree on: all but the attributes that nobody defined.

    An attribute without a namespace that the specification does not know is kept by ours, so that
    it can be written again; it means nothing.
    """
    kept = dict(told)
    extra = tuple(pair for pair in kept.pop("extra", ()) if pair[0].startswith("{"))
    kept.pop("capability" if "label" in kept else "", None)
    for name in ("uri", "href"):
        if name in kept:
            kept[name] = _resolved(kept[name])
    if "links" in kept:
        kept["links"] = tuple(facts(dict(link)) for link in kept["links"])
    return {**kept, "extra": tuple(sorted(extra))} if extra else kept


def _resolved(uri: str) -> str:
    """Return a URI as it is meant; ours says it so, the second reader as it is written."""
    try:
        return urljoin(URI, uri)
    except ValueError:
        return uri


def main(arguments: list[str] | None = None) -> int:
    """Compare the readers on many documents; return 1 when they differ on one."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.differential", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="documents to compare")
    parser.add_argument("--seed", type=int, default=1, help="which documents")
    options = parser.parse_args(arguments)
    try:
        from fuzz.second_reader import theirs  # noqa: PLC0415 - lxml may be absent
    except ImportError:
        sys.stdout.write("The second reader needs lxml, which is not installed.\n")
        return 2
    begin = time.perf_counter()
    found = 0
    for number in range(options.count):
        data = document(options.seed, number)
        told = difference(data, theirs)
        if told:
            found += 1
            sys.stdout.write(f"document {number} of seed {options.seed}: {told}\n{data!r}\n")
    spent = time.perf_counter() - begin
    sys.stdout.write(
        f"{options.count:,} documents in {spent:.1f} s"
        f" ({options.count / max(spent, 1e-9):,.0f} a second), {found:,} differences\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
