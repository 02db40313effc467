"""The JSON Schema of the lines that ``--json`` writes: one table of their kinds and fields.

Within ``"v": 1`` fields may be added, never renamed, so the schema allows unknown fields.
A field has the same type in every event, unless the event gives it another one.
"""

from typing import Any, Final

import msgspec

from resourcesync.cli.json_output import VERSION
from resourcesync.settings.json_schema import SCHEMA_DIALECT, Schema

_TYPES: Final[dict[str, Schema]] = {
    "text": {"type": "string"},
    "count": {"type": "integer", "minimum": 0},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "moment": {"type": "string", "format": "date-time"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "flags": {"type": "array", "items": {"type": "boolean"}},
    "rows": {"type": "array", "items": {"type": "object"}},
    "table": {"type": "object"},
    "integer": {"type": "integer"},
    "any": {},
}

_FIELDS: Final = {
    "text": (
        "action admin archives audit b a algorithm capability change change_list check checked "
        "clause code command consumer contents description dialect document entry excerpt "
        "final_uri fix fixity format found_by from_audit hash hint id key kind label "
        "level link media_type message method mirror mode name next not_asked_anew origin out "
        "outcome path place position prev_hash profile pull reason resource resource_list rule run "
        "resource_dump change_dump "
        "sentence served_as set severity skipped source spec spent state status step "
        "stopped_by target text trouble tree type up uri url verdict version why group "
        "distribution hub topic was logger"
    ),
    "count": (
        "accurate advice applied bytes bytes_done bytes_total checks column copies created "
        "create cursor cut_short damaged delete deleted depth different different_bytes "
        "doubted done entries errors excerpt_column exit extra failed files findings foreign "
        "excluded held held_of judged_alone length line linked listed lists missing mistakes "
        "not_fetched omitted only_a only_b others parts patched pending present problems "
        "read_bytes received refused renamed requests resources resources_checked "
        "resources_listed same seq sets sized surplus tolerated total touched tries "
        "unchanged unlisted unpatched unproven unprovable unreached unreadable "
        "unsized unverified update updated useful_bytes warnings weak was_bytes "
        "hashed proven changing rules plugins packages_unopened packages "
        "packages_kept filtered packed_entries packed_bytes contradicting hubs "
        "count plain_sitemaps versions patches taken seed lies wrong restored resting "
        "refetched absent skipped unread edited server_verified recovered "
        "by_hash by_request by_date unconfirmed rechecked stale_dates"
    ),
    "number": (
        "accuracy coverage lag_seconds seconds "
        "skew_seconds recheck_seconds recheck_reached_seconds consistency "
        "latency latency_95 efficiency"
    ),
    "flag": (
        "adopted complete dry_run first gap in_sync is_index is_open kept lists_only local "
        "offered offline sitemap stopped begun counted verified equal is_there "
        "is_altered asked ours all_read is_local bad_digest paused"
    ),
    "moment": (
        "again tried_again as_of at completed from in_sync_at last last_run newest "
        "proven_since since time until lastmod installed"
    ),
    "texts": "documents mirrors profiles set_aside targets via written",
    "flags": "branches",
    "rows": "evidence failures differences",
    "table": "after algorithms before changes error failed_run media_types refusals schema",
    "any": "value",
}
_KIND_OF: Final = {name: kind for kind, names in _FIELDS.items() for name in names.split()}


class EventSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of line.

    Attributes:
        meaning: The meaning of the line.
        always: The fields of each line, as ``name`` or ``name:type``; ``?`` after it allows null.
        sometimes: The fields that are left out where they have no meaning.
    """

    meaning: str
    always: str
    sometimes: str = ""


_RUN_FIELDS: Final = (
    "mirror mirrors:any since? sets:any sources:any state mode dry_run lists_only "
    "spent pull resources listed:any unchanged applied pending:any same created "
    "updated refetched deleted failed edited refused:any held held_of unlisted filtered "
    "verified:count server_verified weak absent:count skipped:count unread:count "
    "known_as:text absent_below:text restored unverified by_hash by_request by_date "
    "unconfirmed rechecked stale_dates "
    "contradicting renamed linked patched:any unpatched requests bytes useful_bytes "
    "as_of? audit in_sync at? present accurate unproven extra foreign begun gap "
    "scenarios:count passed:count coverage? accuracy? "
    "read_bytes proven? proven_since? stopped:any doubted? skew_seconds "
    "changes:count cursor? position path? mistakes entries plain_sitemaps tolerated "
    "files equal different only_a only_b documents:any not_fetched hashed "
    "touched changing unreadable omitted written url first problems warnings hubs "
    "checks resources_checked "
    "resources_listed unreached cut_short judged_alone packages_unopened "
    "errors advice evidence:text out copies source missing damaged stopped_by verdict "
    "uri reason is_there is_altered asked trouble finding:any set_aside runs:count via "
    "here:any trash:any last_change:any rules plugins others packages:any packages_kept "
    "packed_entries packed_bytes rows:count versions excluded patches wrong lists "
    "code tree"
)

EVENTS: Final = {
    "run.start": EventSpec(
        meaning="A run begins: the first line.",
        always="time command",
        sometimes=(
            "mirror mirrors source? dry_run method offline consumer? action target targets "
            "profile a b depth? dialect from_audit? resource tree id:any set? out format url? "
            "files:any code lists_only name:text?"
        ),
    ),
    "run.end": EventSpec(
        meaning="A run ended: the last line. Its fields are those of its command.",
        always="time command seconds exit:integer",
        sometimes=_RUN_FIELDS,
    ),
    "mirror.end": EventSpec(
        meaning=(
            "One of several mirrors, sets or Sources ended; its fields are those of `run.end`."
        ),
        always="seconds exit:integer",
        sometimes=f"{_RUN_FIELDS} name set",
    ),
    "log": EventSpec(
        meaning=("A message of a log that is no event. Every line of a log has these fields, too."),
        always="time level logger message",
    ),
    "error": EventSpec(
        meaning="The error that ended the run, or one mirror of several.",
        always="code message place evidence hint exit:integer",
        sometimes="mirror uri",
    ),
    "warning": EventSpec(
        meaning="A problem that does not end the run.",
        always="code message",
        sometimes="evidence hint mirror path uri tree exit:integer",
    ),
    "leniency": EventSpec(
        meaning=(
            "A departure from the rules that a list was read in spite of; count: the number of"
            " entries or other places, uri and line: the first of them."
        ),
        always="code rule reason count uri line",
        sometimes="mirror",
    ),
    "source": EventSpec(
        meaning="The addresses of the Source's lists.",
        always="entry",
        sometimes=(
            "spec description? set? resource_list? change_list? resource_dump? change_dump? "
            "sitemap found_by? as_of? mirror"
        ),
    ),
    "scope": EventSpec(
        meaning="The filters differ from those of the last pull; comes before anything is fetched.",
        always="before after",
        sometimes="mirror",
    ),
    "plan": EventSpec(
        meaning="The planned work; with dry_run, the work that a run would do.",
        always="mode same create update delete held held_of limit:text bytes unsized absent:count",
        sometimes="mirror",
    ),
    "trashed": EventSpec(
        meaning="A file in the trash of a mirror, with the time and the reason of its deletion.",
        always="path uri bytes? time reason place",
    ),
    "item": EventSpec(
        meaning="The result for one resource; with dry_run, the planned result.",
        always="status action uri path",
        sometimes=(
            "bytes? was_bytes?:integer hash verified fixity adopted local patched:any linked:any "
            "bad_digest code reason tries kept mirror dry_run length? was"
        ),
    ),
    "patch": EventSpec(
        meaning="A patch that cannot be used: the whole resource is fetched.",
        always="uri path reason",
        sometimes="mirror",
    ),
    "phase": EventSpec(
        meaning=(
            "A phase of a pull ended: `discovery`, `lists` (reading them), `transfer` (of resources"
            " until the last is in place), `commit` (of the position) or `recheck` (of copies known"
            " by their dates only)."
        ),
        always="time name seconds",
        sometimes="mirror",
    ),
    "progress": EventSpec(
        meaning="The progress of the run, at most once a second.",
        always="done total",
        sometimes="bytes_done bytes_total failed mirror",
    ),
    "mirror": EventSpec(
        meaning="One of several mirrors: its pull begins, or its status.",
        always="mirror",
        sometimes=(
            "source state resources pending contradicting resting tried_again? refused held "
            "edited absent skipped unknown:count by_hash by_request by_date unconfirmed "
            "recheck_seconds? recheck_reached_seconds counted refuted:flag lag_seconds? as_of? "
            "in_sync_at? last_run? outcome failed_run? failures set offered doubted:any"
        ),
    ),
    "admin": EventSpec(meaning="The address of the operators' pages.", always="uri"),
    "watch": EventSpec(meaning="The watched mirrors.", always="mirrors"),
    **{
        f"watch.{kind}": EventSpec(
            meaning=(
                f"{what} ended; tries: failures in a row, again: time of the next one; recovered: "
                "failures since the last success, if this is one; paused: an operator paused it."
            ),
            always="time mirror exit:integer seconds tries again?",
            sometimes=(
                "state resources created updated deleted failed refused held requests bytes "
                "changes:count accuracy code message hint uri recovered paused"
            ),
        )
        for kind, what in (
            ("pull", "A pull"),
            ("audit", "An audit"),
            ("hand-on", "A program that received changes"),
        )
    },
    "watch.subscription": EventSpec(
        meaning=(
            "A subscription of a mirror changed its state (verified, pending, refused or ending); "
            "taken, refused: its accepted and refused deliveries since the service started; "
            "refusals: their reasons (ended: deliveries to a former callback)."
        ),
        always="time mirror topic hub state until? taken last? refused",
        sometimes="reason refusals was",
    ),
    "sets": EventSpec(
        meaning="The sets that a Source offers.", always="source sets", sometimes="not_asked_anew"
    ),
    "finding": EventSpec(
        meaning=(
            "A finding of an audit (kind: + missing, * different, "
            "- extra, ! failed, ? not verifiable), or of the validator."
        ),
        always="uri",
        sometimes=(
            "kind path reason mirror code rule level severity line? column? length? message "
            "sentence clause fix excerpt excerpt_column? document:any a:any b:any source:any"
        ),
    ),
    "copy": EventSpec(
        meaning="One copy of a mirror.",
        always="uri path media_type:text fixity:text fetched:moment",
        sometimes="bytes:integer hash lastmod confirmed:moment known_as:text",
    ),
    "change": EventSpec(
        meaning="One change of a mirror's content.",
        always="seq change uri path bytes:integer time",
        sometimes="hash prev_hash position known_as:text",
    ),
    "verdict": EventSpec(
        meaning="The result of one check of doctor: level is ok, warning or problem.",
        always="check level text next",
    ),
    "setting": EventSpec(
        meaning="One effective setting, and its origin.", always="mirror key value origin"
    ),
    "file": EventSpec(meaning="A file that config prints.", always="name text"),
    "schema": EventSpec(meaning="A JSON Schema.", always="schema"),
    "alone": EventSpec(
        meaning="A document was checked without the other documents of its Source.",
        always="uri others",
    ),
    "unopened": EventSpec(
        meaning="Packages that dumps list were not opened.", always="uri packages is_local"
    ),
    "document": EventSpec(
        meaning="A document of a Source: its kind and its content.",
        always="uri",
        sometimes=(
            "branches depth label found_by final_uri kind capability? is_index is_open dialect? "
            "served_as at? completed? from? until? up? archives? documents:any entries refused "
            "bytes sized hashed unprovable media_types algorithms changes newest? error skipped "
            "complete code"
        ),
    ),
    "package": EventSpec(
        meaning="A package that a dump lists, or that was packed.",
        always="bytes?",
        sometimes=(
            "uri branches depth kind media_type hash at? completed? from? until? contents? name "
            "entries"
        ),
    ),
    "sum": EventSpec(
        meaning="The sum of the parts of an index.",
        always="uri branches parts listed entries refused bytes",
        sometimes="sized hashed unprovable media_types algorithms changes newest?",
    ),
    "plugin": EventSpec(
        meaning="An installed plug-in.", always="group name value:text distribution version ours"
    ),
    "simulated": EventSpec(
        meaning="A simulated run ended.",
        always="seed name text consistency? latency? latency_95? efficiency? requests? received?"
        " lies state",
    ),
    "ready": EventSpec(meaning="The server runs.", always="uri pull tree", sometimes="admin"),
    "sample": EventSpec(
        meaning="The number of resources of a list that were requested.",
        always="uri checked:count listed",
    ),
    "applied": EventSpec(
        meaning="Rules that apply to what was fetched of a Source or a package, beside those that "
        "apply to any document.",
        always="uri rules:texts",
    ),
    "clause": EventSpec(
        meaning="The result for one clause of the specification: passed, failed, not-applicable or "
        "not-tested.",
        always="clause rule code level result:text reason sentence findings:count evidence:any",
    ),
    "cut-short": EventSpec(
        meaning="More documents are listed than were checked.",
        always="uri documents:count all_read message",
    ),
    "unreached": EventSpec(
        meaning="A document or resource that could not be fetched, so it was not checked.",
        always="uri code message",
    ),
    "rule": EventSpec(
        meaning="A rule of the validator.",
        always=(
            "code id level severity clause document sentence why fix profiles checked reason "
            "page:text"
        ),
        sometimes="brief:flag",
    ),
    "error-code": EventSpec(
        meaning="An error code, and the exit code of a command that ends with it.",
        always="code meaning:text exit_code:integer exit_meaning:text passes:flag page:text",
    ),
    "word": EventSpec(
        meaning="A word of the lines at the end of a run, and what it means.",
        always="word:text meaning:text",
    ),
    "part": EventSpec(
        meaning="A part of the table of a mirror's copies: a file, and its first and last URI.",
        always="name rows:count first:text last:text size:count",
    ),
    "written": EventSpec(
        meaning="A document that was written.", always="name uri capability entries bytes"
    ),
    "watching": EventSpec(meaning="Watching of the tree begins.", always="tree"),
    "published": EventSpec(
        meaning="A watched tree was published; its documents come first, as `written`.",
        always="url first resources bytes hashed created updated deleted touched changing"
        " unreadable omitted versions patches written seconds",
    ),
    "row": EventSpec(
        meaning="A row of a catalogue that cannot be published.", always="place uri reason"
    ),
    "step": EventSpec(
        meaning="A step of the demonstration; its other fields depend on the step.",
        always="step text",
    ),
}


def event_schema() -> Schema:
    """Return the schema of one line."""
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "resourcesync --json",
        "description": "One line of what a command writes with --json.",
        "type": "object",
        "required": ["v", "type", "run"],
        "oneOf": [_event_schema(name, event) for name, event in EVENTS.items()],
    }


def _event_schema(name: str, event: EventSpec) -> Schema:
    always = dict(map(_field_schema, event.always.split()))
    sometimes = dict(map(_field_schema, event.sometimes.split()))
    return {
        "title": name,
        "description": event.meaning,
        "properties": {
            "v": {"const": VERSION},
            "type": {"const": name},
            "run": {"type": "string"},
            **always,
            **sometimes,
        },
        "required": ["v", "type", "run", *always],
    }


def _field_schema(text: str) -> tuple[str, Schema]:
    """Return the name and the schema of a field of the table."""
    name, _, kind = text.replace("?", "").partition(":")
    found: dict[str, Any] = dict(_TYPES[kind or _KIND_OF[name]])
    if "?" in text and "type" in found:
        found["type"] = [found["type"], "null"]
    return name, found
