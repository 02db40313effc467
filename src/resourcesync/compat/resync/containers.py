"""Collections of resources under the names of resync, in memory."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from resourcesync.compat.resync.errors import ResourceListDupeError, ResourceSetDupeError
from resourcesync.compat.resync.resources import (
    CompatResource,
    LinkDict,
    Links,
    datetime_to_str,
    now,
)
from resourcesync.model.vocabulary import LISTED_CAPABILITIES


class ResourceSet(dict[str, CompatResource]):
    """``resync.resource_set.ResourceSet``: resources by URI; iteration yields them by URI."""

    dupe_error: ClassVar[type[ResourceSetDupeError]] = ResourceSetDupeError

    def __iter__(self) -> Iterator[CompatResource]:  # type: ignore[override]  # as resync has it
        return (self[uri] for uri in self.uris())

    def add(self, resource: CompatResource, replace: bool = False) -> None:
        """Add a resource.

        Raises:
            ResourceSetDupeError: Its URI is there, and ``replace`` is false.
        """
        if resource.uri in self and not replace:
            error = self.dupe_error
            raise error(f"{error.phrase} has {resource.uri} already")
        self[resource.uri] = resource

    def uris(self) -> list[str]:
        """Return the URIs, in the order of iteration."""
        return sorted(self.keys())

    def sorted_iter(self) -> Iterator[CompatResource]:
        """Return the resources by URI."""
        return (self[uri] for uri in sorted(self.keys()))

    def first(self) -> CompatResource:
        """Return the first resource.

        Raises:
            StopIteration: There is none.
        """
        return next(iter(self))


class ResourceListDict(ResourceSet):
    """``resync.resource_list.ResourceListDict``: the resources of a Resource List, by URI."""

    dupe_error = ResourceListDupeError


class ResourceListOrdered(ResourceListDict, OrderedDict[str, CompatResource]):
    """``resync.resource_list.ResourceListOrdered``: the same, in the order they were added."""

    def uris(self) -> list[str]:
        """Return the URIs, in the order they were added."""
        return list(self.keys())


class CapabilitySet(ResourceSet):
    """``resync.capability_list.CapabilitySet``: entries of a Capability List, by capability."""

    def uris(self) -> list[str]:
        """Return the URIs in the order of the capabilities, unknown ones last."""
        place = {name: number for number, name in enumerate(LISTED_CAPABILITIES)}

        def key(uri: str) -> tuple[int, str]:
            return place.get(self[uri].capability, len(place)), uri

        return sorted(self.keys(), key=key)


class ResourceContainer(Links):
    """``resync.resource_container.ResourceContainer``: a list of resources with its header.

    Args:
        resources: The resources; ``None`` for none yet.
        md: The attributes of the header, such as ``md_at``.
        ln: The links of the header.
        uri: Its address.
        capability_name: Its capability, written if ``md`` has none.

    Attributes:
        created_at: Time when the list was made, seconds since 1970.
        lists_all: False if it was read from documents that may lack what exists, such as a feed.
    """

    lists_all = True

    def __init__(
        self,
        resources: Any = None,
        md: dict[str, Any] | None = None,
        ln: list[LinkDict] | None = None,
        uri: str | None = None,
        capability_name: str | None = None,
    ) -> None:
        self.resources: Any = [] if resources is None else resources
        self.md: dict[str, Any] = {} if md is None else md
        self.ln: list[LinkDict] = [] if ln is None else ln
        self.uri = uri
        self.capability_name = capability_name
        self.created_at = now()

    def __iter__(self) -> Iterator[CompatResource]:
        return iter(self.resources)

    def __getitem__(self, index: Any) -> Any:
        return self.resources[index]

    def link_set(self, rel: str, href: str, allow_duplicates: bool = False, **atts: object) -> None:
        """Set the link of a relation; see `Links.link_set`."""
        super().link_set(rel, href, allow_duplicates, **atts)

    @property
    def capability(self) -> str | None:
        """Capability in the header; ``None`` if it is not set."""
        return self.md.get("capability")

    @capability.setter
    def capability(self, capability: str) -> None:
        self.md["capability"] = capability

    def __getattr__(self, name: str) -> Any:
        """Return a time of the header, such as ``md_at``; ``None`` if it is not set."""
        if name in ("md_at", "md_completed", "md_from", "md_until"):
            return self.md.get(name)
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a time of the header is a text, ``now``, or seconds since 1970."""
        if name in ("md_at", "md_completed", "md_from", "md_until"):
            is_text = isinstance(value, str) and value != "now"
            self.md[name] = value if is_text else datetime_to_str(value)
        else:
            super().__setattr__(name, value)

    def default_capability(self) -> None:
        """Write the capability of this kind of list into its header, if there is none."""
        if self.capability_name is not None:
            self.md.setdefault("capability", self.capability_name)

    def add(self, resource: Any) -> None:
        """Add a resource, or all of an iterable."""
        append = getattr(self.resources, "append", None) or self.resources.add
        for added in resource if isinstance(resource, Iterable) else [resource]:
            append(added)

    def uris(self) -> list[str]:
        """Return the URIs of the entries, in their order."""
        return [resource.uri for resource in self]
