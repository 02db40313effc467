"""Whether a patch can stand for a whole resource, decided from values alone."""

from typing import Any

import pytest

from resourcesync.destination.incremental import is_version_before
from resourcesync.destination.lists.usable_links import patch_of
from resourcesync.destination.pending_tasks import pending_delete
from resourcesync.mirror_state.rows import Copy
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Link, Resource
from resourcesync.ports.patches import PatchFormat

SHA = "sha-256:" + "a" * 64
STRONG = (Digest("sha-256", "a" * 64),)
REL = "http://www.openarchives.org/rs/terms/patch"
TYPES = {
    "application/x": PatchFormat(load=lambda: print),
    "application/small": PatchFormat(load=lambda: print, largest=10),
}
COPY = Copy("u", "u", 3, SHA, SHA, 10, "", "", "sig", "verified", 0)


def link(**more: Any) -> Link:
    values = {"rel": REL, "href": "http://h/p", "media_type": "application/x", **more}
    return Link(**values)


def entry(*links: Link, **more: Any) -> Resource:
    values = {"uri": "http://h/r", "length": 100, "digests": STRONG, "links": links, **more}
    return Resource(**values)


def test_the_first_patch_that_can_be_used_is_taken_also_if_it_is_packed() -> None:
    for good in (link(), link(path="/p")):  # a package may have nothing else of the resource
        found = patch_of(entry(link(media_type="text/odd"), link(href="urn:x"), good), TYPES)
        assert found is not None
        assert (found[1], found.path) == ("http://h/p", good.path)


@pytest.mark.parametrize(
    "bad",
    [
        entry(),
        entry(link(length=100)),
        entry(link(), length=None),
        entry(link(), digests=()),
        entry(link(), digests=(Digest("md5", "a" * 32),)),
        entry(link(), encoding="gzip"),
        entry(link(encoding="gzip")),
        entry(link(path="/p"), path="/r"),
        entry(link(href="ftp://h/p")),
        entry(link(href="p")),
        entry(link(media_type="application/small")),
        entry(link(media_type="")),
        entry(link(rel="duplicate")),
    ],
)
def test_a_patch_that_could_not_be_proven_or_understood_is_none(bad: Resource) -> None:
    assert patch_of(bad, TYPES) is None


@pytest.mark.parametrize(
    ("copy", "is_before"),
    [
        (COPY, True),
        (None, False),
        (COPY._replace(fixity="weak"), False),
        (COPY._replace(fixity="unverified"), False),
        (COPY._replace(listed=""), False),
        (COPY._replace(length=-1), False),
    ],
)
def test_a_copy_is_the_version_before_only_when_it_was_proven(
    copy: Copy | None, is_before: bool
) -> None:
    assert is_version_before(copy, None) is is_before
    assert not is_version_before(copy, pending_delete(COPY, reason="", now=0, at=0, generation=1))
