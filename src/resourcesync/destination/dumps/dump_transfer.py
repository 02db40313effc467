"""Transfer from dumps: packages provide needed resources; single requests fetch the rest.

The lists decide what is needed. A dump is only another location of the bytes: its entries must
agree with the list, and so must the bytes; everything else in it is skipped. So a dump that is old,
damaged or wrong costs only time.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Final

from resourcesync import errors
from resourcesync.destination.dumps.dump_policy import (
    REQUEST_COST,
    AgeIndex,
    PackageEstimate,
    ResourceCount,
    are_manifests_worth_fetching,
    is_dump_worth_checking,
    is_package_worth_fetching,
)
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.lists import manifests
from resourcesync.destination.lists.dump_packages import DumpPackage
from resourcesync.destination.options import DumpPolicy
from resourcesync.destination.planner import Fetch, algorithms_for, recordable_lastmod
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.reports import PlanSummary, TransferTally
from resourcesync.destination.transfers.commit import CommitBatch, StagedResource
from resourcesync.destination.transfers.verification import check_installed, verify_staged
from resourcesync.discovery.document_fetcher import FetchedDocument
from resourcesync.documents.packages.planning import content_of
from resourcesync.mirror_state.rows import PendingTask
from resourcesync.model.entries import Header
from resourcesync.model.timestamps import known_microseconds, to_microseconds

if TYPE_CHECKING:
    from resourcesync.documents.packages.reader import ManifestMember, PackageReader
    from resourcesync.documents.reader import Document


class DumpEstimate:
    """Estimates of what each package has of the needed resources, before it is read."""

    def __init__(self, packages: Sequence[DumpPackage], ages: AgeIndex, resources: int) -> None:
        lengths = [offered.entry.length for offered in packages]
        self._whole = sum(length or 0 for length in lengths)
        self._sized = None not in lengths and self._whole > 0
        self._packages = packages
        self._ages = ages
        self._resources = resources
        self._trust = 1.0

    def for_package(self, number: int) -> PackageEstimate:
        """Return the estimate of one package."""
        offered = self._packages[number]
        length = offered.entry.length
        after, upto = interval_of(offered)
        wanted = self._ages.between(after, upto)
        if after is not None:  # a Change Dump: its interval limits its content
            return PackageEstimate(length=length, wanted=wanted.share(self._trust))
        part = 1 / len(self._packages)
        if self._sized and length is not None:
            part = length / self._whole
        held = max(1, round(self._resources * part))
        return PackageEstimate(length=length, wanted=wanted.share(part * self._trust), entries=held)

    def learn(self, expected: int, got: int) -> None:
        """Scale the next estimates by the resources that a package provided."""
        if expected:
            self._trust = min(1.0, max(got / expected, 1 / REQUEST_COST))


def interval_of(offered: DumpPackage) -> tuple[int | None, int | None]:
    """Return the modification times in a package: after, and not after; ``None`` if unknown."""
    entry, dump = offered.entry, offered.dump
    if entry.from_ is not None or dump.from_ is not None:
        after, upto = entry.from_ or dump.from_, entry.until or dump.until
        assert after is not None, "one of them is set"
        return to_microseconds(after) - 1, known_microseconds(upto)
    return None, known_microseconds(entry.completed or entry.at or dump.completed or dump.at)


_log = logging.getLogger(__name__)
_BATCH: Final = 32
"""Packages whose manifests are joined with the needed resources in one pass."""
_MAX_BAD_PACKAGES: Final = 8
"""Bad packages in a row after which a dump is abandoned."""
_MAX_FAILED_TRIES: Final = 3
"""Failed single requests for a resource after which its dump is used at any cost."""
_PACKAGE_ERRORS: Final = (
    errors.SourceError,
    errors.PackageError,
    errors.DocumentError,
    errors.VerificationError,
)


class DumpTransfer:
    """Transfer of needed resources from dumps."""

    def __init__(
        self, pull: SyncSession, plan: PlanSummary, fetches: Callable[[], Iterable[Fetch]], at: int
    ) -> None:
        self._pull = pull
        self._fetches = fetches
        self._count = plan.create + plan.update
        self._resources = max(pull.state.count(), plan.same) + plan.create
        equipment = pull.dependencies
        self._copies = equipment.copies
        self._commit_batch = CommitBatch(pull, at)
        self._commit_batch.expect(self._count, plan.size)
        self._open_temporary = equipment.scratch
        self._policy = pull.options.dumps
        # In an empty folder no file is in place already: no check for each resource.
        self._is_folder_empty = next(iter(equipment.copies.paths()), None) is None

    def fetch_from_dumps(self, uris: Sequence[str | None]) -> TransferTally:
        """Install the needed resources that dumps have; their faults are warnings."""
        packages = self._pull.packages
        try:
            for uri in dict.fromkeys(filter(None, uris)):
                self._pull.dependencies.cancel.raise_if_cancelled()
                rest, self._policy = self._remaining(), self._policy_of(uri)
                if is_dump_worth_checking(rest, self._policy) or (
                    rest.count and packages.has_retained
                ):
                    self._fetch_from(uri)
        except errors.BudgetError:
            self._pull.budget.expire()
        finally:
            self._commit_batch.flush()
        return self._commit_batch.tally

    def _policy_of(self, uri: str) -> DumpPolicy:
        """Return the policy for a dump: after failures, any cost for one that replaces the lists.

        A resource that cannot be requested may be only in its packages. One that is not there
        either is not searched for at any cost for ever.
        """
        pull, policy = self._pull, self._pull.options.dumps
        if policy != "auto" or uri not in (pull.found.change_list, pull.found.resource_list):
            return policy
        failed = any(
            0 < row.tries <= _MAX_FAILED_TRIES for row in pull.state.pending(PendingTask.FETCH)
        )
        return "always" if failed else policy

    def _remaining(self) -> ResourceCount:
        return ResourceCount(count=self._count - self._commit_batch.tally.done)

    def _fetch_from(self, uri: str) -> None:
        try:
            packages = self._pull.packages.packages_at(uri)
        except (errors.SourceError, errors.DocumentError) as error:
            self._pull.warn("bad-dump", f"the dump at {uri} cannot be used: {error.message}")
            return
        if not packages:
            return
        with manifests.new_fetch_sorter(self._open_temporary) as wanted:
            ends = chain.from_iterable(map(interval_of, packages))
            ages = AgeIndex(end for end in ends if end is not None)
            for fetch in self._fetches():
                if self._is_wanted(fetch):
                    wanted.add(fetch)
                    ages.add(fetch.listed.lastmod, fetch.listed.length)
            self._fetch_packages(packages, wanted, DumpEstimate(packages, ages, self._resources))

    def _is_wanted(self, fetch: Fetch) -> bool:
        listed, before = fetch.listed, fetch.before
        if listed.undated or (not listed.hash and listed.lastmod is None):
            return False
        if self._is_folder_empty:
            return True
        is_absent = self._copies.signature(listed.path) is None
        if is_absent or (before is not None and check_installed(before, self._copies)):
            return True
        waiting = self._pull.state.pending_of(listed.uri)
        return waiting is not None and waiting.tries > 0  # the file in place did not match

    def _fetch_packages(
        self,
        packages: Sequence[DumpPackage],
        wanted: ExternalSorter[Fetch],
        estimate: "DumpEstimate",
    ) -> None:
        policy, bad = self._policy, 0
        numbered = [
            (number, offered)
            for number, offered in enumerate(packages)
            if self._pull.packages.is_retained(offered)
            or is_dump_worth_checking(estimate.for_package(number).wanted, policy)
        ]
        is_looked = are_manifests_worth_fetching(
            (estimate.for_package(number) for number, _ in numbered), self._remaining(), policy
        )
        # Retained packages cost nothing more, and may leave nothing to be fetched.
        numbered.sort(key=lambda pair: not self._pull.packages.is_retained(pair[1]))
        for start in range(0, len(numbered), _BATCH):
            with ExitStack() as opened:
                batch = [offered for _, offered in numbered[start : start + _BATCH]]
                guesses = [number for number, _ in numbered[start : start + _BATCH]]
                copied = self._fetch_manifest_copies(batch, opened) if is_looked else {}
                known = self._measure_packages(batch, copied, wanted)
                for position, offered in enumerate(batch):
                    prospect = known.get(position) or estimate.for_package(guesses[position])
                    if not self._is_package_worth_fetching(offered, prospect):
                        continue
                    got = self._fetch_package(offered, copied.get(position), wanted)
                    bad = bad + 1 if got is None else 0
                    if bad >= _MAX_BAD_PACKAGES:
                        self._pull.warn("bad-dump", f"{bad} bad packages in a row: dump skipped")
                        return
                    if got is not None and policy == "auto":
                        estimate.learn(prospect.wanted.count, got)

    def _is_package_worth_fetching(self, offered: DumpPackage, prospect: PackageEstimate) -> bool:
        rest = self._remaining()
        if self._pull.packages.is_retained(offered):
            return rest.count > 0
        if not is_dump_worth_checking(rest, self._policy):
            return False
        room = self._pull.dependencies.room()
        fits = self._pull.budget.fits(offered.entry.length)
        return fits and is_package_worth_fetching(prospect, self._policy, room)

    def _fetch_manifest_copies(
        self, batch: Sequence[DumpPackage], opened: ExitStack
    ) -> dict[int, FetchedDocument]:
        copied: dict[int, FetchedDocument] = {}
        for position, offered in enumerate(batch):
            fetched = self._pull.packages.manifest_copy(offered)
            if fetched is not None:
                copied[position] = opened.enter_context(fetched)
        return copied

    def _measure_packages(
        self,
        batch: Sequence[DumpPackage],
        copied: dict[int, FetchedDocument],
        wanted: ExternalSorter[Fetch],
    ) -> dict[int, PackageEstimate]:
        if not copied:
            return {}
        entries = dict.fromkeys(copied, 0)
        counts = {position: [0, 0, 0] for position in copied}
        terms: dict[int, manifests.PackageTrust] = {}
        with manifests.new_manifest_sorter(self._open_temporary) as listing:
            for position, fetched in list(copied.items()):
                try:
                    document = fetched.open()
                    terms[position] = self._trust_of(batch[position], document.header)
                    for held in self._manifest_rows(document, position, terms[position]):
                        entries[position] += 1
                        listing.add(held)
                except errors.DocumentError as error:
                    _log.info("the copy of a manifest cannot be used: %s", error)
                    del copied[position]
            for fetch, found in manifests.join_wanted(wanted, listing):
                listed = fetch.listed
                for position in {row.package for row in found if row.package in copied}:
                    held_here = (row for row in found if row.package == position)
                    if any(manifests.provides(row, listed, terms[position]) for row in held_here):
                        counts[position][0] += 1
                        counts[position][1] += listed.length or 0
                        counts[position][2] += listed.length is None
        return {
            position: PackageEstimate(
                length=batch[position].entry.length,
                wanted=ResourceCount(count=count, size=size, unsized=unsized),
                entries=entries[position],
            )
            for position, (count, size, unsized) in counts.items()
            if position in copied
        }

    def _manifest_rows(
        self, manifest: "Document", package: int, terms: manifests.PackageTrust
    ) -> Iterator[manifests.ManifestRow]:
        for held in manifests.read_manifest(manifest, package, terms):
            yield held._replace(uri=self._pull.selection.addresses.mirror_uri(held.uri))

    def _trust_of(self, offered: DumpPackage, manifest: Header) -> manifests.PackageTrust:
        moment = manifest.until or manifest.at
        return manifests.PackageTrust(
            complete_until=-1 if moment is None else to_microseconds(moment),
            is_near=offered.is_near,
            is_list=offered.dump.capability in self._pull.listing_dumps,
        )

    def _fetch_package(
        self, offered: DumpPackage, copied: FetchedDocument | None, wanted: ExternalSorter[Fetch]
    ) -> int | None:
        before = self._commit_batch.tally.done
        useful = True
        try:
            with self._pull.packages.open_package(offered, copied) as reader:
                self._unpack(offered, reader, wanted)
                self._commit_batch.flush()  # before the package is removed
        except _PACKAGE_ERRORS as error:
            useful = False
            self._pull.warn(
                "bad-package",
                f"the package {offered.uri} cannot be used; its resources are fetched one by one:"
                f" {error.message}",
            )
        self._commit_batch.flush()  # the next package must not install it again
        return self._commit_batch.tally.done - before if useful else None

    def _unpack(
        self, offered: DumpPackage, reader: "PackageReader", wanted: ExternalSorter[Fetch]
    ) -> None:
        manifest = reader.manifest()
        terms = self._trust_of(offered, manifest.header)
        with (
            manifests.new_manifest_sorter(self._open_temporary) as listing,
            manifests.new_order_sorter(self._open_temporary) as orders,
        ):
            for held in self._manifest_rows(manifest, 0, terms):
                listing.add(held)
            for fetch, found in manifests.join_wanted(wanted, listing):
                best = [row for row in found if manifests.provides(row, fetch.listed, terms)]
                if best and self._is_still_wanted(fetch):
                    orders.add(manifests.Order(best[-1].position, fetch))
            faults = self._install_ordered(iter(orders), reader, terms)
        if faults:
            self._pull.warn(
                "bad-members",
                f"{faults} resources in the package {offered.uri} cannot be used and are fetched"
                " one by one",
            )

    def _is_still_wanted(self, fetch: Fetch) -> bool:
        if not self._commit_batch.tally.done:
            return True
        known, before = self._pull.state.copy(fetch.listed.uri), fetch.before
        if known is None or before is None:
            return known is before
        return known.signature == before.signature

    def _install_ordered(
        self,
        orders: Iterator[manifests.Order],
        reader: "PackageReader",
        terms: manifests.PackageTrust,
    ) -> int:
        order = next(orders, None)
        faults = 0
        for member in reader.members(0 if order is None else order[0]):
            if order is None:
                break
            self._pull.dependencies.cancel.raise_if_cancelled()
            if member.index == order[0]:
                if not member.is_deletion:
                    is_done = self._patch(order[1], member, reader)
                    faults += not (is_done or self._install(order[1], member, terms))
                    self._commit_batch.flush_when_due()
                order = next(orders, None)
        return faults

    def _patch(self, fetch: Fetch, member: "ManifestMember", reader: "PackageReader") -> bool:
        resource, patch = content_of(member.entry), fetch.listed.patch
        if resource is None or resource.path or patch is None or not patch.path:
            return False
        link = next((link for link in resource.patches if link.path == patch.path), None)
        if link is None:
            return False
        from resourcesync.destination.transfers.derived_bytes import PatchApplication  # noqa: PLC0415 - rarely

        patching, staged = PatchApplication(self._pull, self._commit_batch), None
        try:
            staged = patching.stage(fetch)
            for chunk in reader.linked(link):
                staged.write(chunk)
            patching.apply(fetch, staged)
        except (errors.PatchError, errors.PackedMemberError, errors.VerificationError) as error:
            self._commit_batch.add_failed_patch(fetch, error.message)
            return False
        finally:
            if staged is not None:
                staged.discard()
        return True

    def _install(
        self, fetch: Fetch, member: "ManifestMember", terms: manifests.PackageTrust
    ) -> bool:
        listed = fetch.listed
        staged = self._copies.stage(algorithms_for(listed, self._pull.options.own_algorithm))
        try:
            for chunk in member.chunks():
                staged.write(chunk)
            received = verify_staged(listed, staged)
        except (errors.PackedMemberError, errors.VerificationError):
            staged.discard()
            return False
        except BaseException:
            staged.discard()
            raise
        if received.wrong is not None:
            staged.discard()
            return False
        copy = self._commit_batch.new_copy(
            listed, received.length, received.digests, received.fixity
        )
        # A dump that is the list has what it lists; any other has the state of its own time.
        lastmod = (
            listed.lastmod if terms.is_list else recordable_lastmod(listed, terms.complete_until)
        )
        copy = copy._replace(lastmod=lastmod)
        self._commit_batch.add(StagedResource(fetch, copy, staged))
        return True
