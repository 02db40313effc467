"""Descriptions of settings: ``Annotated[TYPE, Setting(…)]`` on a field of a frozen struct.

The struct is the one that the code uses; from its description come the option of the command line,
the key of the configuration file, the keyword argument of the library, and the reference. A field
without a description is a value that only the program sets. Those of all requests are here too.
"""

from enum import Enum
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

AuditMethod = Literal["lists", "stat", "hash", "remote", "origin"]
RuleProfile = Literal["rs-1.1", "rs-1.0", "rs-0.9", "rs-0.6", "sitemap"]
"""The text that a document is checked against."""


class Section(Enum):
    """A section of a command's help and of the reference; they are shown in this order."""

    MAIN = "Options"
    SELECTION = "Selection"
    DELETION = "Deletion"
    VERIFICATION = "Verification"
    DOCUMENTS = "Documents"
    VERSIONS = "Versions"
    TRANSFER = "Transfer"
    STORAGE = "Storage"
    NETWORK = "Network"
    OUTPUT = "Output"


class Form(NamedTuple):
    """How a value is written; ``lowest`` and ``highest`` are the limits of a number."""

    name: str
    lowest: int | None = None
    highest: int | None = None


TEXT: Final = Form("text")
FILE: Final = Form("file")
FOLDER: Final = Form("folder")
PLACE: Final = Form("folder or store")
DURATION: Final = Form("duration")
SIZE: Final = Form("size")
RATE: Final = Form("rate")
MOMENT: Final = Form("time")
LIMIT: Final = Form("limit")
HEADER: Final = Form("header")
PAIR: Final = Form("pair")
PROXY: Final = Form("proxy")
BINDING: Final = Form("address")


def whole(lowest: int, highest: int) -> Form:
    """Return the form of a whole number within limits."""
    return Form("whole number", lowest, highest)


def size_from(lowest: int, highest: int) -> Form:
    """Return the form of a size in bytes within limits."""
    return Form("size", lowest, highest)


class Limit(NamedTuple):
    """A number of things, or a share of them in percent; exactly one is set."""

    number: int | None = None
    percent: float | None = None

    def __str__(self) -> str:
        return f"{self.percent:g} %" if self.number is None else str(self.number)


class Setting(NamedTuple):
    """The description of one setting.

    Attributes:
        help: What it does, for a reader of the help or of the reference.
        section: Its section.
        form: How it is written; of choices and flags, and of each value of a list, the type tells.
        metavar: The name of its value in the help; by default the form's.
        key: Its name in the configuration file and as an option; by default the field's name.
        short: A short option, such as ``-j``.
        shown: The default as it is written; empty if there is nothing to show.
        is_clearable: True if an empty text removes a value that is stored.
        is_stored: True if a flag that is not given is as it was stored.
        in_file: True if it is a key of the configuration file.
        in_library: True if it is a keyword argument of the library.
        is_option: True if it is an option of its own on the command line; any other key is given
            as ``-o KEY=VALUE``.
        choices: Those values of an enum that may be chosen; empty for all.
    """

    help: str
    section: Section = Section.MAIN
    form: Form = TEXT
    metavar: str = ""
    key: str = ""
    short: str = ""
    shown: str = ""
    is_clearable: bool = False
    is_stored: bool = False
    in_file: bool = True
    in_library: bool = True
    is_option: bool = False
    choices: tuple[str, ...] = ()


ALLOW_ORIGIN: Final = Setting(
    "Trust this origin too: follow links and redirects to it, fetch its resources, and "
    "connect to it even if its address is private. A mirror remembers it, as its filters.",
    Section.NETWORK,
    metavar="URL",
    key="allow_origin",
    is_clearable=True,
    is_option=True,
)
"""The same origins are trusted by requests, and listed in the filters of a mirror."""


_T, _N = Section.TRANSFER, Section.NETWORK


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all requests; ``None`` is no limit."""

    jobs: Annotated[
        int, Setting("Requests at a time.", _T, whole(1, 1000), short="-j", is_option=True)
    ] = 100
    per_host: Annotated[int, Setting("Requests at a time to one host.", _T, whole(1, 1000))] = 100
    rate: Annotated[
        float | None,
        Setting("Requests per second to one host, such as 5.", _T, RATE, is_option=True),
    ] = None
    bandwidth: Annotated[
        int | None, Setting("Bytes per second in total.", _T, SIZE, key="bwlimit")
    ] = None
    timeout: Annotated[
        float,
        Setting(
            "Longest wait for a response, or for a body that hardly moves. A whole body may take"
            " twice that, at least a minute, and a second more for every 16 KiB.",
            _N,
            DURATION,
            shown="30s",
        ),
    ] = 30.0
    retries: Annotated[
        int, Setting("Retries of a request; none after 404.", _N, whole(0, 100), shown="5")
    ] = 5
    robots: Annotated[
        Literal["obey", "ignore"], Setting("Obey or ignore robots.txt.", _N, shown="obey")
    ] = "obey"
    contact: Annotated[
        str,
        Setting(
            "Contact address for the Source's operator; sent in From and User-Agent.",
            _N,
            metavar="MAIL|URL",
        ),
    ] = ""
    ca_file: Annotated[
        str,
        Setting(
            "Trust the authorities in this file (PEM), instead of the system's.", _N, FILE, "FILE"
        ),
    ] = ""
