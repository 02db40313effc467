# The keyword arguments of the library, for type checkers; made by `docs/generate.py`.

import os
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, TypedDict, TypeVar

from resourcesync.settings.mirror import Network

_T = TypeVar("_T")
Many: TypeAlias = list[_T] | tuple[_T, ...]  # of texts: a text alone is a Sequence, too

class MirrorOptions(TypedDict, total=False):
    prune: bool | None
    lists_only: bool | None
    delete: Literal["auto", "signalled", "absent", "never"] | None
    max_delete: int | str | None
    trash: float | str | None
    verify: Literal["strict", "lenient"] | None
    dumps: Literal["auto", "never", "always"] | None
    accept_missing: bool | None
    changes_only: bool | None
    recheck: float | str | None
    fail_fast: bool | None
    max_duration: float | str | None
    max_bytes: int | str | None
    include: Many[str] | Literal[""] | None
    exclude: Many[str] | Literal[""] | None
    types: Many[str] | Literal[""] | None
    max_size: int | str | None
    since: datetime | timedelta | str | None
    links: Many[str] | Literal[""] | None
    allow_origins: Many[str] | Literal[""] | None
    mapper: str | None
    set_name: int | str | None
    proxy: str | None
    proxy_auth: tuple[str, str] | None
    ca_file: str | os.PathLike[str] | None
    network: Network | None

class PublisherOptions(TypedDict, total=False):
    max_entries: int | None
    max_bytes: int | str | None
    change_lists: Literal["append", "per-run", "archive"] | None
    rotate: float | str | None
    keep: float | str | None
    resource_list: bool | None
    rebase_every: float | str | None
    rebase_up_to: int | None
    archive: float | str | None
    dialect: Literal["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"] | None
    sitemap: bool | None
    hubs: Many[str] | Literal[""] | None
    url: str | None
    out: str | None
    site: str | None
    include: Many[str] | Literal[""] | None
    exclude: Many[str] | Literal[""] | None
    hashes: Many[Literal["sha-256", "sha-512", "sha-384", "sha-224", "sha-1", "md5"]] | None
    described_by: str | None
    robots: bool | None
    notify: bool | None
    links: Many[str] | Literal[""] | None
    max_package: int | str | None
    versions: bool | None
    versions_in: str | None
    versions_keep: float | str | None
    versions_least: int | None
    versions_max_bytes: int | str | None
    patches: bool | None
