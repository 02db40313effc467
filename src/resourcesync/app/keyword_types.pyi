# The keyword arguments of the library, for type checkers; made by `docs/generate.py`.

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, TypedDict

from resourcesync.settings.mirror import Network

class MirrorOptions(TypedDict, total=False):
    prune: bool
    lists_only: bool
    delete: Literal["auto", "signalled", "absent", "never"] | None
    max_delete: int | str
    trash: float | str
    verify: Literal["strict", "lenient"]
    dumps: Literal["auto", "never", "always"]
    accept_missing: bool | None
    changes_only: bool
    recheck: float | str | None
    fail_fast: bool
    max_duration: float | str | None
    max_bytes: int | str | None
    include: Sequence[str]
    exclude: Sequence[str]
    types: Sequence[str]
    max_size: int | str | None
    since: datetime | timedelta | str | None
    links: Sequence[str]
    allow_origins: Sequence[str]
    mapper: str
    set_name: str
    proxy: str | None
    proxy_auth: tuple[str, str] | None
    ca_file: str | os.PathLike[str]
    network: Network

class PublisherOptions(TypedDict, total=False):
    max_entries: int
    max_bytes: int | str
    change_lists: Literal["append", "per-run", "archive"]
    rotate: float | str
    keep: float | str | None
    resource_list: bool
    rebase_every: float | str
    rebase_up_to: int
    archive: float | str
    dialect: Literal["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"]
    sitemap: bool
    hubs: Sequence[str]
    url: str
    out: str
    site: str
    include: Sequence[str]
    exclude: Sequence[str]
    hashes: Sequence[Literal["sha-256", "sha-512", "sha-384", "sha-224", "sha-1", "md5"]]
    described_by: str
    robots: bool
    notify: bool
    links: Sequence[str]
    max_package: int | str
    versions: bool
    versions_in: str
    versions_keep: float | str
    versions_least: int
    versions_max_bytes: int | str
    patches: bool
