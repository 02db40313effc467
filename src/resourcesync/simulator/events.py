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
        "A run begins; what follows is of this run, until its end.",
        {**_RUN, "version": "of this program"},
        {"each key of the sweep": "the value that it has in this run"},
    ),
    "change": EventDefinition(
        "A resource of the origin changed.",
        {"kind": "`created`, `updated` or `deleted`", "name": "of the resource"},
    ),
    "publish": EventDefinition(
        "The Source published.",
        {"wrote": "whether any document was written"},
        {"error": "why it could not, or died on the way"},
    ),
    "pull": EventDefinition(
        "A pull has ended.",
        {
            "requests": "so many were sent for it",
            "consistency": "the share of resources that are equal on both sides now",
        },
        {
            "state": "what the Destination calls itself, such as `in sync`",
            "mode": "how it pulled: `baseline`, `incremental` or `unchanged`",
            "error": "the code of the error it ended with, in the place of both; `died` where the"
            " Destination did",
        },
    ),
    "lie": EventDefinition(
        "A Destination called itself in sync and was not.",
        {"as_of": "the time for which it said so, seconds from the beginning"},
    ),
    "fault": EventDefinition(
        "Something went wrong, as it was meant to.",
        {
            "kind": "the key of `[faults]`; `unpacked` where a dump could not be made",
            "what": "a path, a name, or how many; `memory` for what a Destination writes down;"
            " empty where it befalls no single thing",
        },
    ),
    "clock step": EventDefinition("The Source's clock stepped.", {"seconds": "how far, or back"}),
    "restart": EventDefinition(
        "The Source started its lists over.",
        {},
        {"error": "why it could not, or died on the way"},
    ),
    "set back": EventDefinition(
        "The Source was set back to what it was; the changes that follow at the same moment are"
        " what became of its resources.",
        {"seconds": "how long ago that was"},
    ),
    "measured": EventDefinition(
        "The duration is over: the figures of the run are those of this moment."
    ),
    "quiet": EventDefinition(
        "Nothing goes wrong any more, and nothing changes; some pulls more show how it ends. What"
        " the Source lists without times (`undated`) stays as it is."
    ),
    "run.end": EventDefinition(
        "A run has ended.", {**_RUN, "each figure of `summary.csv`": "what it came to"}
    ),
}
"""Each kind by its name; all but those of a run have ``at``, seconds from its start."""
