"""What is fuzzed, and what must hold for every input."""

from pathlib import Path
from random import Random
from typing import Final

from fuzz.campaign import Target
from fuzz.documents import generate
from fuzz.randomness import chance
from fuzz.xml_target import read_twice
from resourcesync.discovery.links import find_target
from resourcesync.model.digests import agree, disagree, format_digests, parse_digests, usable
from resourcesync.model.timestamps import format_w3c, parse_w3c, to_microseconds

SEEDS: Final = Path(__file__).parent / "seeds"


class WrongAnswerError(Exception):
    """An answer that breaks a law: worse than an exception, for nobody would notice."""


def hold(law: bool, sentence: str) -> None:  # noqa: FBT001 - it reads like an assertion
    """Check a law.

    Raises:
        WrongAnswerError: It is broken.
    """
    if not law:
        raise WrongAnswerError(sentence)


def kept(name: str) -> tuple[bytes, ...]:
    """Return the inputs of a target that once showed a fault."""
    folder = SEEDS / name
    return tuple(path.read_bytes() for path in sorted(folder.glob("*"))) if folder.is_dir() else ()


class Documents:
    """Whole documents, in all encodings: `documents.reading.read`."""

    name = "documents"
    roughness = 0.5

    def __init__(self) -> None:
        self.seeds = tuple(generate(chance("seed", number)) for number in range(60)) + kept(
            self.name
        )

    def make(self, random: Random) -> bytes:
        """Return a document of any kind."""
        return generate(random)

    def run(self, data: bytes) -> str:
        """Read it as entries and as rows."""
        return read_twice(data)


class Datetimes:
    """W3C Datetimes: `model.timestamps.parse_w3c`."""

    name = "datetimes"
    roughness = 0.6

    def __init__(self) -> None:
        self.seeds = (
            b"2013",
            b"2013-01",
            b"2013-01-03",
            b"2013-01-03T09:00Z",
            b"2013-01-03T09:00:00Z",
            b"2013-01-03T09:00:00.123456Z",
            b"2013-01-03T09:00:00.5+14:00",
            b"9999-12-31T23:59:59.999999-00:01",
            *kept(self.name),
        )

    def make(self, random: Random) -> bytes:
        """Return digits and marks about where they belong."""
        two = "{:02d}".format
        parts = [
            f"{random.choice((1, 1970, 2013, 9999, random.randrange(20000))):04d}",
            *("-" + two(random.randrange(35)) for _ in range(2)),
            random.choice("TTTt ") + two(random.randrange(26)),
            *(":" + two(random.randrange(62)) for _ in range(2)),
            random.choice(("", ".", ".5", ".123456", ",5", "." + "7" * random.randrange(40))),
            random.choice(("Z", "Z", "", "+01:00", "-14:59", "+15:00", "z", "+0100", "-00:00")),
        ]
        return "".join(parts[: random.choice((1, 2, 3, 6, 7, 8, 8, 8))]).encode()

    def run(self, data: bytes) -> str:
        """Read it; write what was read, and read that."""
        text = data.decode("utf-8", "surrogateescape")
        try:
            moment = parse_w3c(text)
        except ValueError:
            return "refused"
        hold(moment.tzinfo is not None and moment.utcoffset().__bool__() is False, "is in UTC")
        hold(parse_w3c(format_w3c(moment)) == moment, "reads what it writes")
        hold(text.isascii() and "T24" not in text, "takes W3C Datetimes only")
        return f"moment {to_microseconds(moment)}"


class Hashes:
    """``hash`` attributes: `model.digests.parse_digests`."""

    name = "hashes"
    roughness = 0.8

    def __init__(self) -> None:
        self.seeds = (
            b"md5:1584abdf8ebdc9802ac0c6a7402c03b6",
            b"sha-256:" + b"ab" * 32 + b"\n    md5:" + b"cd" * 16,
            b"sha-256:f4OxZX_x_DFGFDgghg crc32:1 SHA256:AB odd :",
            b"sha-512:" + b"0" * 128,
            *kept(self.name),
        )

    def make(self, random: Random) -> bytes:
        """Return some tokens."""
        names = ("md5", "sha-1", "sha1", "SHA-256", "sha-256", "sha-512", "crc32", "", "MD-5")
        sizes = (0, 1, 31, 32, 40, 64, 128, 500)
        digits = random.choice(("0123456789abcdef", "ABCDEF", "ghi_-=", "\u0663\uff11"))
        tokens = [
            random.choice(names) + ":" + "".join(random.choices(digits, k=random.choice(sizes)))
            for _ in range(random.choice((1, 2, 3, 17)))
        ]
        return random.choice((" ", "\n  ", "\u00a0", ",")).join(tokens).encode()

    def run(self, data: bytes) -> str:
        """Read it; the laws of agreement hold, and what is written is read again."""
        found = parse_digests(data.decode("utf-8", "surrogateescape"))
        hold(len(found) <= 16, "takes sixteen tokens at most")  # noqa: PLR2004 - documented
        sound = usable(found)
        hold(set(sound) <= set(found), "uses what was told")
        hold(not (agree(found, found) and disagree(found, found)), "does not contradict itself")
        hold(bool(sound) or not disagree(found, found), "what cannot be checked is no mismatch")
        hold(parse_digests(format_digests(found)) == found, "reads what it writes")
        return f"digests {found!r} {sound!r}"


class LinkFields:
    """HTTP ``Link`` fields: `discovery.links.find_target`."""

    name = "link-fields"
    roughness = 0.8

    def __init__(self) -> None:
        self.seeds = (
            b'<http://example.com/.well-known/resourcesync>; rel="resourcesync"',
            b'</a>; rel=x, <b,;c>; rel=\'resourcesync\'; title="a\\"b, <c>"',
            b'<u>; anchor="#x"; rel="resourcesync", <v>; rel="self resourcesync"',
            *kept(self.name),
        )

    def make(self, random: Random) -> bytes:
        """Return some links."""
        targets = ("http://h/a", "/a", "", "//h", "?", "http://[::1]/", "http://[", "a:b", "\u2100")
        values = ("resourcesync", '"resourcesync"', '"a resourcesync"', '"', "\\", '"\\""', "x")
        links = []
        for _ in range(random.choice((1, 1, 2, 70))):
            parts = [f"<{random.choice(targets)}>"]
            for _ in range(random.randrange(4)):
                name = random.choice(("rel", "rel*", "REL", "anchor", "title", ""))
                parts.append(name + random.choice(("=", "=", " = ", "")) + random.choice(values))
            links.append(random.choice((";", "; ", " ")).join(parts))
        return random.choice((",", ", ", "")).join(links).encode()

    def run(self, data: bytes) -> str:
        """Look for the link of discovery."""
        found = find_target(data.decode("latin-1"), "resourcesync", "http://example.com/a/b")
        return "none" if found is None else f"link {found}"


_ALL: Final[tuple[Target, ...]] = (Documents(), Datetimes(), Hashes(), LinkFields())
TARGETS: Final[dict[str, Target]] = {target.name: target for target in _ALL}
"""All targets by their names."""

__all__ = ["TARGETS", "WrongAnswerError", "hold", "kept"]
