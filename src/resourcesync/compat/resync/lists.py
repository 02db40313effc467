"""Lists under the names of resync, read from addresses or files, and written to files."""

import io
import logging
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

from resourcesync.compat.resync.access import DocumentOpener, OpenDocument, is_local
from resourcesync.compat.resync.containers import (
    CapabilitySet,
    ResourceContainer,
    ResourceListDict,
    ResourceSet,
)
from resourcesync.compat.resync.errors import ChangeTypeError, ListBaseIndexError, MapperError
from resourcesync.compat.resync.mapping import CompatMapper
from resourcesync.compat.resync.resources import CompatResource, LinkDict
from resourcesync.compat.resync.sitemaps import Sitemap
from resourcesync.model.vocabulary import MAX_ENTRIES
from resourcesync.own_files import replace_file
from resourcesync.settings.network import Network

LOGGER: Final = logging.getLogger("resync.list_base")


class ListBase(ResourceContainer):
    """``resync.list_base.ListBase``: a list in one document.

    Args:
        resources: The resources; ``None`` for none yet.
        count: Their number, if ``resources`` has no length.
        md: The attributes of the header.
        ln: The links of the header.
        uri: Its address.
        capability_name: Its capability.
        spec_version: ``1.0`` or ``1.1``, to write.
        add_lastmod: True to write the time of a change as ``lastmod``, too.

    Attributes:
        sitemapindex: True to write an index.
        parsed_index: The document that was read is an index; ``None`` before.
        network: Settings for requests; ``None`` for the default.
    """

    def __init__(
        self,
        resources: Any = None,
        count: int | None = None,
        md: dict[str, Any] | None = None,
        ln: list[LinkDict] | None = None,
        uri: str | None = None,
        capability_name: str = "unknown",
        spec_version: str = "1.1",
        add_lastmod: bool = False,
    ) -> None:
        super().__init__(resources, md, ln, uri, capability_name)
        self.count = count
        self.spec_version = spec_version
        self.add_lastmod = add_lastmod
        self.sitemapindex = False
        self.pretty_xml = False
        self.logger = LOGGER
        self.bytes_read = 0
        self.parsed_index: bool | None = None
        self.network: Network | None = None

    def __len__(self) -> int:
        return len(self.resources) if self.count is None else self.count

    def new_sitemap(self) -> Sitemap:
        """Return the reader and writer of such documents."""
        return Sitemap(self.pretty_xml, self.spec_version, self.add_lastmod)

    def read(self, uri: str) -> None:
        """Read a document; see `parse`."""
        self.parse(uri=uri)

    def parse(
        self, uri: str | None = None, fh: IO[Any] | None = None, str_data: str | None = None
    ) -> None:
        """Read a document from an address, an open file or a text.

        Raises:
            DocumentAccessError: It cannot be had.
            SitemapIndexError: It is an index.
            SitemapParseError: It cannot be used.
            ValueError: Nothing to read is given.
        """
        if uri is not None:
            with DocumentOpener(self.network) as opener, opener.open(uri) as opened:
                self._parse(opened)
        elif str_data is not None:
            self._parse(io.StringIO(str_data))
        elif fh is not None:
            self._parse(fh)
        else:
            raise ValueError("Nothing to parse")

    def _parse(self, fh: Any) -> None:
        sitemap = self.new_sitemap()
        sitemap.parse_xml(fh, resources=self, capability=self.capability_name, sitemapindex=False)
        self.parsed_index = sitemap.parsed_index

    def as_xml(self) -> str:
        """Return the document.

        Raises:
            ValueError: It would not be valid.
        """
        self.default_capability()
        return self.render(self, is_index=self.sitemapindex)

    def render(self, resources: Iterable[Any], *, is_index: bool = False) -> str:
        """Return a document of this kind.

        Raises:
            ValueError: It would not be valid.
        """
        xml = self.new_sitemap().resources_as_xml(resources, sitemapindex=is_index)
        assert xml is not None, "without a file the text is returned"
        return xml

    def write(self, basename: str) -> None:
        """Write the document to a file, durably.

        Raises:
            ValueError: It would not be valid.
            OSError: It cannot be written.
        """
        replace_file(Path(basename), self.as_xml().encode(), mode=0o666)


