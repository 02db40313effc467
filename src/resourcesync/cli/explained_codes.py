"""Explanations of the rules of the standard, and of the codes of errors, for ``resourcesync why``.

The codes that errors and warnings carry besides those of their kinds, and what they mean.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine, clause_of
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen

if TYPE_CHECKING:
    from resourcesync.errors import ResourceSyncError
    from resourcesync.validator.rule import Rule


def explanation_job(code: str, output: OutputOptions) -> Job:
    """Return the job that explains a code, or the rules whose codes begin so."""

    def work(screen: Screen) -> CommandOutcome:
        return _explain(code, screen)

    return Job(command="why", output=output, work=work, render=_render_rule, fields={"id": code})


DOCS: Final = "docs"
"""Address of the pages of the documentation: a folder of the project, until a site has them."""


def page_of(code: str) -> str:
    """Return the address of the page about the code of a rule or an error."""
    if code.startswith("RS"):
        return f"{DOCS}/reference/rules/{code[:3]}.md#{code.lower()}"
    return f"{DOCS}/reference/errors.md"


def _explain(name: str, screen: Screen) -> CommandOutcome:
    from resourcesync.validator.rule import RULES, find_rule  # noqa: PLC0415 - help stays fast

    rule = find_rule(name)
    if rule is not None:
        screen.report("rule", rule_fields(rule))
        return CommandOutcome(fields={"rules": 1})
    error = _find_error(name)
    if error is not None:
        screen.report("error-code", error)
        return CommandOutcome(fields={"rules": 0})
    start = name.strip().lower()
    if start in WORDS:
        screen.report("word", {"word": start, "meaning": WORDS[start]})
        return CommandOutcome(fields={"rules": 0})
    found = [rule for rule in RULES.values() if rule.code.lower().startswith(start)]
    found = found or [rule for rule in RULES.values() if rule.id.lower().startswith(start)]
    if not found or not start:
        raise _unknown(name)
    for item in found:
        screen.report("rule", {**rule_fields(item), "brief": True})
    return CommandOutcome(fields={"rules": len(found)})


def _unknown(name: str) -> Exception:
    from difflib import get_close_matches  # noqa: PLC0415 - rarely needed

    from resourcesync.errors import ConfigurationError  # noqa: PLC0415 - rarely needed
    from resourcesync.validator.rule import FAMILIES  # noqa: PLC0415 - rarely needed

    near = get_close_matches(name.lower(), [*CODES, *_kinds()], n=1, cutoff=_NEAR)
    likely = f"did you mean {near[0]}? resourcesync why {near[0]}; " if near else ""
    family = name[:3].upper() if name[:3].upper() in FAMILIES else "RS4"
    return ConfigurationError(
        f"there is no rule and no error of the code {name[:64]!r}",
        evidence=tuple(("family", f"{family}  {what}") for family, what in FAMILIES.items()),
        hint=f"{likely}the rules of a family: resourcesync why {family}; for a resource:"
        " resourcesync why MIRROR URI",
    )


def rule_fields(rule: "Rule") -> dict[str, object]:
    """Return a rule as the fields of its event."""
    return {
        "code": rule.code,
        "id": rule.id,
        "level": rule.level.value,
        "severity": rule.severity.value,
        "clause": rule.clause,
        "document": rule.document,
        "sentence": rule.sentence,
        "why": rule.why,
        "fix": rule.fix,
        "profiles": sorted(profile.value for profile in rule.profiles),
        "checked": rule.checked.value,
        "reason": rule.reason,
        "page": page_of(rule.code),
    }


def _find_error(code: str) -> dict[str, object] | None:
    """Return what is known of the code of an error; ``None`` when there is no such code."""
    from resourcesync.cli.exit_codes import exit_code_for  # noqa: PLC0415 - help stays fast

    known = CODES.get(code.strip().lower())
    if known is not None:
        return _code_fields(code.strip().lower(), *known)
    kind = _kinds().get(code.strip().lower())
    if kind is None:
        return None
    exit_code = exit_code_for(kind(""))
    meaning = (kind.__doc__ or "").partition("\n")[0]
    return {
        "code": kind.default_code,
        "meaning": f"{meaning} {_FIXES.get(kind.default_code, '')}".rstrip(),
        "exit_code": int(exit_code),
        "exit_meaning": exit_code.meaning,
        "passes": kind.transient,
        "page": page_of(kind.default_code),
    }


def _kinds() -> "dict[str, type[ResourceSyncError]]":
    """Return the kinds of errors by their codes."""
    from resourcesync import errors  # noqa: PLC0415 - help stays fast

    kinds: list[type[ResourceSyncError]] = [errors.ResourceSyncError]
    for kind in kinds:  # it grows meanwhile
        kinds += kind.__subclasses__()
    return {kind.default_code: kind for kind in kinds}


def _code_fields(code: str, kind: str, meaning: str) -> dict[str, object]:
    """Return what is known of a code that errors of a kind, or warnings, may carry."""
    from resourcesync import errors  # noqa: PLC0415 - help stays fast
    from resourcesync.cli.exit_codes import exit_code_for  # noqa: PLC0415 - as above

    fields: dict[str, object] = {"code": code, "meaning": meaning, "page": page_of(code)}
    if kind == "warning" and code not in _ENDS:
        words = "a warning: it does not change how the run ends"
        return {**fields, "exit_code": int(ExitCode.OK), "exit_meaning": words, "passes": False}
    class_: type[errors.ResourceSyncError] = getattr(errors, kind, errors.ResourceSyncError)
    exit_code = _ENDS.get(code) or exit_code_for(class_(""))
    return {
        **fields,
        "exit_code": int(exit_code),
        "exit_meaning": exit_code.meaning,
        "passes": class_.transient,
    }


_CHECKED = {
    "document": "in each document",
    "together": "between documents: resourcesync validate ADDRESS --live",
    "delivery": "over HTTP: resourcesync validate ADDRESS --live --sample 20",
    "message": "not by validate, which sees no message of a hub; programs may hand them over",
    "package": "in a package: resourcesync validate PACKAGE.zip",
    "partly": "in part",
    "live": "not by validate",
}


def _render_rule(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    if event == "error-code":
        yield TextLine(f"{fields['code']}  {fields['meaning']}", level=QUIET)
        yield TextLine(f"  exit    {fields['exit_code']}: {fields['exit_meaning']}", level=QUIET)
        if fields["passes"]:
            yield TextLine("  again   it may pass: run the command again", level=QUIET)
        yield TextLine(f"  page    {fields['page']}", level=QUIET)
    elif event == "word":
        yield TextLine(f"{fields['word']}  {fields['meaning']}", level=QUIET)
    elif event == "rule" and fields.get("brief"):
        head = f"{fields['code']}  {fields['id']:<5}  {fields['severity']:<7}"
        yield TextLine(f"{head}  {fields['sentence']}", level=QUIET)
    elif event == "rule":
        yield from _render_page(fields)


def _render_page(fields: Mapping[str, Any]) -> Iterator[TextLine]:
    level, severity = fields["level"], fields["severity"]
    where = f"{fields['document']}, {clause_of(fields['clause'])}"
    yield TextLine(f"{fields['code']} ({fields['id']})  {level}, {severity}  {where}", level=QUIET)
    yield TextLine(f"  rule      {fields['sentence']}", level=QUIET)
    yield TextLine(f"  why       {fields['why']}", level=QUIET)
    yield TextLine(f"  fix       {fields['fix']}", level=QUIET)
    yield TextLine(f"  profiles  {', '.join(fields['profiles'])}", level=QUIET)
    checked = _CHECKED[fields["checked"]]
    if fields["reason"]:
        checked = f"{checked}: {fields['reason']}"
    yield TextLine(f"  checked   {checked}", level=QUIET)
    yield TextLine(f"  page      {fields['page']}", level=QUIET)


_NEAR: Final = 0.8
"""Similarity above which an unknown code is a misspelt known one, from 0 to 1."""
_ENDS: Final = {"unreadable-file": ExitCode.PARTIAL, "mended-row": ExitCode.PARTIAL}
"""How a run ends that goes on without what an error is about."""
_FIXES: Final = {
    "config": "Correct the setting that the message names; check a file with config check.",
    "storage": "Check that the folder exists, that its disk is mounted, and who may write there.",
    "missing": "Run pull again: what the Source deleted is then no longer listed.",
    "unavailable": "Run again later; doctor ADDRESS shows whether it answers from here.",
    "refused": "Check the address; if the Source needs a login, name the secret with --auth.",
    "disk": "Free some room, or choose a folder on another disk; then run again.",
    "state": "Restore the folder .resourcesync from a backup, or begin in another folder.",
    "locked": "Wait for the end of the other run.",
}
"""What to do about the kinds of errors, after what they mean."""
_CODE_TABLE: Final = """
ConfigurationError
  not-a-mirror       The folder is not a mirror; name another, or make it one with pull.
  usage              The command line is invalid; --help shows the syntax.
  unknown-key        The other system accepts no such key of --with; see which it accepts.
  no-plugin          There is no plug-in of that name; `resourcesync doctor --plugins` lists them.
  ambiguous-plugin   Several plug-ins have that name; uninstall all but one.
  bad-plugin         A plug-in fails, or cannot be used; correct or uninstall it.
  map                The rule of `map` cannot be used, or cannot be reversed.
  other-mapper       The mirror's paths come from another mapper; use that, or another folder.
  several-sets       The Source offers several sets; choose one.
  no-such-set        The Source offers no set of that name.
  set-gone           The Source no longer offers the set that this mirror follows.
  nested-mirror      One mirror would be in another; use a folder outside it.
  own-publication    The mirror has copies of what is published at the same address; see the hint.
  links-unknown      The links of the Source's entries are not recorded; pull a whole list once.
  empty-account      The other system lists no resource; see the hint.
  ndjson             A line is not valid JSON, or has invalid fields.
  many-refused       Too many rows of a table cannot be published; see the hint.
  many-gone          More than half of the known resources, or all, would be gone; see the hint.
  empty-tree         No file is left to publish, though there were some; see the hint.
  glob               A pattern of --include or --exclude is invalid.
  max-size           The largest size is invalid.
  since              The start time has no time zone.
  origins            The value is not an origin; write https://HOST.
  type               The value is not a media type; write text/html or text/*.
  base               The Source's address cannot be the root of a mirror.
  wrong-mapping      The mapping of an index prevents a search for its documents; see the guide.
  no-conditions      The server of a bucket ignores If-Match or If-None-Match; use another one.
  no-view            The server does not support points in time: another product, or too old.
StoppedError
  interrupted        The run was stopped before its end; run it again to continue.
StorageError
  unreadable-file    A file of the tree cannot be read; make it readable, or exclude it.
  unreadable-folder  A folder of the tree cannot be read; make it readable, or exclude it.
  read-back          The bytes read back are not those that were written; check the disk.
  path-in-the-way    A file or folder that is not a copy has the path of a copy; move it away.
  local-change       A file changed while it was being replaced; to keep its bytes, move it away.
  on-change          The program of on_change failed or timed out; it gets the same changes again.
  store              The store of a plug-in failed; check that it is reachable and writable.
  no-bucket          The bucket does not exist; create it, or correct the address.
  store-refused      The store refuses the access key; check the key and its permissions.
  watch              The limit of watched folders is reached; raise it, or run publish from cron.
StateError
  clock-ahead        The clock is over a year after the last publication; if it is right: --rebase.
  clock-behind       The clock is before the last publication; if it is right: --rebase.
  catalogue-row      A row of a catalogue cannot be used; `catalogue check` names it.
SyncError
  names              The names of too many resources clash with others; see the hint.
DiscontinuityError
  feed-gap           An event stream lost changes before they were read; see the hint.
  bad-position       The stored position of a log is not of this version; all is read again.
SourceUnavailableError
  lost-view          The server lost the point in time during the read; run again.
  partial-search     Some shards of an index did not answer; run again when the cluster is healthy.
  unsteady-index     The number of documents changes during the read; run again when it is stable.
  connect            No connection to the host; check its name and port, then try again later.
  dns                The host's name cannot be resolved; check its spelling.
  timeout            The connection timed out.
  reset              The connection broke.
  truncated          The response is incomplete.
  unmarked-end       Nothing says that the response is whole, and each one is another.
  too-slow           The server sends less than the minimum speed.
  stale-copy         The Source serves older lists than before; a cache may have an old copy.
  mixed-copies       The parts of a list are of different times; a cache may have an old copy.
SourceRefusedError
  egress             The Source led to a private or special address; see --allow-origin.
  redirect           A redirect leads to an address that policy forbids.
  robots             robots.txt disallows the request; ask the Source, or use -o robots=ignore.
  tls                No trusted TLS connection is possible; see `ca_file`.
  uri                The address is invalid.
  proxy              The proxy refuses the request, or does not answer.
SourceNotFoundError
  no-index           The server has no such index; check the address, or create it by an import.
BadResponseError
  not-oai            The address is not the base URL of an OAI-PMH provider.
  oai-error          An OAI-PMH provider refuses the request; its message is shown.
  oai-many-gone      Most former records of a repository are no longer listed; see the hint.
  oai-endless        The lists of an OAI-PMH provider have no end; try --with window=30d.
  cut-short          An index returned fewer documents than announced; run again.
  index-changed      An index was recreated while it was read; run again when it is filled.
  protocol           The server violates the HTTP protocol.
  too-big            The response is larger than allowed.
  encoding           The content coding of the response cannot be removed.
  range              The response is a part of a resource that was requested whole.
  location           A redirect has no usable Location.
VerificationError
  contradicting      The bytes do not match the list, but are stored (-o verify=lenient).
  digest-mismatch    The bytes do not match the digest that their server sent with them.
OutOfScopeError
  foreign            The entry is of another origin; if the Source may list it: --allow-origin.
  part-unread        A part of a list cannot be read; the others are used, and nothing is deleted.
  mapper             The mapper returns a path that cannot be used.
DocumentError
  no-address         A value that must be an address is not one.
  change-unknown     A change has no kind, or one that the standard does not define.
  entry-invalid      An entry has no usable address; report it to the Source.
  time-invalid       A time does not have the format that the standard requires.
  gzip               The compressed data are damaged.
  xml-dtd            The document has a DTD, which is refused for security.
  xml-encoding       The document is not in its declared encoding.
  xml-metadata       The root's rs:md is misplaced, repeated, or without a capability.
PackageError
  manifest-missing   The package has no manifest at its root.
  manifest-duplicate The package has two manifests.
  manifest-limit     The manifest is too large.
  manifest-mismatch  The manifest and the package do not agree.
  package-mismatch   The package is not the one that its dump lists.
  package-unknown    The file is neither ZIP nor tar.
  tar-junk           The tar has bytes after its end.
  tar-order          The order of the members of the tar costs too much to read.
  tar-ratio          The tar exceeds the allowed ratio of decompression.
  zip-limit          The ZIP has more members than allowed.
  zip-overlap        Members of the ZIP overlap.
  zip-ratio          The ZIP exceeds the allowed ratio of decompression.
ResourceSyncError
  bug                A fault of resourcesync, not of the user or the Source; see the report.
  output             The output could not be written.
warning
  tolerated          The document breaks a rule, but was read.
  no-room            A former version of a file is not stored: `versions_max_bytes` is reached.
  versions-gone      Changes cannot be packed; the Change Dump begins after them.
  ignored            A setting of another program's configuration has no meaning in this one.
  never              An event of a scenario is after its end.
  omitted            A file is not published, for the reason given.
  globs-dropped      New values of --include or --exclude replaced those of before: give them all.
  out-changed        The documents have another place; those in the former one are not updated.
  unmatched-glob     No file matches a glob of --include or --exclude; compare it with the paths.
  no-secret          A secret that the configuration names is missing in the environment.
  notify             A hub did not receive the changes; they are sent again the next time.
  address-changed    The address of a Source changed; mirrors follow with: pull MIRROR --moved.
  published-elsewhere  The lists name another address than the one that is served.
  clock-skew         The clocks of this machine and of the Source do not agree.
  log                The log cannot be written; the command continues without it.
  crawl-delay        robots.txt requests a longer delay between two requests than is used.
  no-time            A list does not state its time, so each pull compares with the whole list.
  change-gap         The Change Lists do not reach back; a newer Resource List is used instead.
  open-absence       Copies are in no list, but it is too old, or in parts of several moments.
  not-understood     The Source lists entries that cannot be used: no unlisted copy is deleted.
  uris-encoded       Listed URIs have invalid characters, such as spaces: they are percent-encoded.
  values-dropped     Some values of the lists cannot be read: their entries are used without them.
  cut-list           An earlier Resource List of the same time had more entries: nothing is deleted.
  old-lists          The lists at the Source's new address report less than was processed.
  old-part           A part of a list is older than its index states: the mirror is behind.
  log-lost           The log of another system cannot be continued: all is read again.
  held-back          Changes that another system logged wait until their effect is visible there.
  log-partial        Some changes are not logged, and are found when all is read again.
  empty-sitemap      The sitemap lists no page: the mirror has none. It may be unfinished.
  nothing-selected   The filters exclude every listed resource: the mirror has none of them.
  whole-site         No list is at the address given: the lists of its whole site are followed.
  library            A warning that no command expects, such as an old list that cannot be used.
  stale-dates        Pages changed without a new date: they were found by requesting some again.
  mended-row         A row of a catalogue cannot be published: what is known of its resource is.
  set-aside          A file that is not from the Source was in the way: it is in the quarantine now.
  rewritten          The Source rewrote its Change List; a baseline was run.
  worker-died        A worker ended during a unit of work; the unit is done again.
  bad-dump           A dump cannot be used; its resources are fetched one by one.
  bad-package        A package cannot be used; its resources are fetched one by one.
  bad-members        Members of a package cannot be used; they are fetched one by one.
"""


WORDS: Final = {
    "absent": "The Source lists the resource, but its server does not have it (404 or 410).",
    "skipped": "The Source lists the resource, but its robots.txt or a redirect denies it.",
    "held": "The deletion is not applied: a safety limit, or changes that may be missing.",
    "resting": "The resource failed often: only a pull after a pause tries it again.",
    "pending": "The resource is listed, but the mirror does not have it as listed.",
    "refused": "The entry of the list cannot be used.",
    "suspect": "The copy was changed in the mirror: the next pull fetches it again.",
    "paused": "An operator paused the mirror: `watch` does not pull it until it is resumed.",
}
"""What the words of the lines at the end of a run mean, which are no codes."""


class CodeMeaning(NamedTuple):
    """What a code means.

    Attributes:
        kind: The name of the class of errors that carries it; ``warning`` for none.
        meaning: What it means, and what to do.
    """

    kind: str
    meaning: str


def _read_codes() -> dict[str, CodeMeaning]:
    found: dict[str, CodeMeaning] = {}
    kind = ""
    for line in _CODE_TABLE.strip().splitlines():
        if not line.startswith(" "):
            kind = line
            continue
        code, _, meaning = line.strip().partition(" ")
        found[code] = CodeMeaning(kind, meaning.strip())
    return found


CODES: Final = _read_codes()
"""What each code means that is not the code of a kind of error."""
