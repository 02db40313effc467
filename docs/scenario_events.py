"""Events of a simulation in ``events.ndjson.gz``, each with its fields."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class EventDefinition(NamedTuple):
    """A kind of event.

    Attributes:
        meaning: Its meaning, in Markdown.
        always: The fields that each has, with their meanings.
        sometimes: The fields that only some have.
    """

    meaning: str
    always: Mapping[str, str] = {}
    sometimes: Mapping[str, str] = {}


_RUN: Final = {"seed": "its seed", "destination": "the name of the Destination that follows"}

EVENTS: Final[Mapping[str, EventDefinition]] = {
    "run.begin": EventDefinition(
        "A run starts; the following events belong to it, until its end.",
        {**_RUN, "version": "the version of this program"},
        {"each key of the sweep": "its value in this run"},
    ),
    "change": EventDefinition(
        "A resource of the origin changed.",
        {"kind": "`created`, `updated` or `deleted`", "name": "the name of the resource"},
    ),
    "publish": EventDefinition(
        "The Source published.",
        {"wrote": "whether any document was written"},
        {"error": "the reason why it failed or crashed"},
    ),
    "pull": EventDefinition(
        "A pull has ended.",
        {
            "requests": "the number of its requests",
            "consistency": "the share of resources that are equal on both sides now",
        },
        {
            "state": "the state that the Destination reports, such as `in sync`",
            "mode": "the mode: `baseline`, `incremental` or `unchanged`",
            "error": "the code of its error, instead of both; `died` if the Destination crashed",
        },
    ),
    "lie": EventDefinition(
        "A Destination falsely reported that it was in sync.",
        {"as_of": "the time of that state, seconds from the start"},
    ),
    "fault": EventDefinition(
        "A fault was injected.",
        {
            "kind": "the key of `[faults]`; `unpacked` where a dump could not be made",
            "what": "a path, a name, or a number; `memory` for the state of a Destination;"
            " empty without a single object",
        },
    ),
    "clock step": EventDefinition(
        "The Source's clock stepped.", {"seconds": "the step; negative for back"}
    ),
    "restart": EventDefinition(
        "The Source started its lists over.", {}, {"error": "the reason why it failed or crashed"}
    ),
    "set back": EventDefinition(
        "The Source was rolled back to a former state; the changes at the same moment are those of"
        " its resources.",
        {"seconds": "the age of that state"},
    ),
    "measured": EventDefinition(
        "The duration has ended: the figures of the run are those of this moment."
    ),
    "quiet": EventDefinition(
        "Faults and changes have ended; some further pulls show the outcome. Entries without times"
        " (`undated`) stay as they are."
    ),
    "run.end": EventDefinition(
        "A run has ended.", {**_RUN, "each figure of `summary.csv`": "its value"}
    ),
}
"""Each kind by its name; all but those of a run have ``at``, seconds from its start."""
