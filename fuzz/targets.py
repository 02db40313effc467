"""What is fuzzed, and what must hold for every input."""

from collections.abc import Callable
from random import Random
from typing import Final

from fuzz.campaign import Target
from fuzz.documents import generate
from fuzz.kept import SEEDS, WrongAnswerError, hold, kept
from fuzz.long_lists import LongLists
from fuzz.others import OTHERS
from fuzz.packages import Files, files, read_package, tarred, zipped
from fuzz.randomness import chance
from fuzz.xml_target import judge, read_twice
from resourcesync.discovery.links import find_target
from resourcesync.documents.packages.safety import find_clash, member_name, name_key, new_path
from resourcesync.model.digests import agree, disagree, format_digests, parse_digests, usable
from resourcesync.model.timestamps import format_w3c, parse_w3c, to_microseconds


class Documents:
    """Whole documents, in all encodings: `documents.reader.read`."""

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


class Validator(Documents):
    """Whole documents once more: `validator.examination.Examination`."""

    name = "validator"

    def run(self, data: bytes) -> str:
        """Judge it."""
        return judge(data)


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
    """HTTP ``Link`` fields: `discovery.link_header.find_target`."""

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


class Packages:
    """Dump packages, ZIP and tar: `documents.packages.reader.open_package`."""

    roughness = 0.4

    def __init__(self, name: str, pack: Callable[[Random, Files], bytes]) -> None:
        self.name = name
        self._pack = pack
        made = (self.make(chance(name, "seed", number)) for number in range(40))
        self.seeds = (*made, *kept(name))

    def make(self, random: Random) -> bytes:
        """Return a package with single fields that lie."""
        return self._pack(random, files(random))

    def run(self, data: bytes) -> str:
        """Read all of it; no byte is given that is not the manifest's."""
        return read_package(data)


class Paths:
    """Paths of members: `documents.packages.safety`."""

    name = "paths"
    roughness = 0.5

    def __init__(self) -> None:
        self.seeds = (
            b"/resources/00/00001-a.txt\n/a",
            b"/../x\n//x\nx\n/a/./b\n/manifest.xml",
            "/a\u0301\n/\u00e1\n/\u00c1/b".encode(),
            *kept(self.name),
        )

    def make(self, random: Random) -> bytes:
        """Return some paths, one a line."""
        parts = ("a", "A", "..", ".", "", "manifest.xml", "\\", "\0", "\u0130", "e\u0301", "\u00e9")
        paths = []
        for _ in range(random.choice((1, 2, 3, 8))):
            chosen = random.choices(parts, k=random.choice((1, 2, 3)))
            paths.append(random.choice(("/", "/", "")) + "/".join(chosen))
        return "\n".join(paths).encode()

    def run(self, data: bytes) -> str:
        """Read each path; those that may be used are safe, and clashes among them are found."""
        lines = data.decode("utf-8", "replace").split("\n")
        names: list[str] = []
        for line in lines:
            try:
                names.append(member_name(line))
            except ValueError:
                continue
            hold(".." not in names[-1].split("/"), "leads up nowhere")
            hold(not names[-1].startswith("/") and "\\" not in names[-1], "is relative")
            hold(name_key(names[-1]) != "manifest.xml", "is not the manifest")
        made = new_path(len(lines), lines[0])
        hold(made.isascii() and made == f"/{member_name(made)}", "makes paths that it takes")
        hold((find_clash(names) is not None) == _clash(names), "finds clashes")
        return f"{'names' if names else 'none'} {names!r} {made}"


def _clash(names: list[str]) -> bool:
    """Return whether two names clash: each looked at with each."""
    keys = [name_key(name) for name in names]
    return any(
        key == other or key.startswith(f"{other}/") or other.startswith(f"{key}/")
        for at, key in enumerate(keys)
        for other in keys[:at]
    )


_ALL: Final[tuple[Target, ...]] = (
    Documents(),
    Validator(),
    LongLists(),
    Datetimes(),
    Hashes(),
    LinkFields(),
    Packages("zips", zipped),
    Packages("tars", tarred),
    Paths(),
    *OTHERS,
)
TARGETS: Final[dict[str, Target]] = {target.name: target for target in _ALL}
"""All targets by their names."""

__all__ = ["SEEDS", "TARGETS", "WrongAnswerError", "hold", "kept"]
