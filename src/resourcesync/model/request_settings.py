"""Settings of all requests, described once."""

from typing import Annotated, Literal

import msgspec

from resourcesync.model.settings import DURATION, FILE, RATE, SIZE, Section, Setting, whole

_T, _N = Section.TRANSFER, Section.NETWORK


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all requests; ``None`` is no limit."""

    jobs: Annotated[
        int, Setting("Requests at a time.", _T, whole(1, 1000), short="-j", is_option=True)
    ] = 100
    per_host: Annotated[int, Setting("Requests at a time to one host.", _T, whole(1, 1000))] = 100
    rate: Annotated[
        float | None,
        Setting("Requests per second to one host, such as 5/s.", _T, RATE, is_option=True),
    ] = None
    bandwidth: Annotated[
        int | None, Setting("Bytes per second in total, such as 2M.", _T, SIZE, key="bwlimit")
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
