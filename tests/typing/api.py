"""A user's program: every public name used as a user would. Type checkers read it; nobody runs it.

``mypy --strict`` must accept each line, and ``assert_type`` says what each result is.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal, assert_type

import resourcesync
from resourcesync import (
    AuditFinding,
    AuditReport,
    AuditRolling,
    Capability,
    Catalogue,
    Change,
    ChangeKind,
    Credentials,
    Digest,
    Document,
    Event,
    Explanation,
    FailedRun,
    Failing,
    FindingKind,
    Header,
    LeftFile,
    Level,
    Link,
    Mirror,
    MirrorChange,
    MirroredResource,
    MirrorOptions,
    MirrorState,
    MirrorStatus,
    Mode,
    Network,
    OfferedSet,
    Posted,
    Published,
    Publisher,
    PublisherOptions,
    Resource,
    ResourceSyncError,
    Rule,
    RuleFinding,
    RunReport,
    Severity,
    Source,
    SourceLists,
    WrittenDocument,
    discover,
    errors,
    offered_sets,
    read,
    validate,
    write,
)
from resourcesync.documents import (
    CapabilityEntry,
    Dialect,
    DocumentChange,
    Entry,
    Limits,
    Package,
    Part,
    RefusedEntry,
    Relation,
    Tolerated,
    format_digests,
    format_time,
    parse_digests,
    parse_time,
)
from resourcesync.server import create_app, create_operations_app

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def keep_a_mirror(folder: Path) -> bool:
    seen: list[Event] = []
    Mirror("https://museum.example", folder, delete="absnt")  # type: ignore[arg-type]  # found
    Mirror("https://museum.example", folder, include="/a/*")  # type: ignore[arg-type]  # found
    with Mirror("https://museum.example", folder, delete="signalled", exclude="") as mirror:
        report = assert_type(mirror.pull(on_event=seen.append), RunReport)
        audit = assert_type(mirror.audit(method="hash"), AuditReport)
        mirror.audit(method="remote", rolling=AuditRolling(share=0.1, oldest_first=True))
        if not audit.in_sync:
            assert_type(mirror.repair(audit), RunReport)
            mirror.repair(
                [finding for finding in audit.findings if finding.kind is FindingKind.MISSING]
            )
        for change in mirror.changes("index"):
            hand_on(change)
        for change in mirror.changes(since="start", follow=True, stop=lambda: True):
            assert_type(change.read(), bytes | None)
            assert_type(change.position, str)
        for resource in mirror.resources():
            assert_type(resource, MirroredResource)
            assert_type(mirror.path(resource.uri), Path | None)
            assert_type(mirror.explain(resource.uri), Explanation)
            assert_type(mirror.uri(resource.path), str | None)
        status = assert_type(mirror.status(), MirrorStatus)
        assert_type(status.failed_run, FailedRun | None)
    failures: tuple[Failing, ...] = report.failures
    findings: tuple[AuditFinding, ...] = audit.findings
    fields: Mapping[str, object] = seen[0].fields
    print(__package__, seen[0].kind, fields, failures, findings, status.as_of)
    return report.state is MirrorState.IN_SYNC and report.mode is Mode.UNCHANGED


def hand_on(change: MirrorChange) -> None:
    assert_type(change.kind, Literal["created", "updated", "deleted", "touched"])
    if change.kind == "deletd":  # type: ignore[comparison-overlap]  # a checker finds the mistake
        raise AssertionError
    resource = change.resource()
    if change.kind != "deleted" and resource is not None:
        assert_type(change.path.read_bytes(), bytes)
        assert_type(change.was, Path | None)
        cite(resource.uri, resource.path, resource.digests, resource.fixity, resource.fetched)
    digests: tuple[Digest, ...] = change.digests
    assert_type(change.time, datetime)
    assert_type(change.number, int)
    print(digests)


def cite(uri: str, path: Path, digests: tuple[Digest, ...], proof: str, at: datetime) -> None:
    print(uri, path, digests, proof, at)


def plan_first(folder: str) -> None:
    options: MirrorOptions = {
        "include": ["/objects/*"],
        "max_delete": "5%",
        "proxy": "http://proxy.example:3128",
        "proxy_auth": ("me", "secret"),
        "ca_file": Path("authorities.pem"),
        "network": Network(
            jobs=4, credentials=(Credentials(fields=(("Authorization", "Bearer secret"),)),)
        ),
    }
    mirror = Mirror(None, folder, **options)
    report = mirror.dry_run(mode="baseline", stop=lambda: False)
    assert_type(report, RunReport)
    if report.held:
        try:
            mirror.pull(stop=lambda: False)
        except errors.RollbackError as error:
            print(error.message, error.evidence, error.hint, error.code)
        except ResourceSyncError:
            raise


def become_a_source(folder: Path) -> object:
    options: PublisherOptions = {"url": "https://museum.example/", "hashes": ["sha-256"]}
    publisher = Publisher(folder, **options)
    done = assert_type(publisher.publish(), Published)
    written: tuple[WrittenDocument, ...] = done.written
    left: tuple[LeftFile, ...] = done.left
    print(written, left)
    return publisher.application()


def become_a_source_without_a_folder(resources: list[Resource]) -> None:
    catalogue = Catalogue("catalogue.db")
    assert_type(catalogue.fill(resources, is_all=True), Posted)
    gone = Change(kind=ChangeKind.DELETED, resource=resources[0])
    posted = assert_type(catalogue.post([gone]), Posted)
    print(posted.created, posted.updated, posted.deleted, posted.touched)
    assert_type(catalogue.publish(url="https://museum.example/", out="public"), Published)
    assert_type(catalogue.resources(), Iterator[Resource])
    assert_type(catalogue.changes(after=1), Iterator[tuple[int, Change]])


def look_at_a_source() -> None:
    offered: tuple[OfferedSet, ...] = offered_sets("https://museum.example")
    source = assert_type(discover("https://museum.example", set_name=offered[0].uri), Source)
    lists = assert_type(source.lists, SourceLists)
    assert_type(lists.resource_list, str | None)
    assert_type(source.resources(), Iterator[Resource])
    assert_type(source.changes(since=NOW), Iterator[Change])


def read_and_write(stream: BinaryIO, target: Path) -> None:
    refused: list[RefusedEntry] = []
    forgiven: list[Tolerated] = []
    document = assert_type(
        read(
            stream,
            uri="https://museum.example/list.xml",
            limits=Limits(entries=10),
            on_refused=refused.append,
            on_tolerated=forgiven.append,
        ),
        Document,
    )
    for entry in document.entries():
        assert_type(entry, Entry)
        match entry:
            case Resource() | Part() | Package() | CapabilityEntry() | DocumentChange():
                print(entry.links_to(Relation.DUPLICATE))
            case Change():
                assert_type(entry.kind, ChangeKind)
    header = Header(capability=Capability.RESOURCE_LIST, at=parse_time("2026-11-21"))
    resource = Resource(
        uri="https://museum.example/a",
        digests=parse_digests("sha-256:00"),
        links=(Link(rel="describedby", href="https://museum.example/a.json"),),
    )
    with target.open("wb") as out:
        out.writelines(write(header, [resource], Dialect.V1_0))
    print(format_digests(resource.digests), format_time(NOW), resourcesync.__version__)


def serve(folder: Path) -> None:
    application = create_app(folder)
    print(application, create_operations_app(folder, application))


def judge(target: Path) -> bool:
    findings = assert_type(validate(target), Iterator[RuleFinding])
    for finding in findings:
        rule = assert_type(finding.rule, Rule)
        print(rule.code, rule.sentence, finding.line, finding.message)
        if finding.severity is Severity.ERROR and rule.level is Level.MUST:
            return False
    return True