class ListBaseWithIndex(ListBase):
    """``resync.list_base_with_index.ListBaseWithIndex``: a list, or an index with its parts.

    Args:
        resources: The resources; ``None`` for none yet.
        count: Their number, if ``resources`` has no length.
        md: The attributes of the header.
        ln: The links of the header.
        uri: Its address.
        capability_name: Its capability.
        allow_multifile: False to refuse indexes; ``None`` is true.
        mapper: Maps the files of parts to their addresses, and back.
        spec_version: ``1.0`` or ``1.1``, to write.
        add_lastmod: True to write the time of a change as ``lastmod``, too.
        resources_class: Class of the collection of resources.

    Attributes:
        max_sitemap_entries: Most entries of one document; ``None`` for any number.
        num_files: Number of documents that were read.
        bytes_read: Their bytes.
    """

    def __init__(
        self,
        resources: Any = None,
        count: int | None = None,
        md: dict[str, Any] | None = None,
        ln: list[LinkDict] | None = None,
        uri: str | None = None,
        capability_name: str = "unknown",
        allow_multifile: bool | None = None,
        mapper: CompatMapper | None = None,
        spec_version: str = "1.1",
        add_lastmod: bool = False,
        resources_class: Any = None,
    ) -> None:
        self.resources_class = list if resources_class is None else resources_class
        chosen = self.resources_class() if resources is None else resources
        super().__init__(chosen, count, md, ln, uri, capability_name, spec_version, add_lastmod)
        self.max_sitemap_entries: int | None = MAX_ENTRIES
        self.mapper = mapper
        self.allow_multifile = allow_multifile is None or allow_multifile
        self.content_length = 0
        self.num_files = 0

    def read(self, uri: str, index_only: bool = False) -> None:
        """Read a list; of an index, also its parts in the order of their addresses.

        The parts of an index in a local file are local files, as the mapper has them.

        Args:
            uri: Its address.
            index_only: True to read only the index: the parts are the resources.

        Raises:
            DocumentAccessError: It cannot be had.
            SitemapParseError: It cannot be used.
            ListBaseIndexError: An index is not allowed, or a part cannot be had.
        """
        sitemap = self.new_sitemap()
        with DocumentOpener(self.network) as opener:
            with self._counted(opener.open(uri)) as opened:
                # A Change List accepts changes alone; a document of parts has none.
                found = sitemap.parse_xml(opened, capability=self.capability_name)  # type: ignore[arg-type]  # it reads, no more is needed
            self.parsed_index = sitemap.parsed_index
            self.md, self.ln = found.md, [*self.ln, *found.ln]
            self.lists_all = self.lists_all and found.lists_all
            if not self.parsed_index:
                self.add(found.resources)
                return
            if not self.allow_multifile:
                raise ListBaseIndexError(
                    f"Got sitemapindex from {uri} but support for sitemapindex disabled", uri=uri
                )
            if index_only:
                self.sitemapindex, self.resources = True, found.resources
                return
            for part in sorted(found.uris()):
                self._read_part(opener, uri, part)

    def _read_part(self, opener: DocumentOpener, index: str, part: str) -> None:
        place = part
        try:
            if is_local(index) and not is_local(part):
                place = (self.mapper or CompatMapper()).src_to_dst(part)
            with self._counted(opener.open(place)) as opened:
                found = self.new_sitemap().parse_xml(opened, sitemapindex=False)  # type: ignore[arg-type]  # as above
        except (OSError, MapperError) as error:
            raise ListBaseIndexError(
                f"Failed to load sitemap from {place} listed in sitemap index {index} ({error})",
                uri=place,
            ) from error
        self.lists_all = self.lists_all and found.lists_all
        self.add(found.resources)

    def _counted(self, opened: OpenDocument) -> OpenDocument:
        self.num_files += 1
        self.content_length = int(opened.info()["Content-Length"])
        self.bytes_read += self.content_length
        return opened

    def requires_multifile(self) -> int:
        """Return the number of documents that the list needs; 0 if one is enough."""
        most = self.max_sitemap_entries
        return 0 if most is None or len(self) <= most else -(-len(self) // most)

    def as_xml(self, allow_multifile: bool = False, basename: str = "sitemap.xml") -> str:
        """Return the document; if the list needs several, the index.

        Args:
            allow_multifile: True to return an index.
            basename: Address of the index, from which those of the parts are made.

        Raises:
            ListBaseIndexError: The list needs several documents, and that is not allowed.
            ValueError: The document would not be valid.
        """
        if not self.requires_multifile():
            return super().as_xml()
        if not allow_multifile:
            raise ListBaseIndexError(
                f"{len(self)} entries do not fit into one document of"
                f" {self.max_sitemap_entries} entries"
            )
        return self.as_xml_index(basename)

    def as_xml_index(self, basename: str = "sitemap.xml") -> str:
        """Return the index of a list that needs several documents.

        Raises:
            ListBaseIndexError: One document is enough.
        """
        count = self._part_count()
        parts = [CompatResource(self.part_name(basename, number)) for number in range(count)]
        return self.render(self._like(parts), is_index=True)

    def as_xml_part(self, basename: str = "sitemap.xml", part_number: int = 0) -> str:
        """Return one of the documents of a list that needs several.

        Args:
            basename: Address of the index.
            part_number: Its number, from 0.

        Raises:
            ListBaseIndexError: One document is enough, or there is no such part.
        """
        if not 0 <= part_number < self._part_count():
            raise ListBaseIndexError(f"there is no part {part_number} of {len(self)} entries")
        most = self.max_sitemap_entries or MAX_ENTRIES
        start = part_number * most
        part = self._like(list(islice(self, start, start + most)))
        part.index = basename
        return self.render(part)

    def _part_count(self) -> int:
        count = self.requires_multifile()
        if not count:
            raise ListBaseIndexError(f"{len(self)} entries fit into one document")
        return count

    def _like(self, resources: list[CompatResource]) -> ListBase:
        """Return a list with the same header and other entries."""
        self.default_capability()
        made = ListBase(resources, md=dict(self.md), ln=list(self.ln))
        made.created_at = self.created_at
        return made

    def write(self, basename: str = "sitemap.xml") -> None:
        """Write the list to a file; if it needs several, the parts beside it, the index last.

        Raises:
            ListBaseIndexError: It needs several, and that is not allowed, or the mapper has no
                address for one of them.
            ValueError: A document would not be valid.
            OSError: A file cannot be written.
        """
        if self.resources is not None and not hasattr(self.resources, "__len__"):
            self.resources = list(self.resources)
        count = self.requires_multifile()
        if not count:
            replace_file(Path(basename), super().as_xml().encode(), mode=0o666)
            return
        if not self.allow_multifile:
            raise ListBaseIndexError("Too many entries for a single sitemap but multifile disabled")
        files = [self.part_name(basename, number) for number in range(count)]
        index, *parts = self._addresses([basename, *files])
        for number, file in enumerate(files):
            replace_file(Path(file), self.as_xml_part(index, number).encode(), mode=0o666)
        entries = [CompatResource(uri) for uri in parts]
        replace_file(
            Path(basename), self.render(self._like(entries), is_index=True).encode(), mode=0o666
        )

    def _addresses(self, files: list[str]) -> list[str]:
        try:
            return [(self.mapper or CompatMapper()).dst_to_src(file) for file in files]
        except MapperError as error:
            raise ListBaseIndexError(
                f"Cannot map sitemap filename to URI ({error})", uri=files[0]
            ) from error

    def index_as_xml(self) -> str:
        """Return the list as an index, its entries as the parts."""
        self.default_capability()
        return self.render(self, is_index=True)

    def part_name(self, basename: str = "sitemap.xml", part_number: int = 0) -> str:
        """Return the name of a part: that of the index with five digits before ``.xml``."""
        return f"{basename.removesuffix('.xml')}{part_number:05d}.xml"

    def is_file_uri(self, uri: str) -> bool:
        """Return whether an address is of a local file."""
        return is_local(uri)


class UniqueList(ListBaseWithIndex):
    """A list that has each URI once."""

    def add(self, resource: Any, replace: bool = False) -> None:
        """Add a resource, or all of an iterable.

        Raises:
            ResourceSetDupeError: A URI is there, and ``replace`` is false.
        """
        for added in resource if isinstance(resource, Iterable) else [resource]:
            self.resources.add(added, replace)


class ResourceList(UniqueList):
    """``resync.ResourceList``: each URI once; iteration is by URI.

    Arguments as `ListBaseWithIndex` has them, by name; ``resources_class`` may be
    `ResourceListOrdered`.
    """

    capability_of_class = "resourcelist"

    def __init__(self, resources: Any = None, resources_class: Any = None, **options: Any) -> None:
        super().__init__(
            resources,
            resources_class=resources_class or ResourceListDict,
            capability_name=self.capability_of_class,
            **options,
        )

    def compare(
        self, src: "ResourceList"
    ) -> tuple["ResourceList", "ResourceList", "ResourceList", "ResourceList"]:
        """Compare this list, of a Destination, with that of its Source.

        Returns:
            The resources that are the same, updated, deleted and created: those that are the same
            or deleted from this list, the others from ``src``.
        """
        same, updated, deleted, created = (ResourceList() for _ in range(4))
        ours = {resource.uri: resource for resource in self}
        theirs = {resource.uri: resource for resource in src}
        for uri, resource in theirs.items():
            found = ours.get(uri)
            if found is None:
                created.add(resource)
            elif found == resource:
                same.add(found)
            else:
                updated.add(resource)
        deleted.add([resource for uri, resource in ours.items() if uri not in theirs])
        return same, updated, deleted, created

    def hashes(self) -> set[str]:
        """Return the algorithms of the digests in this list."""
        names = {"md5": "md5", "sha1": "sha-1", "sha256": "sha-256"}
        return {
            name
            for attribute, name in names.items()
            if any(getattr(resource, attribute) is not None for resource in self)
        }


class ResourceDump(ResourceList):
    """``resync.ResourceDump``: a list of packages."""

    capability_of_class = "resourcedump"


class ResourceDumpManifest(ResourceList):
    """``resync.ResourceDumpManifest``: the content of a package."""

    capability_of_class = "resourcedump-manifest"


class ChangeDump(ResourceList):
    """``resync.ChangeDump``: a list of packages of changes."""

    capability_of_class = "changedump"


class ChangeList(ListBaseWithIndex):
    """``resync.ChangeList``: changes in their order, a URI as often as it changed.

    Arguments as `ListBaseWithIndex` has them, by name.
    """

    capability_of_class = "changelist"

    def __init__(self, resources: Any = None, **options: Any) -> None:
        super().__init__(resources, capability_name=self.capability_of_class, **options)

    def add(self, resource: Any) -> None:
        """Add a change, or all of an iterable.

        Raises:
            ChangeTypeError: One has no ``change``.
        """
        for added in resource if isinstance(resource, Iterable) else [resource]:
            self.add_if_changed(added)

    def add_if_changed(self, resource: CompatResource) -> None:
        """Add a change.

        Raises:
            ChangeTypeError: It has no ``change``.
        """
        if resource.change is None:
            raise ChangeTypeError(None)
        self.resources.append(resource)

    def add_changed_resources(
        self, resources: Iterable[CompatResource], change: str | None = None
    ) -> None:
        """Add copies of resources, with this kind of change."""
        self.add([CompatResource(resource=found, change=change) for found in resources])


class ChangeDumpManifest(ChangeList):
    """``resync.ChangeDumpManifest``: the content of a package of changes."""

    capability_of_class = "changedump-manifest"


class CapabilityList(UniqueList):
    """``resync.CapabilityList``: the documents of a set of resources.

    Arguments as `ListBase` has them, by name.
    """

    def __init__(self, resources: Any = None, **options: Any) -> None:
        super().__init__(
            resources, resources_class=CapabilitySet, capability_name="capabilitylist", **options
        )

    def add_capability(
        self, capability: ListBase | None = None, uri: str | None = None, name: str | None = None
    ) -> None:
        """Add a document.

        Args:
            capability: The list; or its ``name``.
            uri: Its address, unless the list has one.
            name: Its capability.
        """
        if capability is not None:
            name, uri = capability.capability_name, capability.uri or uri
        self.add(CompatResource(uri, capability=name))

    def has_capability(self, name: str | None = None) -> bool:
        """Return whether a document of this capability is listed."""
        return self.capability_info(name) is not None

    def capability_info(self, name: str | None = None) -> CompatResource | None:
        """Return the first entry of a capability; ``None`` if there is none."""
        return next((found for found in self if found.capability == name), None)


class SourceDescription(UniqueList):
    """``resync.SourceDescription``: the Capability Lists of a Source.

    Arguments as `ListBase` has them, by name.
    """

    def __init__(self, resources: Any = None, **options: Any) -> None:
        super().__init__(
            resources, resources_class=ResourceSet, capability_name="description", **options
        )

    def add_capability_list(self, capability_list: "CapabilityList | str") -> None:
        """Add a Capability List, or its address."""
        if isinstance(capability_list, str):
            self.add(CompatResource(capability_list, capability="capabilitylist"))
            return
        added = CompatResource(capability_list.uri, capability=capability_list.capability_name)
        if capability_list.describedby is not None:
            added.describedby = capability_list.describedby
        self.add(added)


class ResourceListArchive(ListBaseWithIndex):
    """``resync.ResourceListArchive``: Resource Lists of the past.

    Arguments of an archive are as `ListBaseWithIndex` has them, by name.
    """

    capability_of_class = "resourcelist-archive"

    def __init__(self, resources: Any = None, **options: Any) -> None:
        super().__init__(resources, capability_name=self.capability_of_class, **options)


class ResourceDumpArchive(ResourceListArchive):
    """``resync.ResourceDumpArchive``: Resource Dumps of the past."""

    capability_of_class = "resourcedump-archive"


class ChangeListArchive(ResourceListArchive):
    """``resync.ChangeListArchive``: Change Lists of the past."""

    capability_of_class = "changelist-archive"


class ChangeDumpArchive(ResourceListArchive):
    """``resync.ChangeDumpArchive``: Change Dumps of the past."""

    capability_of_class = "changedump-archive"
