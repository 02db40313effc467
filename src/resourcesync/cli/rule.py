"""``resourcesync rule``: explain a rule of the standard, or the code of an error.

The codes that errors and warnings carry besides those of their kinds, and what they mean.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from resourcesync.cli import options
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen

if TYPE_CHECKING:
    from resourcesync.validator.rule import Rule


@click.command("rule")
@click.argument("name", metavar="ID")
@options.output_options
def command(output: OutputOptions, name: str) -> Job:
    """Explain a rule or the code of an error.

    ID is a rule's code (RS402) or its row in the table of requirements (CH05); the beginning of
    one (RS4, CH) lists all that begin so. The code of an error (hash-mismatch) is explained too.

    \b
    resourcesync rule RS402
    resourcesync rule RS4
    """  # noqa: D301 - click's mark for lines that are not to be filled

    def work(screen: Screen) -> CommandOutcome:
        return _explain(name, screen)

    return Job(command="rule", output=output, work=work, render=_render_rule, fields={"id": name})


def _explain(name: str, screen: Screen) -> CommandOutcome:
    from resourcesync.validator.rules import RULES, find_rule  # noqa: PLC0415 - help stays quick

    rule = find_rule(name)
    if rule is not None:
        screen.report("rule", rule_fields(rule))
        return CommandOutcome(fields={"rules": 1})
    error = _find_error(name)
    if error is not None:
        screen.report("error-code", error)
        return CommandOutcome(fields={"rules": 0})
    start = name.strip().lower()
    found = [rule for rule in RULES.values() if rule.code.lower().startswith(start)]
    found = found or [rule for rule in RULES.values() if rule.id.lower().startswith(start)]
    if not found or not start:
        raise _unknown(name)
    for item in found:
        screen.report("rule", {**rule_fields(item), "brief": True})
    return CommandOutcome(fields={"rules": len(found)})


def _unknown(name: str) -> Exception:
    from difflib import get_close_matches  # noqa: PLC0415 - seldom needed

    from resourcesync.errors import ConfigurationError  # noqa: PLC0415 - seldom needed
    from resourcesync.validator.rules import BY_CODE, FAMILIES  # noqa: PLC0415 - seldom needed

    near = get_close_matches(name.upper(), BY_CODE, n=1) or ["RS402"]
    return ConfigurationError(
        f"there is no rule and no error of the code {name[:64]!r}",
        evidence=tuple(("family", f"{family}  {what}") for family, what in FAMILIES.items()),
        hint=f"resourcesync rule {near[0]}",
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
    }


def _find_error(code: str) -> dict[str, object] | None:
    """Return what is known of the code of an error; ``None`` when there is no such code."""
    from resourcesync import errors  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.exit_codes import exit_code_for  # noqa: PLC0415 - help stays quick

    known = CODES.get(code.strip().lower())
    if known is not None:
        return _code_fields(code.strip().lower(), *known)
    waiting: list[type[errors.ResourceSyncError]] = [errors.ResourceSyncError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.default_code == code.strip().lower():
            bare = kind.__new__(kind)
            exit_code = exit_code_for(bare)
            return {
                "code": kind.default_code,
                "meaning": (kind.__doc__ or "").partition("\n")[0],
                "exit_code": int(exit_code),
                "exit_meaning": exit_code.meaning,
                "passes": kind.transient,
            }
    return None


def _code_fields(code: str, kind: str, meaning: str) -> dict[str, object]:
    """Return what is known of a code that errors of a kind, or warnings, may carry."""
    from resourcesync import errors  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.exit_codes import ExitCode, exit_code_for  # noqa: PLC0415 - as above

    fields: dict[str, object] = {"code": code, "meaning": meaning}
    if kind == "warning":
        words = "a warning: it does not change how the run ends"
        return {**fields, "exit_code": int(ExitCode.OK), "exit_meaning": words, "passes": False}
    class_: type[errors.ResourceSyncError] = getattr(errors, kind)
    exit_code = exit_code_for(class_.__new__(class_))
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


def clause_of(text: str) -> str:
    """Return a clause as people say it: ``section 12.1``, or the name of another document."""
    return f"section {text}" if text[:1].isdigit() else text


def _render_rule(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    if event == "error-code":
        yield TextLine(f"{fields['code']}  {fields['meaning']}", level=QUIET)
        yield TextLine(f"  exit    {fields['exit_code']}: {fields['exit_meaning']}", level=QUIET)
        if fields["passes"]:
            yield TextLine("  again   it may pass: run the command again", level=QUIET)
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


_CODE_TABLE: Final = """
ConfigurationError
  usage              The command line cannot be understood; --help shows how it is written.
  unknown-key        The other system takes no such key of --with; see which it takes.
  no-plugin          There is no plug-in of that name; `resourcesync plugins` lists them.
  ambiguous-plugin   Several plug-ins have that name; uninstall all but one.
  bad-plugin         A plug-in fails, or cannot be used; fix or uninstall it.
  map                The rule of --map cannot be used, or cannot be undone.
  other-mapper       The mirror's places come from another mapper; use that, or another folder.
  several-sets       The Source offers several sets; say which one is meant.
  no-such-set        The Source offers no set of that name.
  set-gone           The Source no longer offers the set that this mirror follows.
  own-publication    The mirror holds what is published at the same address; see the hint.
  links-unknown      The mirror does not know yet what entries link to; pull a whole list once.
  empty-account      The other system lists no resource; see the hint.
  ndjson             A line of JSON cannot be understood.
  many-refused       Too many rows of a table cannot be published; see the hint.
  many-gone          The other system tells of less than half of what it had; see the hint.
  empty-tree         Nothing is left to publish, though there was something; see the hint.
  glob               A pattern of --include or --exclude cannot be understood.
  max-size           The largest size cannot be used.
  since              The time to start from has no time zone.
  origins            What was given is no origin; write https://HOST.
  type               What was given is no media type; write text/html or text/*.
  base               The Source's address cannot be the root of a mirror.
  wrong-mapping      The mapping of an index does not let its documents be found; see the how-to.
  no-view            The server opens no point in time: it is another kind, or too old.
StoppedError
  interrupted        The run was stopped before its end; run it again to continue.
StorageError
  run-over           A worker was left from a run that ended; it puts nothing in place.
  unreadable-file    A file of the tree cannot be read; make it readable, or exclude it.
  unreadable-folder  A folder of the tree cannot be read; make it readable, or exclude it.
  read-back          What was written is not what was read back: look at the disk.
  path-in-the-way    Something of yours is where a copy belongs; move it away.
  local-change       A file was changed while it was replaced; move it away if you want to keep it.
  on-change          The program of on_change failed or took too long; it is told again.
  store              The store of a plug-in failed; see that it can be reached and written.
  no-bucket          There is no such bucket; make it, or mend the address.
  store-refused      The store refuses our key; see what it is and what it may do.
  watch              The system watches no more folders; raise its limit, or publish by the clock.
StateError
  clock-ahead        The clock is a year after all that was published; if it is right: --rebase.
  clock-behind       The clock is before what was published; if it is right: --rebase.
  catalogue-row      A row of a catalogue cannot be published; `catalogue check` names it.
SyncError
  names              Too many resources cannot have their names; see the hint.
DiscontinuityError
  changes-lost       The log of changes does not reach back to the cursor; begin anew.
  feed-gap           A feed lost changes that were not read yet; see the hint.
  bad-position       What was noted of a log of changes is another program's; all is read again.
SourceUnavailableError
  lost-view          The server lost the point in time that was being read; run again.
  partial-search     Some shards of an index did not answer; run again when the cluster is well.
  unsteady-index     The index is being filled or emptied; run again when that is done.
  connect            The host cannot be connected; see its name and port, then try again later.
  dns                The host's name cannot be resolved; see that it is written well.
  timeout            The connection was not made in time.
  reset              The connection broke.
  truncated          The response was cut short.
  too-slow           The server gives less than the least speed.
  stale-copy         The Source gives older lists than before; a cache may hold an old copy.
  mixed-copies       The parts of a list are from different times; a cache may hold an old copy.
  transport          The transport of a plug-in failed; `resourcesync plugins` names it.
SourceRefusedError
  egress             The address is private or special, and a Source chose it; see --allow-origin.
  redirect           A redirect leads where policy does not allow, or to nowhere.
  robots             robots.txt keeps programs out; ask the Source, or --robots ignore.
  tls                No trusted TLS connection is possible; see --ca-file.
  uri                The address cannot be used.
  proxy              The proxy does not let the request through, or does not answer.
SourceNotFoundError
  no-index           The server has no such index; see the address, or make it by an import.
BadResponseError
  not-oai            The address is not the base URL of an OAI-PMH provider.
  oai-error          An OAI-PMH provider refuses; what it says stands beside it.
  oai-many-gone      Most of what a repository had is listed no more; see the hint.
  oai-endless        The lists of an OAI-PMH provider have no end; try --with window=30d.
  cut-short          An index gave fewer documents than it said; run again.
  index-changed      An index was made anew while it was read; run again when it is filled.
  protocol           The server does not speak HTTP as it should.
  too-big            The response is bigger than allowed.
VerificationError
  contradicting      The bytes are not what the list says and are kept (--verify lenient).
OutOfScopeError
  foreign            The entry is of another origin; --allow-origin if the Source may speak for it.
  part-unread        A part of a list cannot be read; the others are, and nothing is deleted.
  mapper             The mapper gives the resource a place that cannot be used.
DocumentError
  no-address         What should be an address is none.
  change-unknown     A change is of a kind that the standard does not know.
  entry-invalid      An entry has no address that can be used; ask the Source.
  time-invalid       A time is not written as the standard asks.
  gzip               The compressed data are damaged.
  xml-dtd            The document has a DTD, which is refused for safety.
  xml-encoding       The document is not in the encoding that it says.
  xml-metadata       The document's own rs:md stands in the wrong place or twice.
PackageError
  manifest-missing   The package has no manifest at its root.
  manifest-duplicate The package has two manifests.
  manifest-limit     The manifest is too large.
  manifest-mismatch  The manifest and the package do not agree.
  package-mismatch   The package is not the one that its dump lists.
  package-unknown    The file is neither ZIP nor tar.
  tar-junk           The tar has bytes after its end.
  tar-order          The members of the tar stand in an order that costs too much to read.
  tar-ratio          The tar grows more than allowed when it is unpacked.
  zip-limit          The ZIP has more members than allowed.
  zip-overlap        Members of the ZIP lie over one another.
  zip-ratio          The ZIP grows more than allowed when it is unpacked.
ResourceSyncError
  bug                A fault of resourcesync, not of you or the Source; the report says more.
  output             What was to be said could not be written.
warning
  tolerated          The document breaks a rule, and was read all the same.
  no-room            The version of a file is not kept: --versions-max-bytes leaves no room.
  versions-gone      Changes cannot be packed: the Change Dump starts over after them.
  ignored            A configuration of another program says what has no meaning here.
  never              A time in a scenario is after its end.
  omitted            A file is not published, for the reason that is given.
  no-secret          A secret that the configuration names is not there.
  notify               A hub was not told what changed; it is told again the next time.
  published-elsewhere  The lists name another address than the one they are served at.
  clock-skew         Our clock and the Source's do not agree.
  log                The log cannot be written; the command goes on without it.
  crawl-delay        robots.txt asks for a longer delay between two requests than is kept.
  no-time            A list does not tell its time, so each pull takes the whole list.
  change-gap         The Change Lists do not reach back; a newer Resource List makes up for it.
  not-understood     The Source lists what cannot be used: nothing goes for not being listed.
  uris-encoded       Listed addresses hold blanks, or letters beyond ASCII: they are encoded.
  values-dropped     Values of the lists cannot be read: their entries are used without them.
  cut-list           A Resource List of the same moment had more entries: nothing goes by this one.
  old-part           A part of a list is older than its index says: the mirror is behind.
  lists-moved        The Source's lists are not where they were; they are looked for anew.
  log-lost           The log of another system cannot be gone on with: all is read again.
  held-back          Another system logged changes whose effect cannot be seen there yet.
  log-partial        Some changes are not logged there, until all is read again; see the reason.
  memory-restored    A mirror without a memory here begins with the copy in its store.
  library            What no command expects, such as a list of the past that is of no use.
  set-aside          A file was not what is known here; it is kept in the quarantine.
  rewritten          The Source rewrote its Change List; a baseline was done.
  worker-died        A worker was lost with a piece of the work: that is done again.
  bad-dump           A dump is of no use; its resources are fetched singly.
  bad-package        A package is of no use; its resources are fetched singly.
  bad-members        Members of a package are of no use; they are fetched singly.
"""


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
