"""Settings of ``watch``, the service that keeps mirrors in sync, and of logs."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from resourcesync.settings.schema import BINDING, DURATION, FILE, FOLDER, Section, Setting, whole

_MAIN = Section.MAIN


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service, for all mirrors together."""

    parallel: Annotated[
        int,
        Setting("Mirrors that are pulled or audited at a time.", _MAIN, whole(1, 100), shown="4"),
    ] = 4
    jobs: Annotated[
        int,
        Setting(
            "Requests at a time, for all mirrors together.",
            _MAIN,
            whole(1, 1000),
            short="-j",
            shown="64",
        ),
    ] = 64
    grace: Annotated[
        float,
        Setting(
            "Time that running work may take after SIGTERM to stop cleanly.",
            _MAIN,
            DURATION,
            shown="20s",
        ),
    ] = 20.0
    callback: Annotated[
        str,
        Setting(
            "The public address of --listen for hubs, such as https://HOST/push/. Mirrors with"
            " push = true are subscribed to their Sources' Change Notifications.",
            metavar="URL",
        ),
    ] = ""
    listen: Annotated[
        tuple[str, int],
        Setting(
            "The address that receives notifications; put a proxy with TLS in front.",
            _MAIN,
            BINDING,
            "HOST:PORT",
            shown="127.0.0.1:9465",
        ),
    ] = ("127.0.0.1", 9465)
    admin: Annotated[
        tuple[str, int] | None,
        Setting(
            "The address of pages about the mirrors, /livez, /readyz, /metrics and"
            " /api/status.json; for operators only.",
            _MAIN,
            BINDING,
            "HOST:PORT",
        ),
    ] = None
    state: Annotated[
        Path | None,
        Setting(
            "The folder for the subscriptions, instead of the user's own folder.",
            _MAIN,
            FOLDER,
            "DIR",
        ),
    ] = None


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The log of the commands that read the configuration file."""

    file: Annotated[str | None, Setting("Append log messages to this file.", form=FILE)] = None
    format: Annotated[Literal["text", "json"], Setting("The format of the log.", shown="text")] = (
        "text"
    )
